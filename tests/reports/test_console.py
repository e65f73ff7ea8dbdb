"""The console's text: short, grouped, and honest about colours."""

import re

import builders as build
import cases

from ci_evals.domain.results import GateCheck
from ci_evals.domain.transcript import EndState
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
