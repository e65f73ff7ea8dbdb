"""Why a run cannot be trusted, whatever its score: it is not whole, or too much of it went wrong."""

from collections.abc import Iterable, Iterator

from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.scoring.gate.policy import Ending, Policy
from ci_evals.scoring.scorecard import Scorecard


def invalid_run_reasons(card: Scorecard, policy: Policy, ending: Ending) -> Iterator[str]:
    """Every reason, in words; none where the run can be trusted."""
    yield from ending.incomplete
    if ending.stopped_because and not ending.failed_fast:
        yield f"the run was stopped: {ending.stopped_because}"
    if card.counts.not_run and not ending.failed_fast:
        yield f"{card.counts.not_run} of {card.counts.trials + card.counts.not_run} trials were not run"
    if card.counts.errors > policy.max_errors:
        trials = "1 unsound trial" if card.counts.errors == 1 else f"{card.counts.errors} unsound trials"
        yield f"{trials}, at most {policy.max_errors} allowed (max-errors)"
    if card.counts.invalid_users > policy.max_invalid_users:
        many = card.counts.invalid_users
        trials = "1 trial was left out" if many == 1 else f"{many} trials were left out"
        yield (
            f"{trials}, since the simulated user broke its role twice in a row, at most "
            f"{policy.max_invalid_users} allowed (max-invalid-users)"
        )
    for check in ending.judge_checks:
        if not (check.passed or ending.judge_only_warned):
            yield f"judge check: {why_not_passed(check)}"
    if card.score is None:
        yield "nothing could be scored"


def why_not_passed(check: JudgeCheck) -> str:
    """Why a judge did not pass its check, and what to do about it."""
    return (
        f"{check.model} {check.why or 'did not pass'}; do not trust its verdicts. Use a "
        "--judge-model that passes, or --judge-check=warn to decide by this one anyway"
    )


def worst(checks: Iterable[JudgeCheck]) -> JudgeCheck | None:
    """The check that says least for its judge; None without any."""
    return min(checks, key=lambda check: (check.passed, check.right - check.required), default=None)
