"""What GitHub shows of a run: the check's conclusion and title, whether it comments, and annotations."""

from dataclasses import replace

import builders as build
import cases
import comment_cases
import hostile_text
import pytest
from each_row import each_row
from hypothesis import given
from plans import make_plan, scorecard, trial

from ci_evals.cli.github.posting import worth_a_comment
from ci_evals.cli.settings.choices import CommentOn
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import to_record
from ci_evals.reports.annotations import Severity, annotations
from ci_evals.reports.story.story import Conclusion, check_title, conclusion, story_of
from ci_evals.reports.story.verdict import Trust
from ci_evals.scoring.comparison.compare import RunComparer

FOUR = make_plan(*({"name": name} for name in "abcd"))


def run(*outcomes: str, base: tuple[str, ...] = (), p: float | None = None, **policy):
    """A run of a test for each outcome, compared with a run of these if there are any."""
    head = build.results_of_scorecard(scorecard(FOUR, *map(trial, outcomes)))
    earlier = build.results_of_scorecard(scorecard(FOUR, *map(trial, base))) if base else None
    comparer = RunComparer(head, earlier) if earlier else None
    gate = to_record(decide(GateInput(head, comparer), Policy(**policy), RunEnding()))
    comparison = comparer.comparison() if comparer else None
    if comparison and p is not None:
        comparison = replace(comparison, p=p)
    return replace(head, gate=gate, comparison=comparison)


PASSED, ONE_FAILED = ("passed",) * 4, ("passed", "passed", "passed", "failed")


@each_row(
    ("p", "policy", "concluded"),
    [
        (0.06, {"max_drop": 50}, Conclusion.NEUTRAL),
        (0.25, {"max_drop": 50}, Conclusion.NEUTRAL),
        (0.26, {"max_drop": 50}, Conclusion.SUCCESS),
        (0.05, {"max_drop": 50}, Conclusion.SUCCESS),  # proven, and allowed
        (0.06, {}, Conclusion.SUCCESS),  # nothing was asked of the comparison
        (0.06, {"max_drop": 5}, Conclusion.FAILURE),
    ],
)
def test_suspected_drop_is_neutral_if_the_comparison_is_checked(p, policy, concluded):
    result = run(*ONE_FAILED, base=PASSED, p=p, min_score=50, **policy)
    assert conclusion(story_of(result)) is concluded


def test_check_run_without_verdict_or_enforced_gate_is_neutral():
    broken = run("passed", "passed", "passed", "judge_error")
    assert broken.gate.exit_code == 3
    assert conclusion(story_of(broken)) is Conclusion.NEUTRAL
    assert conclusion(story_of(run(*ONE_FAILED))) is Conclusion.FAILURE
    assert conclusion(story_of(run(*ONE_FAILED, enforced=False))) is Conclusion.NEUTRAL
    skipped = story_of(build.results(run=build.run_info(status="skipped", stopped_because="no secrets")))
    assert conclusion(skipped) is Conclusion.NEUTRAL
    assert check_title(skipped) == "Evals skipped: no secrets"


def test_check_title_has_score_and_change():
    assert check_title(story_of(run(*ONE_FAILED, base=PASSED, max_drop=5))) == (
        "Evals failed: 1 test broke since the baseline · 75 / 100, −25 against the baseline"
    )
    assert check_title(story_of(run(*PASSED))) == "Evals passed: 100 / 100"
    near = run(*ONE_FAILED, base=PASSED, p=0.1, min_score=50, max_drop=50)
    assert check_title(story_of(near)).endswith("−25 against the baseline · a drop is suspected")


@each_row(("results", "change", "failure"), [
    (run(*PASSED, base=PASSED), False, False),
    (run(*ONE_FAILED, base=ONE_FAILED, min_score=50), False, False),
    (run(*ONE_FAILED, base=PASSED, min_score=50), True, False),
    (run(*PASSED, base=ONE_FAILED), True, False),
    (run(*PASSED), True, False),
    (run(*ONE_FAILED), True, True),
    (run("passed", "passed", "passed", "judge_error", base=PASSED), True, True),
])  # fmt: skip
def test_comment_on_change_or_failure_covers_missing_comparison_and_verdict(results, change, failure):
    assert worth_a_comment(results, CommentOn.CHANGE) is change
    assert worth_a_comment(results, CommentOn.FAILURE) is failure
    assert worth_a_comment(results, CommentOn.ALWAYS)


def test_passed_check_run_concludes_neutral_if_results_are_untrusted():
    assert conclusion(story_of(run(*PASSED))) is Conclusion.SUCCESS
    for trust in (Trust.FORK, Trust.OTHER_COMMIT, Trust.CONTRADICTORY):
        assert conclusion(story_of(run(*PASSED)), trust) is Conclusion.NEUTRAL


def test_forged_pass_gets_a_comment_even_if_only_failures_do():
    failed = run(*ONE_FAILED)
    forged = replace(failed, gate=Decision(passed=True, exit_code=0, checks=failed.gate.checks))
    assert worth_a_comment(forged, CommentOn.FAILURE)


BROKEN = build.decision(build.check(name="min-score", required=80, seen=0, passed=False))


def failing(name, **fields):
    finding = build.finding("failed", criterion="It pays back", reason="no refund was started")
    return build.test_result(name, trials=(build.trial_result(findings=(finding,)),), **fields)


def annotations_of(*tests, file="evals/refunds.json", **fields):
    suite = build.suite_result("Refunds", *tests, file=file)
    return annotations(story_of(build.results(suite, **fields)))


def test_failed_test_is_annotated_at_its_line_as_error_only_if_the_run_fails():
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


def test_verdict_annotation_has_heading_failed_checks_numbers_and_unchecked_options():
    verdict = annotations(story_of(cases.unproven()))[0]
    assert verdict.message == (
        "Evals failed: 1 test broke since the baseline. "
        "Failed checks: min-score; max-drop (the score fell by 6, at most 5 allowed). "
        "88 / 100 (90 required), the baseline has 94 (−6). 3 of 6 tests pass."
    )
    (warning, *_) = annotations(story_of(comment_cases.no_baseline()))
    assert " max-drop and regression were not checked: " in warning.message


def test_errored_and_undecided_tests_are_annotated_as_warnings():
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
    message = "1 trial errored: the agent did not answer"
    assert (errored.title, errored.message) == ("Errored: Broken", message)
    assert (undecided.title, undecided.message) == ("Undecided: Open", "1 criterion undecided: no answer")


def test_error_shared_by_tests_has_one_annotation_that_counts_trials_and_tests():
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


@pytest.mark.parametrize("case", sorted(cases.CASES.keys() - {"unproven"}))
@given(text=hostile_text.any_text)
def test_annotation_with_hostile_text_is_one_line_without_commands(case, text):
    """All cases but one, which has no text that `proven` lacks."""
    for one in annotations(story_of(hostile_text.fill_free_text(cases.made(case), text))):
        for message in (one.title, one.message):
            assert len(message.splitlines()) <= 1
            assert hostile_text.log_commands(message.removeprefix("::")) == []
            assert len(message) <= 800
