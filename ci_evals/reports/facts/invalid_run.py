"""The reasons why a run has no verdict, in words."""

from typing import assert_never

from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.scoring.gate.invalid_run import (
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


def in_words(reason: InvalidRunReason) -> str:  # noqa: C901, PLR0911  # one case for each reason
    """The reason as results and reports have it, without a full stop."""
    match reason:
        case Incomplete(why):
            return why
        case Stopped(why):
            return f"the run was stopped: {why}"
        case NotRun(trials, planned):
            return f"{trials} of {planned} trials were not run"
        case TooManyErrored(trials, allowed):
            many = "1 unsound trial" if trials == 1 else f"{trials} unsound trials"
            return f"{many}, at most {allowed} allowed (max-errors)"
        case TooManyExcluded(trials, allowed):
            many = "1 trial was left out" if trials == 1 else f"{trials} trials were left out"
            return (
                f"{many}, since the simulated user broke its role twice in a row, at most {allowed} allowed "
                "(max-invalid-users)"
            )
        case JudgeFailed(check):
            return f"judge check: {why_not_passed(check)}"
        case NothingScored():
            return "nothing could be scored"
        case UncountedDecide(trials, some_excluded):
            without = " or are left out" if some_excluded else ""
            return (
                f"trials that broke off{without} ({trials}) decide the gate: it would not hold if all of "
                "them had failed, and would if all had passed"
            )
        case NotCompared(why):
            return f"the run was not compared with a baseline (--baseline=required): {why}"
        case NotChecked(check):
            return f"{check.name} was not checked: {check.note}"
        case _:
            assert_never(reason)


def why_not_passed(check: JudgeCheck) -> str:
    """The reason why a judge did not pass its check, and what to do about it."""
    return (
        f"{check.model} {check.why or 'did not pass'}; do not trust its verdicts. Use a "
        "--judge-model that passes, or --judge-check=warn to decide by this one anyway"
    )
