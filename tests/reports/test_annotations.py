"""What a reviewer sees at the lines of the suites' files."""

import builders as build
import cases
import comment_cases
import hostile_text
import pytest
from hypothesis import given

from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports.annotations import Severity, annotations
from ci_evals.reports.story.story import story_of

BROKEN = build.decision(build.check(name="min-score", required=80, seen=0, passed=False))


def failing(name, **fields):
    finding = build.finding("failed", criterion="It pays back", reason="no refund was started")
    return build.test_result(name, trials=(build.trial_result(findings=(finding,)),), **fields)


def annotations_of(*tests, file="evals/refunds.json", **fields):
    suite = build.suite_result("Refunds", *tests, file=file)
    return annotations(story_of(build.results(suite, **fields)))


def test_failed_test_is_annotated_at_its_line_as_warning_if_the_gate_does_not_fail():
    verdict, failed = annotations_of(failing("Late parcel", line=31), gate=BROKEN)
    assert (verdict.severity, verdict.file) == (Severity.ERROR, None)
    assert verdict.message == "Evals failed: 0 / 100, 80 required. 0 of 1 tests pass."
    assert (failed.severity, failed.file, failed.line) == (Severity.ERROR, "evals/refunds.json", 31)
    assert failed.title == "Failed: Late parcel"
    assert failed.message == "Score 0.0. It pays back: no refund was started"
    bundled = annotations_of(failing("Vacation"), file="demo:hr", gate=BROKEN)
    assert {one.file for one in bundled} == {None}
    for gate in (build.decision(), build.decision(*BROKEN.checks, exit_code=0)):
        (failed,) = annotations_of(failing("Late parcel"), gate=gate)
        assert (failed.severity, failed.title) == (Severity.WARNING, "Failed: Late parcel")


def test_annotations_are_ordered_by_severity_of_the_failure():
    """Newly failing before long failing, critical before others, then the lowest score."""
    half = (build.trial_result(findings=(build.finding("failed"), build.finding("passed"))),)
    critical = build.test_result("Critical half", trials=half, critical=True)
    test = build.test_result("Half", trials=half)
    titles = [one.title for one in annotations_of(test, failing("Zero"), critical, gate=BROKEN)[1:]]
    assert titles == ["Failed: Critical half", "Failed: Zero", "Failed: Half"]
    assert "passed in the baseline" in annotations(story_of(cases.proven()))[1].message
    titles = [one.title for one in annotations(story_of(comment_cases.failed_example()))[1:]]
    assert titles == ["Failed: Refuses a refund after 30 days", "Failed: Refund within 30 days"]


def test_verdict_annotation_has_heading_failed_checks_numbers_and_unchanged_option_names():
    verdict = annotations(story_of(cases.unproven()))[0]
    assert verdict.message == (
        "Evals failed: 1 test broke since the baseline. "
        "Failed checks: min-score; max-drop (the score fell by 6, at most 5 allowed). "
        "88 / 100 (90 required), the baseline has 94 (−6). 3 of 6 tests pass."
    )
    (warning, *_) = annotations(story_of(comment_cases.no_baseline()))
    assert " max-drop and regression were not checked: " in warning.message


def test_errors_and_missing_verdicts_are_warnings_with_their_cause():
    """A judge that nobody configured is neither."""
    broken = build.trial_result(status=EndState.FAILED, error="the agent did not answer", findings=())
    judge_error = build.finding("undecided", kind="judged", cause=Cause.JUDGE_ERROR, reason="no answer")
    no_judge = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE)
    errored, undecided = annotations_of(
        build.test_result("Broken", trials=(broken,)),
        build.test_result("Open", trials=(build.trial_result(findings=(judge_error,)),)),
        build.test_result("Unjudged", trials=(build.trial_result(findings=(no_judge,)),)),
    )
    assert {errored.severity, undecided.severity} == {Severity.WARNING}
    assert errored.title == "Errored: Broken"
    assert errored.message == "1 trial errored: the agent did not answer"
    assert undecided.title == "Undecided: Open"
    assert undecided.message == "1 criterion undecided: no answer"


def test_shared_error_is_annotated_once_with_the_number_of_tests():
    lost = build.trial_result(status=EndState.FAILED, error="the agent refused the connection", findings=())
    tests = [build.test_result(f"Lost {number}", trials=(lost, lost), line=number) for number in range(1, 6)]
    unplayed = build.test_result("Never begun", trials=(), not_run=3, line=60)
    errored, not_run = annotations_of(*tests, unplayed)
    assert (errored.title, errored.file, errored.line) == ("Errored: 5 tests", "evals/refunds.json", 1)
    assert errored.message == (
        "10 trials errored: the agent refused the connection. "
        "5 tests affected: Lost 1; Lost 2; Lost 3; and 2 more tests"
    )
    assert (not_run.title, not_run.line) == ("Not run: Never begun", 60)
    assert not_run.message == "3 trials not run: the run ended before"


def test_passed_run_has_no_annotations_and_skipped_run_a_single_notice():
    assert annotations(story_of(cases.good())) == ()
    unmeasured = build.finding("undecided", kind="judged", cause=Cause.NO_MODEL, reason="no model")
    trial = build.trial_result(findings=(build.finding(), unmeasured))
    assert annotations_of(build.test_result(trials=(trial,), outcome="passed", passed=True)) == ()
    run = build.run_info(status="skipped", stopped_because="this fork has no secrets")
    gate = build.decision(passed=False, exit_code=0)
    (notice,) = annotations_of(build.test_result(trials=(), not_run=1), run=run, gate=gate)
    assert notice.severity is Severity.NOTICE
    assert notice.message == "Evals skipped: this fork has no secrets."


@pytest.mark.parametrize("case", sorted(cases.CASES.keys() - {"unproven"}))  # no text that `proven` lacks
@given(text=hostile_text.any_text)
def test_annotation_with_hostile_text_is_one_line_without_commands(case, text):
    for one in annotations(story_of(hostile_text.fill_free_text(cases.made(case), text))):
        for message in (one.title, one.message):
            assert len(message.splitlines()) <= 1
            assert hostile_text.log_commands(message.removeprefix("::")) == []
            assert len(message) <= 800
