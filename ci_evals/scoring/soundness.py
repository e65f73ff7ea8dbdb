"""What makes a trial unsound, a test passed: rules that scorecard and gate share."""

from collections.abc import Sequence

from ci_evals.domain.results import SCORED_STATES, TestOutcome, TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring.share import Counting

CUT_OFF = frozenset({EndState.FAILED, EndState.INTERRUPTED})
"""Conversations that broke off: what their agent did not do, it may not have come to."""


def expects_error(trial: TrialResult) -> bool:
    """Whether the test asks for an error response, so that ending in one is no fault of the trial."""
    return any(finding.strict == "escalated_due_to_error" for finding in trial.findings)


def ended_well(trial: TrialResult) -> bool:
    """Whether the conversation came to an end that says something about the agent."""
    return trial.status in SCORED_STATES or (trial.status is EndState.AGENT_ERROR and expects_error(trial))


def unsound(trial: TrialResult, counting: Counting) -> bool:
    """Whether the trial ended in an error, or holds a verdict that could not be reached."""
    return not ended_well(trial) or any(undecided(finding, counting) for finding in trial.findings)


def undecided(finding: Finding, counting: Counting) -> bool:
    """Whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not counting.excused(finding)


def all_passed(trial: TrialResult, counting: Counting) -> bool:
    """Whether every evaluation that was wanted passed, and at least one did."""
    wanted = [finding for finding in trial.findings if not counting.excused(finding)]
    return bool(wanted) and all(finding.outcome is Outcome.PASSED for finding in wanted)


def outcome_of(trials: Sequence[TrialResult], planned: int, counting: Counting) -> TestOutcome:
    """What a test came to, of whose `planned` trials these were played."""
    if not trials:
        return TestOutcome.NOT_RUN
    whole = [trial for trial in trials if trial.status not in CUT_OFF]
    if any(finding.outcome is Outcome.FAILED for trial in whole for finding in trial.findings):
        return TestOutcome.FAILED
    if len(trials) < planned or not all(ended_well(trial) for trial in trials):
        return TestOutcome.ERROR
    if all(all_passed(trial, counting) for trial in trials):
        return TestOutcome.PASSED
    return TestOutcome.UNDECIDED
