"""The console's text: short, grouped, and honest about colours."""

import re
from dataclasses import replace

import builders as build
import cases
import pytest
from each_row import each_row
from rich.cells import cell_len

from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import Odds
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports import console
from ci_evals.reports.markdown import documents
from ci_evals.reports.story.gate import check_name
from ci_evals.reports.story.story import story_of

NO_DROP = "no significant drop (p above 0.05)"


def rendered(*tests, verbose: bool = False, width: int | None = None, **fields) -> str:
    """The console's text of a run of one suite of these tests."""
    results = build.results(*([build.suite_result("Refunds", *tests)] if tests else []), **fields)
    return console.render(story_of(results), verbose=verbose, width=width)


def without_colors(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def trials_test(*trials, name: str = "Pays", **fields):
    return build.test_result(name, trials=trials, **fields)


def test_error_shared_by_tests_is_shown_once_with_their_names():
    error = "the agent at http://localhost:9 refused the connection"
    lost = build.trial_result(status=EndState.FAILED, error=error, findings=())
    text = rendered(*(trials_test(lost, lost, name=f"Test {number}") for number in range(12)))
    assert text.count("refused the connection") == 1
    assert "24 trials errored: the agent at http://localhost:9 refused the connection" in text
    assert "Test 0; Test 1; Test 2; and 9 more tests" in text


def test_expected_agent_error_of_a_passed_test_is_not_shown():
    expected = build.finding(strict="escalated_due_to_error")
    trial = build.trial_result(status=EndState.AGENT_ERROR, findings=(expected,))
    assert "error of the agent" not in rendered(trials_test(trial, outcome="passed", passed=True))


def test_console_mentions_missing_judge_for_passed_and_unscored_tests():
    unjudged = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")
    trial = build.trial_result(findings=(build.finding(), unjudged))
    text = rendered(trials_test(trial, outcome="passed", passed=True))
    assert "passed (1 criterion not judged)  100.0" in text
    assert "No judge was configured: 1 criterion is undecided." in text
    unscored = trials_test(build.trial_result(findings=(unjudged,)), score=None, outcome="passed")
    (row,) = [line for line in rendered(unscored).splitlines() if line.startswith("  Pays")]
    assert "not scored" in row
    assert "passed" not in row


def test_only_the_first_of_more_than_two_failed_criteria_is_shown_unless_verbose():
    findings = [build.finding("failed", criterion=f"Rule {n}", reason=f"broken {n}") for n in (1, 2, 3, 4)]
    test = trials_test(build.trial_result(findings=findings))
    short, long = rendered(test), rendered(test, verbose=True)
    assert "Rule 1" in short
    assert "Rule 2" not in short
    assert "3 more failed criteria (set verbose to see all)" in short
    assert all(f"✗ Rule {n}: failed\n      Turn 1: broken {n}" in long for n in (1, 2, 3, 4))
    few = rendered(trials_test(build.trial_result(findings=findings[:2])))
    assert all(f"✗ Rule {n}: failed" in few for n in (1, 2))


def test_failed_criterion_has_the_reason_of_a_completed_trial():
    lost = build.trial_result(1, status=EndState.FAILED, findings=(build.finding("failed", reason="cut"),))
    played = build.trial_result(2, findings=(build.finding("failed", reason="never executed"),))
    text = rendered(trials_test(lost, played), verbose=True)
    assert "✗ The refund workflow starts: failed\n      Turn 1: never executed" in text


def test_colored_output_has_the_plain_text_and_no_escape_sequence_of_results():
    for make in cases.CASES.values():
        colored, plain = console.render(story_of(make()), color=True), console.render(story_of(make()))
        assert "\x1b" not in plain
        assert colored != plain
        assert without_colors(colored) == plain
    for make in cases.COMPARED.values():
        colored = console.comparison(story_of(make()), color=True)
        assert without_colors(colored) == console.comparison(story_of(make()))
    results = build.results(build.suite_result("\x1b[5mblink\x1b[0m", build.test_result("\x1b]0;title\x07x")))
    text = console.render(story_of(results), color=True)
    assert "\x1b[5m" not in re.findall(r"\x1b[^m]*m", text)
    assert "\x1b]" not in text


def test_console_heading_follows_exit_code_unless_the_failed_gate_is_not_enforced():
    for code, heading in ((1, "✗ Evals failed"), (3, "! No verdict"), (70, "! No verdict")):
        assert heading in rendered(gate=build.decision(passed=False, exit_code=code))
    interrupted = rendered(gate=build.decision(passed=False, exit_code=130))
    assert "! No verdict: the run was interrupted" in interrupted
    assert "✓ Evals passed" in rendered(gate=build.decision(passed=True, exit_code=0))
    check = build.check(name="min-score", required=80, seen=10, passed=False)
    text = rendered(gate=build.decision(check, exit_code=0))
    assert "✗ Evals failed: " in text
    assert "no-gate" in text


def gate_row(**fields) -> list[str]:
    """The cells of a check behind its name: the decision, what is required, and what was seen."""
    check = build.check(**{"name": "min-score", "required": 80, "seen": 90, "passed": True} | fields)
    text = console.render(story_of(build.results(gate=build.decision(check))), verbose=True)
    (row,) = [line for line in text.splitlines() if line.startswith(f"  {check_name(check)}  ")]
    _, *cells = re.split(r"  +", row.strip())
    return cells


@each_row(("check", "row"), [
    ({"interval": Interval(low=79.04, high=91)}, ["at least 80", "90.0 (79.0 to 91.0)"]),
    ({"seen_if_undecided_failed": 79.96, "interval": Interval(low=70, high=85)},
     ["at least 80", "79.9 (70.0 to 85.0) if undecided counts as failed"]),
    ({"name": "max-drop", "required": 5, "seen": 3.65}, ["at most 5", "3.7"]),
    ({"name": "max-drop", "required": 5, "seen": 5.000000000000001}, ["at most 5", "5"]),
    ({"name": "max-drop suite:X", "required": 5, "seen": -2.15}, ["at most 5", "rose by 2.1"]),
    ({"name": "max-drop", "required": 5, "seen": 1, "interval": Interval(low=-3, high=5)},
     ["at most 5", "1"]),
    ({"name": "max-drop", "required": 5, "seen": -1, "seen_if_undecided_failed": 6.01},
     ["at most 5", "6.1 if undecided counts as failed"]),
    ({"name": "regression", "required": 0, "seen": 2}, ["no newly failing test", "2"]),
    ({"name": "regression", "required": 0.05, "seen": 0.062}, [NO_DROP, "p = 0.06"]),
    ({"name": "regression", "required": 0.05, "seen": 0.0001}, [NO_DROP, "p below 0.001"]),
    ({"name": "regression", "required": 0.05, "seen": None}, [NO_DROP, "n/a"]),
    ({"name": "max-cost", "required": 0.5, "seen": 0.50001}, ["at most $0.50", "$0.5001"]),
    ({"name": "max-p95-latency", "required": 2.5, "seen": 2.51}, ["at most 2.5 s", "2.51 s"]),
    ({"name": "max-p95-latency", "required": 0.05, "seen": 0.08}, ["at most 0.05 s", "0.080 s"]),
    ({"name": "max-drop", "required": 2.25, "seen": 2.251}, ["at most 2.25", "2.26"]),
    ({"required": 79.95, "seen": 79.96}, ["at least 79.95", "79.96"]),
    ({"name": "max-errors", "required": 0, "seen": 3}, ["at most 0", "3"]),
    ({"name": "critical:x", "required": 100, "seen": 66.66, "note": "2 of 3 passed"},
     ["all trials pass", "2 of 3 passed"]),
    ({"name": "critical:x", "required": 100, "seen": 66.66}, ["all trials pass", "66.6"]),
])  # fmt: skip
def test_gate_checks_are_shown_in_their_unit_and_never_rounded_up(check, row):
    assert gate_row(**check) == ["passed", *row]


def odds_of(**shares) -> Odds:
    """Odds of these checks, with the floor 78.5."""
    checks = tuple(build.check_odds(name.replace("_", "-"), share) for name, share in shares.items())
    return Odds(share=min(1.0, sum(shares.values())), checks=checks, floor=78.5, loops=3)


@each_row(("odds", "line"), [
    (odds_of(critical=0.04, max_drop=0.05, min_score=0.03),
     "would fail this gate in about 12 % of runs (max-drop, critical and 1 more)."),
    (odds_of(min_score=0.112),
     "in about 12 % of runs (min-score). It would score below 78.5 in fewer than 5 % of runs."),
    (odds_of(min_score=0.02, regression=0.1),
     "would fail this gate in about 12 % of runs (mostly regression)."),
])  # fmt: skip
def test_odds_are_shown_only_by_verbose_and_for_large_runs(odds, line):
    tests = [cases.played(f"Test {number}", "ppp") for number in range(10)]
    assert line in rendered(*tests, odds=odds, verbose=True)
    assert "would fail this gate" not in rendered(*tests, odds=odds)
    assert "would fail this gate" not in rendered(*tests[:9], odds=odds, verbose=True)


def test_console_lists_failed_checks_first_names_five_and_shows_the_deciding_score():
    check = build.check(name="min-score", required=80, seen=100, seen_if_undecided_failed=79.96, passed=False)
    text = rendered(gate=build.decision(check), verbose=True)
    assert "min-score  failed  at least 80  79.9 if undecided counts as failed" in text
    failed = ("max-drop", "critical:X", *(f"tag:{letter}" for letter in "bcde"))
    checks = [build.check("min-score", 1, 0)] + [build.check(name, 1, 0, passed=False) for name in failed]
    text = rendered(gate=build.decision(*checks), verbose=True)
    named = [f"tag:{letter} (the score of the tag “{letter}” is 0, at least 1 required)" for letter in "bcd"]
    assert f"  Failed checks: max-drop; critical:X; {'; '.join(named)}; and 1 more." in text
    assert text.index("  critical:X  ") < text.index("  min-score  ")


def test_reasons_for_no_verdict_are_each_given_once():
    results = cases.unproven()
    reasons = ("nothing could be scored", "the run stopped early: the time is up")
    story = story_of(replace(results, gate=replace(results.gate, exit_code=3, reasons=reasons)))
    for text in (console.render(story), console.comparison(story)):
        assert "! No verdict: nothing could be scored\n" in text
        assert text.count("othing could be scored") == 1
        assert "The run stopped early: the time is up" in text


def test_unjudged_tests_are_listed_as_not_judged_now_rather_than_broken():
    head = [cases.played("Lost parcel", "ppu"), cases.played("Gift card", "ppp")]
    base = [cases.played(test.name, "ppp") for test in head]
    run = build.results(build.suite_result("Refunds", *head))
    run = cases.against(run, cases.base_run(build.suite_result("Refunds", *base)))
    for text in (console.render(story_of(run)), console.comparison(story_of(run))):
        assert "not judged now\n! Lost parcel (100 → 100, undecided)\n" in text
        assert "Broke" not in text


def test_judge_error_of_several_tests_is_given_once_with_a_remedy():
    judged = build.finding("undecided", cause=Cause.JUDGE_ERROR, reason="status 503")
    names = ("Lost parcel", "Gift card")
    trials = (build.trial_result(findings=(judged,)),)
    head = build.suite_result("Refunds", *(build.test_result(name, trials=trials) for name in names))
    base = build.suite_result("Refunds", *(cases.played(name, "p") for name in names))
    errors = build.check(name="max-errors", required=0, seen=2, passed=False)
    gate = build.decision(errors, exit_code=3, reasons=("2 of 2 trials could not be judged",))
    run = cases.against(build.results(head, gate=gate), cases.base_run(base))
    text = console.render(story_of(run))
    assert text.count("status 503") == 1
    assert "failed" not in text
    assert "Not compared" not in text
    assert (
        "\n\nLook first at the judge's model or its network (2 criteria). Fix that and "
        "rerun. Read each error in report.html, or by ci-evals show. "
        "max-errors allows 0 errored or undecided trials; there were 2."
    ) in text


def test_comparison_report_has_no_verdict_without_checks_or_heading_if_incomparable():
    story = story_of(replace(cases.unsure(), gate=build.decision()))
    text = console.comparison(story)
    assert text.splitlines()[-1].startswith("  Score 90.0 (66.9 to 97.1), baseline 95.8")
    assert "gate" not in text
    markdown = documents.comparison(story)
    assert markdown.startswith("## Compared with the baseline\n\nScore 90.0 (66.9 to 97.1), baseline 95.8")
    assert "**Checks**" not in markdown
    result = cases.against(cases.invalid(), cases.invalid())
    assert "Compared with the baseline" not in console.render(story_of(result), verbose=True)


WIDE = "退款" * 40
LONG = "https://example.org/" + "x" * 150


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(width, verbose):
    finding = build.finding("failed", criterion=WIDE, reason=f"{LONG} {WIDE} " * 3)
    test = build.test_result(f"{WIDE} {LONG}", trials=(build.trial_result(findings=(finding,)),))
    results = build.results(build.suite_result(WIDE, test, build.test_result("Pays")))
    for text in (
        console.render(story_of(results), width=width, verbose=verbose, color=True),
        *(console.render(story_of(make()), width=width, verbose=verbose) for make in cases.CASES.values()),
        *(console.comparison(story_of(make()), width=width) for make in cases.COMPARED.values()),
    ):
        assert max(map(cell_len, without_colors(text).splitlines())) <= width


def test_narrow_terminal_shortens_names_and_keeps_numbers():
    name = "Never tells a customer what another customer has paid for the same order"
    test = build.test_result(name)
    (row,) = [line for line in rendered(test, width=60).splitlines() if line.startswith("  Never")]
    assert row == "  Never tells a c…  passed  100.0         1 of 1       3.5 s"
    assert f"  {name}  passed  100.0         1 of 1       3.5 s" in rendered(test)


def test_console_states_trials_duration_flaky_tests_and_why_the_cost_is_unknown():
    text = console.render(story_of(cases.proven()))
    assert "30 trials, 2 m 3 s, 1 flaky test." in text
    assert "The cost is unknown: no price for gpt-next" in text


def test_console_mentions_chance_at_most_once():
    for make in cases.COMPARED.values():
        assert console.render(story_of(make())).count("chance") <= 1
        assert "oise alone" not in console.render(story_of(make()), verbose=True)
