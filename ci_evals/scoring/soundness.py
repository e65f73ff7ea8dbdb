"""What makes a trial unsound, a test passed: rules that scorecard and gate share."""

from ci_evals.domain.results import SCORED_STATES, TestResult, TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring.share import Counting


def expects_error(trial: TrialResult) -> bool:
    """Whether the test asks for an error response, so that ending in one is no fault of the trial."""
    return any(finding.strict == "escalated_due_to_error" for finding in trial.findings)


def unsound(trial: TrialResult, counting: Counting) -> bool:
    """Whether the trial ended in an error, or holds a verdict that could not be reached."""
    ended_well = trial.status in SCORED_STATES or (
        trial.status is EndState.AGENT_ERROR and expects_error(trial)
    )
    return not ended_well or any(undecided(finding, counting) for finding in trial.findings)


def undecided(finding: Finding, counting: Counting) -> bool:
    """Whether a verdict is missing that was wanted."""
    return finding.outcome is Outcome.UNDECIDED and not counting.excused(finding)


def all_passed(trial: TrialResult, counting: Counting) -> bool:
    """Whether every evaluation that was wanted passed, and at least one did."""
    wanted = [finding for finding in trial.findings if not counting.excused(finding)]
    return bool(wanted) and all(finding.outcome is Outcome.PASSED for finding in wanted)


def passes(test: TestResult, counting: Counting) -> bool:
    """Whether every planned trial was played, sound, and passed."""
    return (
        bool(test.trials)
        and not test.not_run
        and all(all_passed(trial, counting) and not unsound(trial, counting) for trial in test.trials)
    )
