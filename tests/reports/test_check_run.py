"""The conclusion and the title of a check run, and the results that a comment is worth."""

from dataclasses import replace

import builders as build
from each_row import each_row
from plans import make_plan, scorecard, trial

from ci_evals.cli.github.posting import worth_a_comment
from ci_evals.cli.settings.choices import CommentOn
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import to_record
from ci_evals.reports.story.story import Conclusion, check_title, conclusion, story_of
from ci_evals.reports.story.verdict import Trust
from ci_evals.scoring.comparison.compare import RunComparer

FOUR = make_plan(*({"name": name} for name in "abcd"))


def run(*outcomes: str, base: tuple[str, ...] = (), p: float | None = None, **policy):
    """A run of a test for each outcome, compared with a run of these if there are any."""
    head = build.results_of_scorecard(scorecard(FOUR, *map(trial, outcomes)))
    comparer = (
        RunComparer(head, build.results_of_scorecard(scorecard(FOUR, *map(trial, base)))) if base else None
    )
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


def test_untrusted_results_conclude_neutral_and_contradictory_ones_get_a_comment():
    assert conclusion(story_of(run(*PASSED))) is Conclusion.SUCCESS
    for trust in (Trust.FORK, Trust.OTHER_COMMIT, Trust.CONTRADICTORY):
        assert conclusion(story_of(run(*PASSED)), trust) is Conclusion.NEUTRAL
    failed = run(*ONE_FAILED)
    forged = replace(failed, gate=Decision(passed=True, exit_code=0, checks=failed.gate.checks))
    assert worth_a_comment(forged, CommentOn.FAILURE)
