"""The console's text: short, grouped, and honest about colours."""

import re

import builders as build
import cases

from ci_evals.domain.results import GateCheck
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports import console


def test_one_cause_is_told_once():
    """An agent that is not there makes one message, however many trials it spoils."""
    lost = build.trial_result(
        status=EndState.FAILED, error="the agent at http://localhost:9 refused the connection", findings=()
    )
    tests = [build.test_result(f"Test {number}", trials=(lost, lost)) for number in range(12)]
    text = console.render(build.results(build.suite_result("Refunds", *tests)))
    assert text.count("refused the connection") == 1
    assert "24 trials failed: the agent at http://localhost:9 refused the connection" in text
    assert "Test 0; Test 1; Test 2; and 9 more tests" in text


def test_an_error_that_the_test_wants_is_no_trouble():
    """A test of how the agent errs passes when it errs."""
    wanted = build.finding(strict="escalated_due_to_error")
    trial = build.trial_result(status=EndState.AGENT_ERROR, findings=(wanted,))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    assert "error of the agent" not in console.render(build.results(build.suite_result("Refunds", test)))


def test_a_pass_without_a_judge_names_what_is_undecided():
    """Offline a test may pass with judged criteria open; the table says so."""
    unjudged = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")
    trial = build.trial_result(findings=(build.finding(), unjudged))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    text = console.render(build.results(build.suite_result("Refunds", test)))
    assert "passed, 1 verdict undecided  100.0" in text
    assert "No judge was configured: 1 judged criterion is undecided." in text


def test_the_first_failed_criterion_is_named_and_verbose_names_all():
    """Short by default, complete when asked."""
    findings = [build.finding("failed", criterion=f"Rule {n}", reason=f"broken {n}") for n in (1, 2, 3)]
    results = build.results(
        build.suite_result(
            "Refunds", build.test_result("Pays", trials=(build.trial_result(findings=findings),))
        )
    )
    short, long = console.render(results), console.render(results, verbose=True)
    assert "Rule 1" in short
    assert "Rule 2" not in short
    assert "and 2 more criteria failed (--verbose names them)" in short
    assert all(f"Rule {n}\n      broken {n}" in long for n in (1, 2, 3))


def test_a_failure_is_shown_by_a_trial_that_was_played_to_its_end():
    """What a trial that was cut off lacks made no test fail."""
    lost = build.trial_result(1, status=EndState.FAILED, findings=(build.finding("failed", reason="cut"),))
    played = build.trial_result(2, findings=(build.finding("failed", reason="never executed"),))
    text = console.render(
        build.results(build.suite_result("Refunds", build.test_result(trials=(lost, played)))), verbose=True
    )
    assert "The refund workflow starts\n      never executed" in text


def test_colours_are_paint_and_nothing_else():
    """With and without colours the words are the same."""
    for make in cases.CASES.values():
        painted, plain = console.render(make(), color=True), console.render(make())
        assert "\x1b" not in plain
        assert painted != plain
        assert re.sub(r"\x1b\[\d+m", "", painted) == plain


def test_an_escape_of_the_agent_is_not_painted():
    """Only our own colours reach the terminal."""
    results = build.results(build.suite_result("\x1b[5mblink\x1b[0m", build.test_result("\x1b]0;title\x07x")))
    assert re.findall(r"\x1b[^m]*m", console.render(results, color=True)).count("\x1b[5m") == 0
    assert "\x1b]" not in console.render(results, color=True)


def test_a_floor_shows_both_scores_where_they_differ():
    """The score that decides stands beside the one shown."""
    check = GateCheck(name="min-score", required=80, seen=100, seen_if_undecided_failed=79.96, holds=False)
    text = console.render(build.results(gate=build.decision(check)))
    assert "at least 80  100.0 (79.9 if undecided counts as failed)  does not hold" in text


def test_a_gate_that_is_only_reported_says_so():
    """--no-gate exits 0, but the gate does not hold for all that."""
    check = GateCheck(name="min-score", required=80, seen=10, holds=False)
    text = console.render(build.results(gate=build.decision(check, exit_code=0)))
    assert "The gate does not hold: score" in text
    assert "--no-gate" in text


def test_each_exit_code_has_its_own_words():
    """A run that a bug of ours ended is not called a gate that does not hold."""

    def said(code: int, *, passed: bool = False) -> str:
        return console.render(build.results(gate=build.decision(passed=passed, exit_code=code))).casefold()

    assert "the gate holds" in said(0, passed=True)
    assert "the gate does not hold" in said(1)
    assert "the run cannot be trusted" in said(3)
    assert "the run cannot be trusted" in said(70)
    assert "the run was interrupted" in said(130)
