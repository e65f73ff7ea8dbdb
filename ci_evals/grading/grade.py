"""All evaluations of a test on one transcript."""

import asyncio
from collections.abc import Sequence

from ci_evals.domain.evaluation import Judged, Strict
from ci_evals.domain.suite import Test, Turn
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Finding, Verdict
from ci_evals.grading import strict
from ci_evals.grading.judge import Judge


async def grade(
    test: Test, turns: Sequence[Turn], transcript: Transcript, judge: Judge | None
) -> tuple[Finding, ...]:
    """A finding for each evaluation of the test, in its order; judged criteria are asked at the same time."""

    async def decide(evaluation: Judged | Strict) -> Verdict:
        if not isinstance(evaluation, Judged):
            return strict.decide(evaluation, transcript)
        if judge is None:
            return Verdict.undecided(Cause.NO_JUDGE, "no judge is configured (--provider=offline)")
        if not transcript.exchanges:
            return Verdict.undecided(Cause.NO_EVIDENCE, "the agent gave no reply")
        return await judge.decide(evaluation, test, turns, transcript)

    verdicts = await asyncio.gather(*(decide(evaluation) for evaluation in test.evaluations))
    return tuple(Finding.of(e, verdict) for e, verdict in zip(test.evaluations, verdicts, strict=True))
