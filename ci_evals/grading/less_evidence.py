"""Findings on a conversation of which less is known than when it was graded. Pure."""

from ci_evals.domain.checks.evaluation import ClaimsBacked, Judged
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.checks.strict.functions import PythonCheck
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Finding, Outcome, Verdict


def finding(
    evaluation: Judged | StrictCheck, before: Finding, transcript: Transcript, cannot_say: Verdict
) -> Finding:
    """Return the finding on a transcript with less evidence: the same, or an undecided one.

    `cannot_say` is the verdict of judges and functions that may rest on what was taken for nothing: they are
    not asked again.
    """
    if before.outcome is Outcome.UNDECIDED:
        return before
    verdict = _verdict(evaluation, before, transcript, cannot_say)
    if verdict is None or verdict.outcome is not Outcome.UNDECIDED:
        return before
    return Finding.of(evaluation, verdict)


def _verdict(
    evaluation: Judged | StrictCheck, before: Finding, transcript: Transcript, cannot_say: Verdict
) -> Verdict | None:
    """Return the verdict by what is still known; None if it is the one before."""
    if isinstance(evaluation, ClaimsBacked):
        return evaluation.without_evidence(transcript)
    if isinstance(evaluation, Judged):
        return cannot_say if before.rests_on == "absence" else None
    if isinstance(evaluation, PythonCheck):
        return cannot_say
    if compares_meanings(evaluation):
        return None
    return evaluation.decide(transcript)
