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
_READ = "Read what failed in report.html, or by ci-evals show --failed."


def became(results: Results) -> dict[tuple[str, str], Became]:
    """The tests whose outcome changed."""
    return failures.became(results, story_of(results).change.news)


def compared(
    head: str, base: str, *, git: Git = PULL, min_score: float = 0, of_base_commit: bool = True, **fields
) -> Results:
    """A suite of tests with a trial each, a letter for each test, and its comparison with main."""

    def suite(letters: str):
        return build.suite_result(
            "Refunds", *(cases.played(f"Test {number}", letter) for number, letter in enumerate(letters, 1))
        )

    run = build.results(suite(head), run=build.run_info(git=git))
    policy = Policy(min_score=min_score, max_errors=9)
    base_run = cases.base_run(suite(base), git=MAIN)
    found = cases.decided(run, base_run, policy, of_base_commit=of_base_commit)
    return replace(found, comparison=replace(found.comparison, **fields))


def gated(*checks, **fields) -> Results:
    """A run with this decision and no baseline."""
    return build.results(
        build.suite_result("Refunds", cases.played("Late parcel", "h")),
        gate=build.decision(*checks, **fields),
    )


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
        (
            comment_cases.invalid,
            "No verdict: 24 of 51 trials errored or could not be judged",
        ),
        (
            lambda: gated(exit_code=130, passed=False, reasons=("the run stopped early: SIGTERM",)),
            "No verdict: the run was interrupted",
        ),
        (
            lambda: gated(exit_code=3, passed=False, reasons=("1 of 2 shards is missing: shard 2",)),
            "No verdict: 1 of 2 shards is missing: shard 2",
        ),
        (
            lambda: gated(build.check("max-cost", 0.5, 0.61, passed=False)),
            "Evals failed: the run cost $0.61, at most $0.50 allowed",
        ),
        (
            lambda: gated(
                build.check("critical:Late parcel", 100, 0, passed=False),
                build.check("max-cost", 0.5, 0.61, passed=False),
            ),
            "Evals failed: the critical test “Late parcel” failed, and 1 more check failed",
        ),
        (
            lambda: gated(
                build.check("max-cost", 0.5, 0.61, passed=False),
                build.check("critical:Late parcel", 100, 0, passed=False),
            ),
            "Evals failed: the run cost $0.61, at most $0.50 allowed, and 1 critical test failed",
        ),
    ],
)
def test_the_verdict_says_what_happened(results, verdict):
    """In words of the field, with what changed."""
    assert story_of(results()).verdict() == verdict


def test_a_test_that_broke_is_no_reason_where_another_check_failed():
    """A run that costs too much does not fail for a test that the gate allows to fail."""
    run = compared("pppf", "pppp")
    run = replace(run, gate=build.decision(build.check("max-cost", 0.5, 0.61, passed=False)))
    assert story_of(run).verdict() == "Evals failed: the run cost $0.61, at most $0.50 allowed"


@pytest.mark.parametrize(
    ("trust", "verdict"),
    [
        (
            Trust.FORK,
            f"Evals passed (reported by the fork, unverified): {UNCHANGED}",
        ),
        (
            Trust.OTHER_COMMIT,
            f"Evals passed (results of another commit): {UNCHANGED}",
        ),
        (Trust.CONTRADICTORY, "No verdict: the results contradict their own checks"),
    ],
)
def test_results_that_are_not_known_to_be_ours_say_so_in_the_heading(trust, verdict):
    """Nobody takes a fork's numbers for those of this repository."""
    assert story_of(compared("pppf", "pppf")).verdict(trust) == verdict


def test_results_are_trusted_by_what_is_known_of_them():
    """A fork's run, another commit than the pull request's, a decision that its checks contradict."""
    run = compared("pppf", "pppf")
    assert story_of(run).trust() is Trust.OWN
    assert story_of(run).trust(comment_cases.HEAD) is Trust.OWN
    assert story_of(run).trust(comment_cases.HEAD, foreign=True) is Trust.FORK
    assert story_of(run).trust("b" * 40, foreign=True) is Trust.OTHER_COMMIT
    checks = (build.check("min-score", 80, 75, passed=False),)
    forged = replace(run, gate=build.decision(*checks, passed=True, exit_code=0))
    assert story_of(forged).trust() is Trust.CONTRADICTORY


def test_the_line_of_numbers_has_whole_points():
    """93.75 is 93, and the change is between what is shown."""
    run = compared("p" * 15 + "f", "p" * 16, min_score=95)
    assert story_of(run).numbers.text == ("93 / 100 (95 required), main has 100 (−7). 15 of 16 tests pass.")
    passed = compared("pppf", "pppf")
    assert story_of(passed).numbers.text == "3 of 4 tests pass."


@pytest.mark.parametrize(
    ("base", "head", "fell", "change"),
    [(93.9, 71.2, "22", "−22"), (93.2, 71.9, "22", "−22"), (93.9, 88.1, "5.8", "−5")],
)
def test_a_drop_that_failed_is_the_change_beside_it(base, head, fell, change):
    """It has a decimal only where whole points would read as allowed."""
    run = compared("pppp", "pppp")
    comparison = replace(run.comparison, base=base, head=head, delta=head - base)
    run = replace(run, comparison=comparison)
    drop = build.check("max-drop", 5, base - head, passed=False)
    story = story_of(replace(run, score=head, gate=build.decision(drop, exit_code=1)))
    assert story.verdict() == f"Evals failed: the score fell by {fell}, at most 5 allowed"
    assert f"({change})" in story.numbers.text


def test_a_next_step_has_a_link_commands_and_an_exit_code_of_their_own():
    step = story_of(compared("pppf", "pppp", min_score=85)).next_step
    assert "".join(f"{part.gap}{part.text}" for part in step.parts).strip() == step.text
    show, repeat = step.commands
    assert show == "ci-evals show --failed"
    assert repeat.startswith("ci-evals run ")
    kinds = {part.kind: part.text for part in step.parts}
    assert kinds[PartKind.REPORT] == "in report.html"
    assert kinds[PartKind.EXIT_CODE] == "Exit code 1."
    assert step.text.endswith("Exit code 1.")


def test_a_change_below_a_point_is_not_called_the_same():
    for score, words in ((93.2, "less than a point below main"), (94.0, "1 point above main")):
        run = comment_cases.passed_example()
        comparison = replace(run.comparison, base=93.9, head=score, delta=score - 93.9)
        changed = replace(run, score=score, comparison=comparison)
        assert story_of(changed).verdict() == f"Evals passed: {int(score)} / 100, {words}"


def test_a_score_just_below_its_minimum_never_reads_as_the_minimum():
    """Points are cut: 96.8 with a minimum of 97, and 96.96 with one of 96.97."""
    for score, floor, shown in ((96.8, 97, "96"), (96.96, 96.97, "96"), (96.99, 97, "96")):
        check = build.check("min-score", floor, score, passed=False)
        failed = replace(gated(check, passed=False), score=score)
        assert story_of(failed).verdict().endswith(f"{shown} / 100, {floor} required")


def test_a_score_over_part_of_the_tests_is_not_compared_with_one_over_all():
    """The line has the score of that part too."""
    assert story_of(cases.proven()).numbers.text == (
        "78 / 100 (80 required; 75 if undecided counts as failed), compared on 4 of 6 tests: 67, "
        "the baseline has 92 (−25). 3 of 6 tests pass, 1 undecided."
    )


def test_no_score_is_shown_where_little_was_decided():
    """A score over a third of the weight says nothing."""
    run = replace(compared("pppf", "pppf"), decided_share=0.33)
    assert story_of(run).verdict() == "Evals passed: most criteria undecided"
    assert story_of(run).numbers.text == (
        "Too little was decided for a score (33 % of the criteria's weight). 3 of 4 tests pass."
    )


def test_every_test_is_in_one_list():
    """What broke, what could not be judged, what failed before, what was fixed, and what fell."""
    found = story_of(compared("fuhpf", "pphfh")).change.news
    assert [test.name for test in found.broke] == ["Test 1"]
    assert [test.name for test in found.unjudged] == ["Test 2"]
    assert [test.name for test in found.failed_before] == ["Test 3"]
    assert [test.name for test in found.worse] == ["Test 5"]
    assert [test.name for test in found.fixed] == ["Test 4"]
    assert not found.failed
    assert not found.dropped
    assert became(compared("fuhpf", "pphfh")) == {
        ("Refunds", "Test 1"): Became.BROKE,
        ("Refunds", "Test 2"): Became.UNJUDGED,
        ("Refunds", "Test 4"): Became.FIXED,
        ("Refunds", "Test 5"): Became.DROPPED,
    }


def test_without_a_baseline_all_that_fail_are_failed():
    """Nothing is said to have broken."""
    found = story_of(comment_cases.no_baseline()).change.news
    assert [test.name for test in found.failed] == ["Refund for a gift", "Partial refund", "Asks in Spanish"]
    assert {test.file for test in found.failed} == {"evals/refunds.yaml", "evals/handover.yaml"}
    assert not found.broke
    assert became(comment_cases.no_baseline()) == {}


def in_rounds(most: int) -> Results:
    """A run in rounds of at most so many trials, decided after the second look."""
    results = comment_cases.flaky()
    rounds = Rounds(looks=(2, most), played=3)
    return replace(results, run=replace(results.run, rounds=rounds))


@pytest.mark.parametrize(
    ("results", "certainty"),
    [
        (
            lambda: compared("pppf", "pppp", interval=Interval(low=-48.2, high=-3)),
            (
                "That the agent got worse is not proven: in a rerun the change may differ by up to 24 points "
                "(one trial per test)"
            ),
        ),
        (build.results, "One trial per test: a rerun may differ"),
        (
            comment_cases.bad,
            (
                "Proven: the score fell by more than chance explains (3 trials per test). "
                "Passed in some trials, and may pass in a rerun: Asks in Spanish; Wrong address"
            ),
        ),
        (
            comment_cases.flaky,
            "That the agent got worse is not proven: it may be chance (3 trials per test)",
        ),
        (
            cases.unsure,
            (
                "That the agent got worse is not proven: it may be chance (5 trials per test). "
                "To be surer, play 14 trials per test"
            ),
        ),
        (
            lambda: compared("fppp", "pfff"),
            "The score did not fall, and single tests can fail by chance (one trial per test)",
        ),
        (comment_cases.no_baseline, "3 trials per test"),
        (
            lambda: in_rounds(7),
            "That the agent got worse is not proven: it may be chance (3 of at most 7 trials per test)",
        ),
        (
            lambda: in_rounds(3),
            "That the agent got worse is not proven: it may be chance (3 trials per test)",
        ),
    ],
)
def test_one_sentence_says_how_sure_the_result_is(results, certainty):
    """Nothing contradicts it: it is the only one."""
    assert story_of(results()).certainty.sentence == certainty


def test_odds_are_told_of_runs_that_are_large_enough():
    """Ten tests of three trials."""
    odds = Odds(share=0.3, checks=(build.check_odds(name="regression", share=0.3),), floor=81.5, loops=3)

    def run(tests: int, trials: str) -> Results:
        played = (cases.played(f"Test {number}", trials) for number in range(tests))
        return build.results(build.suite_result("Refunds", *played), odds=odds)

    assert certainty.odds(run(10, "ppp"))
    assert certainty.odds(run(9, "ppp")) is None
    assert certainty.odds(run(10, "pp")) is None


def test_why_nothing_was_compared_is_said_once():
    """By a check that needs the comparison, or else by itself."""
    comparison = replace(
        compared("p", "p").comparison, delta=None, reasons=("no test was scored on both sides",)
    )
    check = build.check(name="regression", passed=None, seen=None, note="no test was scored on both sides")
    results = build.results(comparison=comparison)
    assert verdict.not_compared(results) == "Not compared with main: no test was scored on both sides."
    checked = replace(results, gate=build.decision(check))
    assert gate.warnings(checked) == ("regression was not checked: no test was scored on both sides.",)
    assert verdict.not_compared(checked) is None


def test_a_test_that_only_ended_in_an_error_did_not_break():
    """Where that left the run without a verdict: the reasons name it. One that was scored is still named."""
    errored = build.test_result("Late parcel", trials=(build.trial_result(),), outcome="failed", score=None)
    scored = build.test_result("Damaged jug", trials=(build.trial_result(),), outcome="failed", score=0)
    suite = build.suite_result("Refunds", errored, scored)
    failed = build.results(suite, gate=build.decision(exit_code=1))
    without = build.results(suite, gate=build.decision(exit_code=3, reasons=("1 of 2 trials broke off",)))
    assert [one.name for one in story_of(failed).change.news.failed] == ["Late parcel", "Damaged jug"]
    assert [one.name for one in story_of(without).change.news.failed] == ["Damaged jug"]


def test_a_run_that_is_only_over_a_limit_says_where_to_look():
    costly = gated(build.check("max-cost", 0.5, 0.61, passed=False))
    assert story_of(costly).next_step.text.startswith("Look at what takes the cost")


def test_a_passed_run_in_which_a_test_broke_has_a_next_step():
    """Without an exit code, and without a rerun of the check."""
    step = story_of(compared("pppf", "pppp")).next_step.text
    assert step.startswith(_READ)
    assert step.endswith("If any trial fails, fix it.")
    assert story_of(compared("pppp", "pppp")).next_step.text == ""


@pytest.mark.parametrize(
    ("trials", "advice"),
    [
        ("fff", f"{_READ} {FIX_FAILURES}"),
        ("ffp", f"{_READ} To"),
        ("ff", "Read what failed"),
    ],
)
def test_a_rerun_is_advised_only_where_it_may_show_something_new(trials, advice):
    """A test that failed in each of three trials needs none."""
    failed = build.suite_result("Refunds", cases.played("Late parcel", trials))
    results = replace(cases.decided(build.results(failed), cases.base_run(failed), Policy()), comparison=None)
    assert story_of(results).next_step.text.startswith(advice)


@pytest.mark.parametrize(
    ("name", "file", "command"),
    [
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
    ],
)
def test_the_command_that_repeats_a_test_can_be_pasted(name, file, command):
    """A name that a shell or Markdown would read otherwise, or --test would split, is left to the reader."""
    failed = build.suite_result("Refunds", cases.played(name, "fp"), file=file)
    results = replace(cases.decided(build.results(failed), cases.base_run(failed), Policy()), comparison=None)
    assert f": ci-evals run {command} --loops=10. " in story_of(results).next_step.text
    text = summary(story_of(results))
    assert f": `ci-evals run {command} --loops=10`. " in text


def test_a_rerun_that_would_mostly_fail_again_is_not_advised():
    """Ten passes of one test do not lift a score that is too close to its floor."""
    flaky = comment_cases.flaky()
    assert flaky.odds.share > 0.5
    assert "If all pass, note that a rerun would probably fail again" in story_of(flaky).next_step.text
    seldom = replace(flaky, odds=replace(flaky.odds, share=0.2))
    assert "If all pass, rerun this check." in story_of(seldom).next_step.text


@pytest.mark.parametrize(
    ("config", "options", "more"),
    [
        ({"provider": "openai"}, "", False),
        ({"provider": "offline"}, " --provider=offline", False),
        ({"baseUrl": "http://127.0.0.1:8000/v1"}, " --base-url=http://127.0.0.1:8000/v1", False),
        (
            {"start": "python3 agent.py", "agentId": "shop"},
            ' --agent-id=shop --start="python3 agent.py"',
            False,
        ),
        ({"start": "sh -c 'a && b; $HOME'"}, "", True),
        ({"adapterOptions": "options.yaml"}, "", True),
        ({"arms": "arms.yaml"}, "", True),
        ({"provider": 7, "baseUrl": None}, "", False),
    ],
)
def test_a_test_is_repeated_with_the_same_agent_and_judge(config, options, more):
    """Else ten passes of another agent would say that all is well."""
    failed = build.suite_result("Refunds", cases.played("Late parcel", "fp"))
    run = build.run_info(config=config)
    results = replace(
        cases.decided(build.results(failed, run=run), cases.base_run(failed), Policy()), comparison=None
    )
    assert story_of(results).next_step.commands[1].endswith(f'--test="Late parcel"{options} --loops=10')
    assert ("repeat it, with the other options of this run: " in story_of(results).next_step.text) == more


def test_few_decided_verdicts_give_no_certainty():
    """No sentence on the score stands beside the one that there is none."""
    sure = comment_cases.bad()
    assert story_of(sure).certainty.sentence.startswith("Proven: the score fell")
    little = replace(sure, decided_share=0.3)
    assert story_of(little).certainty.sentence == "3 trials per test"


def test_no_run_is_advised_for_the_results_of_another_tool():
    """It plays its tests itself."""
    suite = build.suite_result("Refunds", cases.played("Late parcel", "f"), adapter="results: rows")
    assert suite.of_other_tool
    assert story_of(build.results(suite, gate=build.decision(exit_code=1))).next_step.text == ""


def test_a_replay_is_not_to_be_repeated():
    """It gives the same answers however often it is played."""
    results = compared("pppf", "pppp", min_score=85)
    origin = Origin(how="replay", run="earlier", started_at=results.run.started_at)
    replayed = replace(results, run=replace(results.run, origin=origin))
    said = story_of(replayed).next_step.text
    assert "--loops" not in said
    assert "run without replay" in said


def test_options_that_help_are_named_if_too_little_was_decided():
    untraced = build.finding("undecided", cause=Cause.NO_TRACE, reason="no spans")
    test = build.test_result(
        trials=(build.trial_result(findings=(untraced,)),), outcome="undecided", score=None
    )
    reasons = ("nothing could be scored",)
    results = build.results(
        build.suite_result("Refunds", test), score=None, gate=build.decision(exit_code=3, reasons=reasons)
    )
    said = story_of(results).next_step.text
    assert "trace: otlp in the suite, or the option otlp" in said
    assert said.endswith("Exit code 3.")
