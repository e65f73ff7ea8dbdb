"""The news of a run: verdict, numbers, what changed, and how sure it is."""

from dataclasses import replace

import builders as build
import cases
import comment_cases
import pytest
from each_row import each_row

from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import Odds
from ci_evals.domain.results.run import Git, Origin, Results, Rounds
from ci_evals.domain.verdict import Cause
from ci_evals.gate.policy import Policy
from ci_evals.reports.markdown.documents import summary
from ci_evals.reports.story import certainty, failures, gate, verdict
from ci_evals.reports.story.advice import FIX_FAILURES
from ci_evals.reports.story.failures import Became
from ci_evals.reports.story.next_step import PartKind
from ci_evals.reports.story.story import story_of
from ci_evals.reports.story.verdict import Trust

MAIN = Git(commit=cases.BASE_COMMIT, ref="refs/heads/main")
PULL = Git(commit="0" * 40, head_commit=comment_cases.HEAD, pull_request=214)

UNCHANGED = "75 / 100, no change seen against main"
OVER_COST = build.check("max-cost", 0.5, 0.61, passed=False)
CRITICAL_FAILED = build.check("critical:Late parcel", 100, 0, passed=False)
READ_FAILURES = "Read what failed in report.html, or by ci-evals show --failed."


def became(results: Results) -> dict[tuple[str, str], Became]:
    """The tests whose outcome changed."""
    return failures.became(results, story_of(results).change.news)


def compared(head, base, *, git=PULL, min_score=0, of_base_commit=True, **fields) -> Results:
    """A suite of tests with a trial each, a letter for each test, and its comparison with main."""

    def suite(letters: str):
        tests = (cases.played(f"Test {number}", letter) for number, letter in enumerate(letters, 1))
        return build.suite_result("Refunds", *tests)

    run = build.results(suite(head), run=build.run_info(git=git))
    policy = Policy(min_score=min_score, max_errors=9)
    base_run = cases.base_run(suite(base), git=MAIN)
    result = cases.decided(run, base_run, policy, of_base_commit=of_base_commit)
    return replace(result, comparison=replace(result.comparison, **fields))


def gated(*checks, **fields) -> Results:
    """A run with this decision and no baseline."""
    suite = build.suite_result("Refunds", cases.played("Late parcel", "h"))
    return build.results(suite, gate=build.decision(*checks, **fields))


def no_verdict(code: int, reason: str) -> Results:
    return gated(exit_code=code, passed=False, reasons=(reason,))


def rerun_of(*tests, base=None, **suite_fields) -> Results:
    """A failed run of these tests as the gate decides it, without a baseline."""
    suite = build.suite_result("Refunds", *tests, **suite_fields)
    run = build.results(suite, **({"run": base} if base else {}))
    return replace(cases.decided(run, cases.base_run(suite), Policy()), comparison=None)


@each_row(
    ("results", "verdict"),
    [
        (lambda: compared("pppf", "pppp", min_score=85), "Evals failed: 1 test broke in this PR"),
        (lambda: compared("ffpp", "pppp", git=Git(), min_score=85), "Evals failed: 2 tests broke since main"),
        (lambda: compared("pppf", "pppp"), "Evals passed: 75 / 100, but 1 test fails that passed on main"),
        (
            lambda: compared("pppf", "pppp", min_score=85, of_base_commit=False),
            "Evals failed: 1 test broke since main",
        ),
        (lambda: compared("pppf", "pppf"), f"Evals passed: {UNCHANGED}"),
        (lambda: compared("pppp", "pppf"), "Evals passed: 100 / 100, 25 points above main"),
        (lambda: compared("ppff", "pphh"), "Evals passed: 50 / 100, 25 points below main"),
        (lambda: compared("pphf", "pphf", min_score=80), "Evals failed: 62 / 100, 80 required"),
        (comment_cases.no_baseline, "Evals passed: 91 / 100, no baseline"),
        (cases.incomparable, "Evals passed: 100 / 100, not comparable with the baseline"),
        (build.results, "Evals passed: 100 / 100"),
        (comment_cases.invalid, "No verdict: 24 of 51 trials errored or could not be judged"),
        (lambda: no_verdict(130, "the run stopped early: SIGTERM"), "No verdict: the run was interrupted"),
        (
            lambda: no_verdict(3, "1 of 2 shards is missing: shard 2"),
            "No verdict: 1 of 2 shards is missing: shard 2",
        ),
        (lambda: gated(OVER_COST), "Evals failed: the run cost $0.61, at most $0.50 allowed"),
        (  # a test that the gate allows to fail is no reason
            lambda: replace(compared("pppf", "pppp"), gate=build.decision(OVER_COST)),
            "Evals failed: the run cost $0.61, at most $0.50 allowed",
        ),
        (
            lambda: gated(CRITICAL_FAILED, OVER_COST),
            "Evals failed: the critical test “Late parcel” failed, and 1 more check failed",
        ),
        (
            lambda: gated(OVER_COST, CRITICAL_FAILED),
            "Evals failed: the run cost $0.61, at most $0.50 allowed, and 1 critical test failed",
        ),
    ],
)
def test_verdict_names_the_change_or_the_failed_check(results, verdict):
    assert story_of(results()).verdict() == verdict


def test_untrusted_results_are_recognized_and_marked_in_the_verdict():
    run = compared("pppf", "pppf")
    assert story_of(run).trust() is story_of(run).trust(comment_cases.HEAD) is Trust.OWN
    assert story_of(run).trust(comment_cases.HEAD, foreign=True) is Trust.FORK
    assert story_of(run).trust("b" * 40, foreign=True) is Trust.OTHER_COMMIT
    checks = (build.check("min-score", 80, 75, passed=False),)
    forged = replace(run, gate=build.decision(*checks, passed=True, exit_code=0))
    assert story_of(forged).trust() is Trust.CONTRADICTORY
    for trust, heading in (
        (Trust.FORK, f"Evals passed (reported by the fork, unverified): {UNCHANGED}"),
        (Trust.OTHER_COMMIT, f"Evals passed (results of another commit): {UNCHANGED}"),
        (Trust.CONTRADICTORY, "No verdict: the results contradict their own checks"),
    ):
        assert story_of(run).verdict(trust) == heading


def test_numbers_line_compares_scores_on_shared_tests_and_counts_passed_tests():
    run = compared("p" * 15 + "f", "p" * 16, min_score=95)
    assert story_of(run).numbers.text == "93 / 100 (95 required), main has 100 (−7). 15 of 16 tests pass."
    assert story_of(compared("pppf", "pppf")).numbers.text == "3 of 4 tests pass."
    assert story_of(cases.proven()).numbers.text == (
        "78 / 100 (80 required; 75 if undecided counts as failed), compared on 4 of 6 tests: 67, "
        "the baseline has 92 (−25). 3 of 6 tests pass, 1 undecided."
    )


def test_mostly_undecided_run_has_no_score_and_no_proven_drop():
    run = story_of(replace(compared("pppf", "pppf"), decided_share=0.33))
    assert run.verdict() == "Evals passed: most criteria undecided"
    sentence = "Too little was decided for a score (33 % of the criteria's weight). 3 of 4 tests pass."
    assert run.numbers.text == sentence
    decided = comment_cases.bad()
    assert story_of(decided).certainty.sentence.startswith("Proven: the score fell")
    undecided = replace(decided, decided_share=0.3)
    assert story_of(undecided).certainty.sentence == "3 trials per test"


@pytest.mark.parametrize(
    ("base", "head", "fell", "change"),
    [(93.9, 71.2, "22", "−22"), (93.2, 71.9, "22", "−22"), (93.9, 88.1, "5.8", "−5")],
)
def test_verdict_and_numbers_line_show_consistent_drop(base, head, fell, change):
    run = compared("pppp", "pppp")
    comparison = replace(run.comparison, base=base, head=head, delta=head - base)
    run = replace(run, comparison=comparison)
    drop = build.check("max-drop", 5, base - head, passed=False)
    story = story_of(replace(run, score=head, gate=build.decision(drop, exit_code=1)))
    assert story.verdict() == f"Evals failed: the score fell by {fell}, at most 5 allowed"
    assert f"({change})" in story.numbers.text


def test_next_step_warns_if_a_rerun_would_probably_fail_again():
    flaky = comment_cases.flaky()
    assert flaky.odds.share > 0.5
    assert "If all pass, note that a rerun would probably fail again" in story_of(flaky).next_step.text
    likely = replace(flaky, odds=replace(flaky.odds, share=0.2))
    assert "If all pass, rerun this check." in story_of(likely).next_step.text


def test_next_step_has_commands_report_and_exit_code():
    step = story_of(compared("pppf", "pppp", min_score=85)).next_step
    assert "".join(f"{part.gap}{part.text}" for part in step.parts).strip() == step.text
    show, repeat = step.commands
    assert show == "ci-evals show --failed"
    assert repeat.startswith("ci-evals run ")
    kinds = {part.kind: part.text for part in step.parts}
    assert kinds[PartKind.REPORT] == "in report.html"
    assert kinds[PartKind.EXIT_CODE] == "Exit code 1."
    assert step.text.endswith("Exit code 1.")


def test_heading_states_change_even_if_less_than_a_point():
    for score, words in ((93.2, "less than a point below main"), (94.0, "1 point above main")):
        run = comment_cases.passed_example()
        comparison = replace(run.comparison, base=93.9, head=score, delta=score - 93.9)
        changed = replace(run, score=score, comparison=comparison)
        assert story_of(changed).verdict() == f"Evals passed: {int(score)} / 100, {words}"


def test_score_below_minimum_is_rounded_down_in_heading():
    for score, floor in ((96.8, 97), (96.96, 96.97), (96.99, 97)):
        check = build.check("min-score", floor, score, passed=False)
        failed = replace(gated(check, passed=False), score=score)
        assert story_of(failed).verdict().endswith(f"96 / 100, {floor} required")


def test_changed_test_is_in_exactly_one_list():
    results = compared("fuhpf", "pphfh")
    news = story_of(results).change.news
    lists = (news.broke, news.unjudged, news.failed_before, news.worse, news.fixed)
    assert [[int(test.name[-1]) for test in tests] for tests in lists] == [[1], [2], [3], [5], [4]]
    assert (news.failed, news.dropped) == ((), ())
    outcomes = {1: Became.BROKE, 2: Became.UNJUDGED, 4: Became.FIXED, 5: Became.DROPPED}
    assert became(results) == {("Refunds", f"Test {number}"): one for number, one in outcomes.items()}


def test_failed_test_without_baseline_is_listed_as_failed_not_as_broken():
    results = comment_cases.no_baseline()
    news = story_of(results).change.news
    assert [test.name for test in news.failed] == ["Refund for a gift", "Partial refund", "Asks in Spanish"]
    assert {test.file for test in news.failed} == {"evals/refunds.yaml", "evals/handover.yaml"}
    assert (news.broke, became(results)) == ((), {})


def in_rounds(most: int) -> Results:
    """A run in rounds of at most so many trials, decided after the second look."""
    results = comment_cases.flaky()
    rounds = Rounds(looks=(2, most), played=3)
    return replace(results, run=replace(results.run, rounds=rounds))


@pytest.mark.parametrize(("results", "certainty"), [
    (lambda: compared("pppf", "pppp", interval=Interval(low=-48.2, high=-3)),
     ("That the agent got worse is not proven: in a rerun the change may differ by up to 24 points "
     "(one trial per test)")),
    (build.results, "One trial per test: a rerun may differ"),
    (comment_cases.bad, ("Proven: the score fell by more than chance explains (3 trials per test). "
     "Passed in some trials, and may pass in a rerun: Asks in Spanish; Wrong address")),
    (comment_cases.flaky, "That the agent got worse is not proven: it may be chance (3 trials per test)"),
    (cases.unsure, ("That the agent got worse is not proven: it may be chance (5 trials per test). "
     "To be surer, play 14 trials per test")),
    (lambda: compared("fppp", "pfff"),
     "The score did not fall, and single tests can fail by chance (one trial per test)"),
    (comment_cases.no_baseline, "3 trials per test"),
    (lambda: in_rounds(7),
     "That the agent got worse is not proven: it may be chance (3 of at most 7 trials per test)"),
    (lambda: in_rounds(3), "That the agent got worse is not proven: it may be chance (3 trials per test)"),
])  # fmt: skip
def test_certainty_of_change_is_stated_in_one_sentence(results, certainty):
    assert story_of(results()).certainty.sentence == certainty


def test_odds_are_stated_only_from_ten_tests_with_three_trials():
    odds = Odds(share=0.3, checks=(build.check_odds(name="regression", share=0.3),), floor=81.5, loops=3)

    def run(tests: int, trials: str) -> Results:
        played = (cases.played(f"Test {number}", trials) for number in range(tests))
        return build.results(build.suite_result("Refunds", *played), odds=odds)

    assert certainty.odds(run(10, "ppp"))
    assert certainty.odds(run(9, "ppp")) is None
    assert certainty.odds(run(10, "pp")) is None


def test_reason_for_a_missing_comparison_is_given_once():
    reason = "no test was scored on both sides"
    comparison = replace(compared("p", "p").comparison, delta=None, reasons=(reason,))
    check = build.check(name="regression", passed=None, seen=None, note=reason)
    results = build.results(comparison=comparison)
    assert verdict.not_compared(results) == "Not compared with main: no test was scored on both sides."
    checked = replace(results, gate=build.decision(check))
    assert gate.warnings(checked) == ("regression was not checked: no test was scored on both sides.",)
    assert verdict.not_compared(checked) is None


def test_errored_test_is_not_listed_as_failed_in_a_run_without_verdict():
    errored = build.test_result("Late parcel", trials=(build.trial_result(),), outcome="failed", score=None)
    scored = build.test_result("Damaged jug", trials=(build.trial_result(),), outcome="failed", score=0)
    suite = build.suite_result("Refunds", errored, scored)
    failed = build.results(suite, gate=build.decision(exit_code=1))
    without = build.results(suite, gate=build.decision(exit_code=3, reasons=("1 of 2 trials broke off",)))
    assert [one.name for one in story_of(failed).change.news.failed] == ["Late parcel", "Damaged jug"]
    assert [one.name for one in story_of(without).change.news.failed] == ["Damaged jug"]


def test_next_step_advice_depends_on_outcome():
    def next_step(results: Results) -> str:
        return story_of(results).next_step.text

    assert next_step(gated(OVER_COST)).startswith("Look at what takes the cost")
    assert next_step(compared("pppp", "pppp")) == ""
    broken_but_passed = next_step(compared("pppf", "pppp"))
    assert broken_but_passed.startswith(READ_FAILURES)
    assert broken_but_passed.endswith("If any trial fails, fix it.")  # no exit code, no rerun of the check
    imported = build.suite_result("Refunds", cases.played("Late parcel", "f"), adapter="results: rows")
    assert imported.of_other_tool
    assert next_step(build.results(imported, gate=build.decision(exit_code=1))) == ""
    failed = compared("pppf", "pppp", min_score=85)
    origin = Origin(how="replay", run="earlier", started_at=failed.run.started_at)
    replayed = next_step(replace(failed, run=replace(failed.run, origin=origin)))
    assert "--loops" not in replayed
    assert "run without replay" in replayed
    untraced = build.finding("undecided", cause=Cause.NO_TRACE, reason="no spans")
    trials = (build.trial_result(findings=(untraced,)),)
    suite = build.suite_result("Refunds", build.test_result(trials=trials, outcome="undecided", score=None))
    gate = build.decision(exit_code=3, reasons=("nothing could be scored",))
    untraced_step = next_step(build.results(suite, score=None, gate=gate))
    assert "trace: otlp in the suite, or the option otlp" in untraced_step
    assert untraced_step.endswith("Exit code 3.")


@each_row(
    ("trials", "advice"),
    [("fff", f"{READ_FAILURES} {FIX_FAILURES}"), ("ffp", f"{READ_FAILURES} To"), ("ff", "Read what failed")],
)
def test_rerun_is_not_advised_if_all_trials_of_test_failed(trials, advice):
    results = rerun_of(cases.played("Late parcel", trials))
    assert story_of(results).next_step.text.startswith(advice)


@each_row(("name", "file", "command"), [
    ("Late parcel", "evals/refunds.yaml", 'evals/refunds.yaml --test="Late parcel"'),
    ("Rückgabe (spät)", "evals/a.b/c.json", 'evals/a.b/c.json --test="Rückgabe (spät)"'),
    ('Late"; rm -rf ~ #', "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("Costs $(id)", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("A `mark` of code", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("One, two", "evals/refunds.yaml", 'evals/refunds.yaml --test="One, two"'),
    ("Orders::Refund", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("Late  parcel", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("Late ##[error]", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("Refund", "evals/refunds.yaml", "evals/refunds.yaml --test=Refund"),
    ("-n", "evals/refunds.yaml", "evals/refunds.yaml --test=NAME"),
    ("Late parcel", "evals/my refunds;id.yaml", 'SUITE --test="Late parcel"'),
    ("Late parcel", "-rf", 'SUITE --test="Late parcel"'),
    ("Late parcel", "demo:hr", 'demo:hr --test="Late parcel"'),
])  # fmt: skip
def test_rerun_command_quotes_names_that_are_safe_to_paste(name, file, command):
    results = rerun_of(cases.played(name, "fp"), file=file)
    assert f": ci-evals run {command} --loops=10. " in story_of(results).next_step.text
    text = summary(story_of(results))
    assert f": `ci-evals run {command} --loops=10`. " in text


@each_row(("config", "options", "more"), [
    ({"provider": "openai"}, "", False),
    ({"provider": "offline"}, " --provider=offline", False),
    ({"baseUrl": "http://127.0.0.1:8000/v1"}, " --base-url=http://127.0.0.1:8000/v1", False),
    ({"start": "python3 agent.py", "agentId": "shop"}, ' --agent-id=shop --start="python3 agent.py"', False),
    ({"start": "sh -c 'a && b; $HOME'"}, "", True),
    ({"adapterOptions": "options.yaml"}, "", True),
    ({"arms": "arms.yaml"}, "", True),
    ({"provider": 7, "baseUrl": None}, "", False),
])  # fmt: skip
def test_rerun_command_has_the_options_of_agent_and_judge(config, options, more):
    results = rerun_of(cases.played("Late parcel", "fp"), base=build.run_info(config=config))
    assert story_of(results).next_step.commands[1].endswith(f'--test="Late parcel"{options} --loops=10')
    assert ("repeat it, with the other options of this run: " in story_of(results).next_step.text) == more
