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


def test_one_cause_is_shown_once():
    """An agent that is not there makes one message, however many trials it spoils."""
    lost = build.trial_result(
        status=EndState.FAILED, error="the agent at http://localhost:9 refused the connection", findings=()
    )
    tests = [build.test_result(f"Test {number}", trials=(lost, lost)) for number in range(12)]
    text = console.render(story_of(build.results(build.suite_result("Refunds", *tests))))
    assert text.count("refused the connection") == 1
    assert "24 trials errored: the agent at http://localhost:9 refused the connection" in text
    assert "Test 0; Test 1; Test 2; and 9 more tests" in text


def test_an_error_that_the_test_wants_is_no_trouble():
    """A test of how the agent errs passes when it errs."""
    wanted = build.finding(strict="escalated_due_to_error")
    trial = build.trial_result(status=EndState.AGENT_ERROR, findings=(wanted,))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    assert "error of the agent" not in console.render(
        story_of(build.results(build.suite_result("Refunds", test)))
    )


def test_a_pass_without_a_judge_names_what_is_undecided():
    """Offline a test may pass with judged criteria open; the table says so."""
    unjudged = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")
    trial = build.trial_result(findings=(build.finding(), unjudged))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    text = console.render(story_of(build.results(build.suite_result("Refunds", test))))
    assert "passed (1 criterion not judged)  100.0" in text
    assert "No judge was configured: 1 criterion is undecided." in text


def test_the_first_failed_criterion_is_named_and_verbose_names_all():
    """Short by default, complete when asked."""
    findings = [build.finding("failed", criterion=f"Rule {n}", reason=f"broken {n}") for n in (1, 2, 3, 4)]
    results = build.results(
        build.suite_result(
            "Refunds", build.test_result("Pays", trials=(build.trial_result(findings=findings),))
        )
    )
    short, long = console.render(story_of(results)), console.render(story_of(results), verbose=True)
    assert "Rule 1" in short
    assert "Rule 2" not in short
    assert "3 more failed criteria (set verbose to see all)" in short
    assert all(f"✗ Rule {n}: failed\n      Turn 1: broken {n}" in long for n in (1, 2, 3, 4))
    few = build.trial_result(findings=findings[:2])
    text = console.render(
        story_of(build.results(build.suite_result("Refunds", build.test_result(trials=(few,)))))
    )
    assert all(f"✗ Rule {n}: failed" in text for n in (1, 2))


def test_a_failure_is_shown_by_a_trial_that_was_played_to_its_end():
    """What a trial that was cut off lacks made no test fail."""
    lost = build.trial_result(1, status=EndState.FAILED, findings=(build.finding("failed", reason="cut"),))
    played = build.trial_result(2, findings=(build.finding("failed", reason="never executed"),))
    text = console.render(
        story_of(build.results(build.suite_result("Refunds", build.test_result(trials=(lost, played))))),
        verbose=True,
    )
    assert "✗ The refund workflow starts: failed\n      Turn 1: never executed" in text


def test_colours_are_paint_and_nothing_else():
    """With and without colours the words are the same."""
    for make in cases.CASES.values():
        painted, plain = console.render(story_of(make()), color=True), console.render(story_of(make()))
        assert "\x1b" not in plain
        assert painted != plain
        assert re.sub(r"\x1b\[\d+m", "", painted) == plain
    for make in cases.COMPARED.values():
        painted = console.comparison(story_of(make()), color=True)
        assert re.sub(r"\x1b\[\d+m", "", painted) == console.comparison(story_of(make()))


def test_an_escape_of_the_agent_is_not_painted():
    """Only our own colours reach the terminal."""
    results = build.results(build.suite_result("\x1b[5mblink\x1b[0m", build.test_result("\x1b]0;title\x07x")))
    assert re.findall(r"\x1b[^m]*m", console.render(story_of(results), color=True)).count("\x1b[5m") == 0
    assert "\x1b]" not in console.render(story_of(results), color=True)


def test_a_floor_shows_the_score_that_decides_it():
    """The score that decides stands beside the one shown."""
    check = build.check(name="min-score", required=80, seen=100, seen_if_undecided_failed=79.96, passed=False)
    text = console.render(story_of(build.results(gate=build.decision(check))), verbose=True)
    assert "min-score  failed  at least 80  79.9 if undecided counts as failed" in text


def test_a_gate_that_is_only_reported_says_so():
    """--no-gate exits 0, but the run failed for all that."""
    check = build.check(name="min-score", required=80, seen=10, passed=False)
    text = console.render(story_of(build.results(gate=build.decision(check, exit_code=0))))
    assert "✗ Evals failed: " in text
    assert "no-gate" in text


def test_each_exit_code_has_its_own_words():
    """A run that a bug of ours ended is not called a failed one."""

    def console_text(code: int, *, passed: bool = False) -> str:
        return console.render(story_of(build.results(gate=build.decision(passed=passed, exit_code=code))))

    assert "✓ Evals passed" in console_text(0, passed=True)
    assert "✗ Evals failed" in console_text(1)
    assert "! No verdict" in console_text(3)
    assert "! No verdict" in console_text(70)
    assert "! No verdict: the run was interrupted" in console_text(130)


def gate_row(**fields) -> list[str]:
    """The cells of a check behind its name: the decision, what is required, and what was seen."""
    check = build.check(**{"name": "min-score", "required": 80, "seen": 90, "passed": True} | fields)
    text = console.render(story_of(build.results(gate=build.decision(check))), verbose=True)
    (row,) = [line for line in text.splitlines() if line.startswith(f"  {check_name(check)}  ")]
    _, *cells = re.split(r"  +", row.strip())
    return cells


@each_row(
    ("check", "row"),
    [
        ({"interval": Interval(low=79.04, high=91)}, ["at least 80", "90.0 (79.0 to 91.0)"]),
        (
            {"seen_if_undecided_failed": 79.96, "interval": Interval(low=70, high=85)},
            ["at least 80", "79.9 (70.0 to 85.0) if undecided counts as failed"],
        ),
        ({"name": "max-drop", "required": 5, "seen": 3.65}, ["at most 5", "3.7"]),
        ({"name": "max-drop", "required": 5, "seen": 5.000000000000001}, ["at most 5", "5"]),
        ({"name": "max-drop suite:X", "required": 5, "seen": -2.15}, ["at most 5", "rose by 2.1"]),
        (
            {"name": "max-drop", "required": 5, "seen": 1, "interval": Interval(low=-3, high=5)},
            ["at most 5", "1"],
        ),
        (
            {"name": "max-drop", "required": 5, "seen": -1, "seen_if_undecided_failed": 6.01},
            ["at most 5", "6.1 if undecided counts as failed"],
        ),
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
        (
            {"name": "critical:x", "required": 100, "seen": 66.66, "note": "2 of 3 passed"},
            ["all trials pass", "2 of 3 passed"],
        ),
        ({"name": "critical:x", "required": 100, "seen": 66.66}, ["all trials pass", "66.6"]),
    ],
)
def test_each_check_is_told_in_its_own_unit(check, row):
    """What it asks, and what was seen, which never looks better than it was."""
    assert gate_row(**check) == ["passed", *row]


def odds_of(**shares) -> Odds:
    """Odds of these checks, with the floor 78.5."""
    checks = tuple(
        build.check_odds(name=name.replace("_", "-"), share=share) for name, share in shares.items()
    )
    return Odds(share=min(1.0, sum(shares.values())), checks=checks, floor=78.5, loops=3)


@pytest.mark.parametrize(
    ("odds", "line"),
    [
        (
            odds_of(critical=0.04, max_drop=0.05, min_score=0.03),
            "would fail this gate in about 12 % of runs (max-drop, critical and 1 more).",
        ),
        (
            odds_of(min_score=0.112),
            "in about 12 % of runs (min-score). It would score below 78.5 in fewer than 5 % of runs.",
        ),
        (
            odds_of(min_score=0.02, regression=0.1),
            "would fail this gate in about 12 % of runs (mostly regression).",
        ),
    ],
)
def test_odds_are_shown_to_those_who_ask_and_of_large_runs_alone(odds, line):
    """They mean something from ten tests and three trials of each on."""
    tests = [cases.played(f"Test {number}", "ppp") for number in range(10)]
    results = build.results(build.suite_result("Refunds", *tests), odds=odds)
    assert line in console.render(story_of(results), verbose=True)
    assert "would fail this gate" not in console.render(story_of(results))
    small = build.results(build.suite_result("Refunds", *tests[:9]), odds=odds)
    assert "would fail this gate" not in console.render(story_of(small), verbose=True)


def test_the_verdict_names_what_fails():
    """A line below the heading names five, and how many are left; failed ones stand first in the table."""
    checks = [
        build.check(name=name, required=1, seen=0, passed=passed)
        for name, passed in (
            ("min-score", True),
            ("max-drop", False),
            ("critical:X", False),
            *((f"tag:{letter}", False) for letter in "bcde"),
        )
    ]
    results = build.results(gate=build.decision(*checks))
    text = console.render(story_of(results), verbose=True)
    named = [f"tag:{letter} (the score of the tag “{letter}” is 0, at least 1 required)" for letter in "bcd"]
    assert f"  Failed checks: max-drop; critical:X; {'; '.join(named)}; and 1 more." in text
    assert text.index("  critical:X  ") < text.index("  min-score  ")


def test_why_there_is_no_verdict_stands_in_it():
    """The first reason in it, others under it, whether it is a run or a comparison."""
    results = cases.unproven()
    reasons = ("nothing could be scored", "the run stopped early: the time is up")
    gate = replace(results.gate, exit_code=3, reasons=reasons)
    results = replace(results, gate=gate)
    for text in (console.render(story_of(results)), console.comparison(story_of(results))):
        assert "! No verdict: nothing could be scored\n" in text
        assert text.count("othing could be scored") == 1
        assert "The run stopped early: the time is up" in text


def test_what_the_run_took_stands_at_its_end():
    """Trials, time and flaky tests; what is not known of its cost."""
    text = console.render(story_of(cases.proven()))
    assert "30 trials, 2 m 3 s, 1 flaky test." in text
    assert "The cost is unknown: no price for gpt-next" in text


def test_a_test_in_which_nothing_failed_is_not_called_failing():
    """Where only the judge gave no answer."""
    head = [cases.played("Lost parcel", "ppu"), cases.played("Gift card", "ppp")]
    base = [cases.played(test.name, "ppp") for test in head]
    run = build.results(build.suite_result("Refunds", *head))
    run = cases.against(run, cases.base_run(build.suite_result("Refunds", *base)))
    for text in (console.render(story_of(run)), console.comparison(story_of(run))):
        assert "not judged now\n! Lost parcel (100 → 100, undecided)\n" in text
        assert "Broke" not in text


def test_without_a_verdict_each_cause_stands_once_with_what_to_do():
    """No criterion is called failed that nobody could judge."""
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


def test_a_comparison_without_checks_ends_with_the_sentence():
    """`compare` without options asks for nothing, so there is no verdict on the gate."""
    story = story_of(replace(cases.unsure(), gate=build.decision()))
    text = console.comparison(story)
    assert text.splitlines()[-1].startswith("  Score 90.0 (66.9 to 97.1), baseline 95.8")
    assert "gate" not in text
    markdown = documents.comparison(story)
    assert markdown.startswith("## Compared with the baseline\n\nScore 90.0 (66.9 to 97.1), baseline 95.8")
    assert "**Checks**" not in markdown


def test_no_comparison_leaves_no_empty_heading():
    """The agent was down: there is no comparison to show."""
    found = cases.against(cases.invalid(), cases.invalid())
    assert "Compared with the baseline" not in console.render(story_of(found), verbose=True)


WIDE = "退款" * 40
LONG = "https://example.org/" + "x" * 150


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(width, verbose):
    """Whatever a suite, an agent or a judge wrote, in letters of any width."""
    finding = build.finding("failed", criterion=WIDE, reason=f"{LONG} {WIDE} " * 3)
    test = build.test_result(f"{WIDE} {LONG}", trials=(build.trial_result(findings=(finding,)),))
    results = build.results(build.suite_result(WIDE, test, build.test_result("Pays")))
    for text in (
        console.render(story_of(results), width=width, verbose=verbose, color=True),
        *(console.render(story_of(make()), width=width, verbose=verbose) for make in cases.CASES.values()),
        *(console.comparison(story_of(make()), width=width) for make in cases.COMPARED.values()),
    ):
        plain = re.sub(r"\x1b\[\d+m", "", text)
        assert max(map(cell_len, plain.splitlines())) <= width


def test_names_give_way_and_numbers_stay_whole():
    """In a narrow terminal; without one nothing is cut."""
    name = "Never tells a customer what another customer has paid for the same order"
    results = build.results(build.suite_result("Refunds", build.test_result(name)))
    (row,) = [
        line
        for line in console.render(story_of(results), width=60).splitlines()
        if line.startswith("  Never")
    ]
    assert row == "  Never tells a c…  passed  100.0         1 of 1       3.5 s"
    assert f"  {name}  passed  100.0         1 of 1       3.5 s" in console.render(story_of(results))


def test_a_test_that_could_not_be_scored_does_not_read_passed():
    """Whatever its outcome says."""
    unjudged = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")
    test = build.test_result(
        "Pays", trials=(build.trial_result(findings=(unjudged,)),), score=None, outcome="passed"
    )
    (row,) = [
        line
        for line in console.render(story_of(build.results(build.suite_result("Refunds", test)))).splitlines()
        if line.startswith("  Pays")
    ]
    assert "not scored" in row
    assert "passed" not in row


def test_certainty_is_shown_once():
    """No sentence calls noise what another one calls proven."""
    for make in cases.COMPARED.values():
        assert console.render(story_of(make())).count("chance") <= 1
        assert "oise alone" not in console.render(story_of(make()), verbose=True)
