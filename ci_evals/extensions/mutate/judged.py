"""Judged criteria of conversations with a planted fault, asked again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.actions import calls_of
from ci_evals.domain.checks.evaluation import ClaimsBacked, Graded, Judged
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import UNUSABLE, Finding, Outcome
from ci_evals.extension_support.asking import Asking
from ci_evals.extensions.mutate.faults import KINDS
from ci_evals.extensions.mutate.planting import Planting, with_only
from ci_evals.grading import transcript_view
from ci_evals.grading.grade import grade


@dataclass(frozen=True)
class Asked:
    """The plantings with what a judge says of them, and how many questions it took."""

    plantings: list[Planting]
    asked: int
    """Questions that were answered."""
    left: int
    """Questions that were not asked any more."""


@dataclass(frozen=True)
class _Question:
    planting: int
    place: int
    """Index of the evaluation in its test."""
    transcript: Transcript


async def ask_again(plantings: Sequence[Planting], asking: Asking) -> Asked:
    """Ask a judge about the faults that no strict check noticed.

    Only criteria that passed without the fault are asked about. Where a fault leaves open what the agent
    would have said next, nobody is asked: the missing rest would look like a fault. A judge that is shown the
    same as before cannot notice anything, and is not asked either.
    """
    new: list[_Question] = []
    same: list[_Question] = []
    for question in _questions(plantings):
        if _shows_the_fault(plantings[question.planting], question):
            new.append(question)
        else:
            same.append(question)

    async def ask(question: _Question) -> Finding:
        planting = plantings[question.planting]
        trial = planting.trial
        test = with_only(trial.test, trial.test.evaluations[question.place])
        sample = f"mutate/{trial.key.suite}/{trial.key.test}/{trial.index}/{planting.kind}"
        findings = await grade(test, trial.conversation.planned, question.transcript, asking.judge(sample))
        return findings[0]

    findings = await asking.each(
        new, ask, lambda finding: finding.reason if finding.cause in UNUSABLE else None
    )
    found = list(plantings)
    for question in same:
        found[question.planting] = _with_verdict(found[question.planting], question.place, None)
    answered = [pair for pair in zip(new, findings, strict=True) if pair[1] is not None]
    for question, finding in answered:
        found[question.planting] = _with_verdict(found[question.planting], question.place, finding)
    return Asked(found, len(answered), len(new) - len(answered))


def _questions(plantings: Sequence[Planting]) -> Iterator[_Question]:
    for number, planting in enumerate(plantings):
        if planting.noticed:
            continue
        trial = planting.trial
        transcript = KINDS[planting.kind].plant(trial.conversation)
        if transcript is None or transcript.unanswered is not None:
            continue
        for place, evaluation in enumerate(trial.test.evaluations):
            if isinstance(evaluation, Judged) and trial.findings[place].outcome is Outcome.PASSED:
                yield _Question(number, place, transcript)


def _shows_the_fault(planting: Planting, question: _Question) -> bool:
    """Return whether the judge of a criterion is shown anything that differs from before."""
    evaluation = planting.trial.test.evaluations[question.place]
    before, after = planting.trial.conversation.transcript, question.transcript
    if isinstance(evaluation, ClaimsBacked) and _calls(before) != _calls(after):
        return True
    actions = isinstance(evaluation, Graded) and evaluation.whole_rubric.steps
    planned = planting.trial.conversation.planned
    shown_before = transcript_view.conversation(planned, before, actions=actions)
    return shown_before != transcript_view.conversation(planned, after, actions=actions)


def _calls(transcript: Transcript) -> list[object]:
    return [(calls_of(turn), turn.params, turn.handed_over) for turn in transcript.turns]


def _with_verdict(planting: Planting, place: int, finding: Finding | None) -> Planting:
    """Return the planting with a judge's finding on one criterion; None if it is that of before."""
    judged = planting.judged | {place}
    if finding is not None and finding.fails:
        return replace(planting, judged=judged, noticed=planting.noticed | {place})
    if finding is not None and finding.outcome is Outcome.UNDECIDED:
        return replace(planting, judged=judged, undecided=planting.undecided | {place})
    return replace(planting, judged=judged)
