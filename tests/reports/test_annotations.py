"""What a reviewer sees at the lines of the suites' files."""

import builders as build
import cases
import hostile
import pytest
from hypothesis import given

from ci_evals.domain.results import GateCheck
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports.annotations import Level, annotations

BROKEN = build.decision(GateCheck(name="min-score", required=80, seen=0, holds=False))


def failing(name, **fields):
    finding = build.finding("failed", criterion="It pays back", reason="no refund was started")
    return build.test_result(name, trials=(build.trial_result(findings=(finding,)),), **fields)


def test_a_run_that_holds_and_fails_nothing_says_nothing():
    """Annotations on a green build are noise."""
    assert annotations(cases.good()) == ()


def test_a_failed_test_stands_at_its_line():
    """With its criterion and the reason, behind the verdict on the run."""
    suite = build.suite_result("Refunds", failing("Late parcel", line=31), file="evals/refunds.json")
    verdict, failed = annotations(build.results(suite, gate=BROKEN))
    assert (verdict.level, verdict.file) == (Level.ERROR, None)
    assert "does not hold (min-score)" in verdict.message
    assert (failed.level, failed.file, failed.line) == (Level.ERROR, "evals/refunds.json", 31)
    assert failed.title == "Failed: Late parcel"
    assert failed.message == "score 0.0. It pays back: no refund was started"


def test_where_the_gate_holds_a_failed_test_is_a_warning():
    """The build is green: it must not look red."""
    (failed,) = annotations(build.results(build.suite_result("Refunds", failing("Late parcel"))))
    assert failed.level is Level.WARNING


def test_the_worst_come_first():
    """Newly failing before long failing, critical before others, then the lowest score."""
    half = (build.finding("failed"), build.finding("passed"))
    tests = (
        build.test_result("Half", trials=(build.trial_result(findings=half),)),
        failing("Zero"),
        build.test_result("Critical half", trials=(build.trial_result(findings=half),), critical=True),
    )
    told = annotations(build.results(build.suite_result("Refunds", *tests), gate=BROKEN))
    assert [one.title for one in told[1:]] == ["Failed: Critical half", "Failed: Zero", "Failed: Half"]
    newly = [one for one in annotations(cases.proven()) if "passed in the baseline" in one.message]
    assert newly
    assert annotations(cases.proven())[1] == newly[0]


def test_what_came_to_nothing_is_a_warning_with_its_cause():
    """A trial that failed, a verdict that could not be reached; a judge that nobody wanted is neither."""
    broken = build.trial_result(status=EndState.FAILED, error="the agent did not answer", findings=())
    open_ = build.finding("undecided", kind="judged", cause=Cause.JUDGE_ERROR, reason="it answered nothing")
    no_judge = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE)
    tests = [
        build.test_result(name, trials=(trial,))
        for name, trial in (
            ("Broken", broken),
            ("Open", build.trial_result(findings=(open_,))),
            ("Unjudged", build.trial_result(findings=(no_judge,))),
        )
    ]
    told = annotations(build.results(build.suite_result("Refunds", *tests)))
    assert [(one.level, one.title) for one in told] == [
        (Level.WARNING, "error: Broken"),
        (Level.WARNING, "undecided: Open"),
    ]
    assert "the agent did not answer" in told[0].message
    assert "it answered nothing" in told[1].message


def test_a_bundled_suite_is_no_file():
    """Nobody's repository has it."""
    suite = build.suite_result("HR", failing("Vacation"), file="demo:hr")
    assert {one.file for one in annotations(build.results(suite, gate=BROKEN))} == {None}


def test_a_skipped_run_is_a_notice():
    """Not an error: nothing was tested."""
    run = build.run_info(status="skipped", stopped_because="the pull request comes from a fork")
    suite = build.suite_result("Refunds", build.test_result(trials=(), not_run=1))
    skipped = build.results(suite, run=run, gate=build.decision(passed=False, exit_code=0))
    (notice,) = annotations(skipped)
    assert notice.level is Level.NOTICE
    assert "fork" in notice.message


@pytest.mark.parametrize("case", cases.CASES)
@given(text=hostile.texts)
def test_hostile_text_is_one_harmless_line(case, text):
    """Whatever agents, judges and suites wrote."""
    for one in annotations(hostile.poisoned(cases.CASES[case](), text)):
        for told in (one.title, one.message):
            assert len(told.splitlines()) <= 1
            assert hostile.commands(told.removeprefix("::")) == []
            assert len(told) <= 800
