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


def test_a_run_that_holds_and_fails_nothing_says_nothing():
    """Annotations on a green build are noise."""
    assert annotations(story_of(cases.good())) == ()


def test_failed_test_is_annotated_at_its_line():
    """With its criterion and the reason, behind the verdict on the run."""
    suite = build.suite_result("Refunds", failing("Late parcel", line=31), file="evals/refunds.json")
    verdict, failed = annotations(story_of(build.results(suite, gate=BROKEN)))
    assert (verdict.severity, verdict.file) == (Severity.ERROR, None)
    assert verdict.message == "Evals failed: 0 / 100, 80 required. 0 of 1 tests pass."
    assert (failed.severity, failed.file, failed.line) == (Severity.ERROR, "evals/refunds.json", 31)
    assert failed.title == "Failed: Late parcel"
    assert failed.message == "Score 0.0. It pays back: no refund was started"


def test_failed_test_is_a_warning_if_the_gate_passes():
    """The build is green: it must not look red."""
    (failed,) = annotations(story_of(build.results(build.suite_result("Refunds", failing("Late parcel")))))
    assert failed.severity is Severity.WARNING


def test_a_gate_that_is_only_reported_makes_no_error():
    """`--no-gate` asks for a green build: failed tests are warnings, and no line says that the gate fails."""
    reported = build.decision(*BROKEN.checks, exit_code=0)
    annotation_lines = annotations(
        story_of(build.results(build.suite_result("Refunds", failing("Late parcel")), gate=reported))
    )
    assert [(one.severity, one.title) for one in annotation_lines] == [
        (Severity.WARNING, "Failed: Late parcel")
    ]


def test_the_verdict_is_the_heading_and_the_numbers():
    """In the words of the comment, with the other checks that failed."""
    verdict = annotations(story_of(cases.unproven()))[0]
    assert verdict.message == (
        "Evals failed: 1 test broke since the baseline. "
        "Failed checks: min-score; max-drop (the score fell by 6, at most 5 allowed). "
        "88 / 100 (90 required), the baseline has 94 (−6). 3 of 6 tests pass."
    )


def test_the_worst_come_first():
    """Newly failing before long failing, critical before others, then the lowest score."""
    half = (build.finding("failed"), build.finding("passed"))
    tests = (
        build.test_result("Half", trials=(build.trial_result(findings=half),)),
        failing("Zero"),
        build.test_result("Critical half", trials=(build.trial_result(findings=half),), critical=True),
    )
    annotation_lines = annotations(
        story_of(build.results(build.suite_result("Refunds", *tests), gate=BROKEN))
    )
    assert [one.title for one in annotation_lines[1:]] == [
        "Failed: Critical half",
        "Failed: Zero",
        "Failed: Half",
    ]
    newly = [one for one in annotations(story_of(cases.proven())) if "passed in the baseline" in one.message]
    assert newly
    assert annotations(story_of(cases.proven()))[1] == newly[0]
    annotation_lines = [one.title for one in annotations(story_of(comment_cases.failed_example()))[1:]]
    assert annotation_lines == ["Failed: Refuses a refund after 30 days", "Failed: Refund within 30 days"]


def test_names_of_options_keep_their_case():
    """They are searched for."""
    (warning, *_) = annotations(story_of(comment_cases.no_baseline()))
    assert " max-drop and regression were not checked: " in warning.message


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
    annotation_lines = annotations(story_of(build.results(build.suite_result("Refunds", *tests))))
    assert [(one.severity, one.title) for one in annotation_lines] == [
        (Severity.WARNING, "Errored: Broken"),
        (Severity.WARNING, "Undecided: Open"),
    ]
    assert annotation_lines[0].message == "1 trial errored: the agent did not answer"
    assert annotation_lines[1].message == "1 criterion undecided: it answered nothing"


def test_shared_cause_is_shown_once():
    """At the first test's line, with how many it met: an agent that is down makes no ten warnings."""
    lost = build.trial_result(status=EndState.FAILED, error="the agent refused the connection", findings=())
    tests = [build.test_result(f"Lost {number}", trials=(lost, lost), line=number) for number in range(1, 6)]
    rest = build.test_result("Never begun", trials=(), not_run=3, line=60)
    annotation_lines = annotations(
        story_of(build.results(build.suite_result("Refunds", *tests, rest, file="evals/r.yaml")))
    )
    assert [(one.title, one.file, one.line) for one in annotation_lines] == [
        ("Errored: 5 tests", "evals/r.yaml", 1),
        ("Not run: Never begun", "evals/r.yaml", 60),
    ]
    assert annotation_lines[0].message == (
        "10 trials errored: the agent refused the connection. "
        "5 tests affected: Lost 1; Lost 2; Lost 3; and 2 more tests"
    )
    assert annotation_lines[1].message == "3 trials not run: the run ended before"


def test_what_a_passed_test_lacks_is_no_warning():
    """As under --provider=offline, where nobody wanted the verdict."""
    unmeasured = build.finding("undecided", kind="judged", cause=Cause.NO_MODEL, reason="no model")
    trial = build.trial_result(findings=(build.finding(), unmeasured))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    assert annotations(story_of(build.results(build.suite_result("Refunds", test)))) == ()


def test_a_bundled_suite_is_no_file():
    """Nobody's repository has it."""
    suite = build.suite_result("HR", failing("Vacation"), file="demo:hr")
    assert {one.file for one in annotations(story_of(build.results(suite, gate=BROKEN)))} == {None}


def test_a_skipped_run_is_a_notice():
    """Not an error: nothing was tested."""
    run = build.run_info(status="skipped", stopped_because="this fork has no secrets")
    suite = build.suite_result("Refunds", build.test_result(trials=(), not_run=1))
    skipped = build.results(suite, run=run, gate=build.decision(passed=False, exit_code=0))
    (notice,) = annotations(story_of(skipped))
    assert notice.severity is Severity.NOTICE
    assert notice.message == "Evals skipped: this fork has no secrets."


@pytest.mark.parametrize("case", sorted(cases.CASES.keys() - {"unproven"}))  # no text that `proven` lacks
@given(text=hostile_text.any_text)
def test_hostile_text_is_one_harmless_line(case, text):
    """Whatever agents, judges and suites wrote."""
    for one in annotations(story_of(hostile_text.fill_free_text(cases.made(case), text))):
        for message in (one.title, one.message):
            assert len(message.splitlines()) <= 1
            assert hostile_text.log_commands(message.removeprefix("::")) == []
            assert len(message) <= 800
