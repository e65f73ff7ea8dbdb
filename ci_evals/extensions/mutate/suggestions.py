"""Checks for faults that nothing noticed, each tried out before it is suggested."""

from collections.abc import Mapping, Sequence

from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Outcome
from ci_evals.extensions.mutate.candidates import Check, as_evaluation, tiers
from ci_evals.extensions.mutate.faults import KINDS
from ci_evals.extensions.mutate.planting import SavedTrial, strict_findings, with_only
from ci_evals.extensions.mutate.result import Suggestion


async def suggest(
    trials: Sequence[SavedTrial], unnoticed: Sequence[str], suite: str
) -> tuple[Suggestion, ...]:
    """Return checks for the kinds of faults that no criterion of a test noticed.

    All conversations pass each check, and fail it with each fault that it is for. Of each kind of evidence
    the check for most faults comes first.

    Args:
        trials: The conversations of the test that passed, at least one.
        unnoticed: The kinds of faults.
        suite: The suite's file.
    """
    first, *_ = trials
    missing = list(unnoticed)
    found = []
    for tier in tiers(first.conversation):
        noticed = {place: await _noticed(check, trials, missing) for place, check in enumerate(tier)}
        while missing and (best := _best(noticed, missing)) is not None:
            kinds = tuple(kind for kind in missing if kind in noticed[best])
            found.append(Suggestion(suite=suite, test=first.test.name, kinds=kinds, evaluation=tier[best]))
            missing = [kind for kind in missing if kind not in kinds]
    return tuple(found)


def _best(noticed: Mapping[int, frozenset[str]], missing: Sequence[str]) -> int | None:
    """Return the place of the check that notices most of the missing kinds; None if none notices any."""
    counts = {place: len(kinds.intersection(missing)) for place, kinds in noticed.items()}
    best = max(counts, key=counts.__getitem__, default=None)
    return best if best is not None and counts[best] else None


async def _noticed(check: Check, trials: Sequence[SavedTrial], kinds: Sequence[str]) -> frozenset[str]:
    """Return the kinds of faults that a check notices wherever they apply; none if it fits badly."""
    evaluation = as_evaluation(check)
    for trial in trials:
        if await _outcome(evaluation, trial, trial.conversation.transcript) is not Outcome.PASSED:
            return frozenset()
    noticed = set()
    for kind in kinds:
        outcomes = []
        for trial in trials:
            transcript = KINDS[kind].plant(trial.conversation)
            if transcript is not None:
                outcomes.append(await _outcome(evaluation, trial, transcript))
        if outcomes and set(outcomes) == {Outcome.FAILED}:
            noticed.add(kind)
    return frozenset(noticed)


async def _outcome(evaluation: StrictCheck, trial: SavedTrial, transcript: Transcript) -> Outcome:
    findings = await strict_findings(
        with_only(trial.test, evaluation), trial.conversation.planned, transcript
    )
    return findings[0].outcome
