"""The reasons why a run has no verdict, in words."""

from typing import assert_never

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.gate.invalid_run import (
    BaseNotPlayed,
    Incomplete,
    InvalidRunReason,
    JudgeFailed,
    NotChecked,
    NotCompared,
    NothingScored,
    NotRun,
    Stopped,
    TooManyErrored,
    TooManyExcluded,
    UncountedDecide,
)
from ci_evals.reports.story import advice


def in_words(reason: InvalidRunReason) -> str:  # noqa: C901, PLR0911  # one case for each reason
    """The reason as results and reports have it, without a full stop."""
    match reason:
        case Incomplete(why):
            return why
        case Stopped(why):
            return f"the run stopped early: {why}"
        case NotRun(trials, planned):
            return f"{trials} of {numbers.count(planned, 'trial')} did not run"
        case TooManyErrored(trials, played, broke_off):
            what = "errored" if broke_off else ""
            what += " or " if 0 < broke_off < trials else ""
            what += "could not be judged" if broke_off < trials else ""
            return f"{trials} of {numbers.count(played, 'trial')} {what}"
        case TooManyExcluded(trials, played):
            return (
                f"the simulated user broke character twice in a row in {trials} of "
                f"{numbers.count(played, 'trial')}"
            )
        case JudgeFailed(check):
            return f"the judge failed its check: {why_not_passed(check)}"
        case BaseNotPlayed(errored, not_run, planned, error):
            return _base_not_played(errored, not_run, planned) + (f": {error.rstrip('.')}" if error else "")
        case NothingScored(quarantined):
            return f"nothing could be scored{': all tests are in quarantine' if quarantined else ''}"
        case UncountedDecide(trials):
            return f"{numbers.count(trials, 'trial')} without a result would decide the verdict"
        case NotCompared(why):
            return f"not compared with the required baseline: {why}"
        case NotChecked(check):
            return f"{check.name} was not checked: {check.note}"
        case _:
            assert_never(reason)


def _base_not_played(errored: int, not_run: int, planned: int) -> str:
    what = "errored or could not be judged" if errored else "did not run"
    lost = errored or not_run
    if not lost:
        return "nothing of the base agent could be scored"
    return f"{lost} of {numbers.count(planned, 'trial')} of the base agent {what}"


def why_not_passed(check: JudgeCheck, *, only_warn: bool = False) -> str:
    """The reason why a judge did not pass its check, and what to do about it.

    Args:
        check: The one that it did not pass.
        only_warn: Whether the run decides by this judge all the same (option `judge_check`: `warn`).
    """
    cure = advice.OTHER_JUDGE if only_warn else f"{advice.OTHER_JUDGE}, or {advice.DECIDE_ANYWAY}"
    return f"{check.model} {check.why or 'did not pass'}. {cure}"
