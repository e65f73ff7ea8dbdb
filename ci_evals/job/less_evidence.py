"""Results of trials of which less is known than when they were graded."""

from collections.abc import Sequence
from dataclasses import replace

from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Transcript, Turn, Turns
from ci_evals.domain.verdict import Verdict
from ci_evals.grading import less_evidence
from ci_evals.scoring import process


def with_turns(test: Test, result: TrialResult, turns: Sequence[Turn], cannot_say: Verdict) -> TrialResult:
    """Return a result with turns that have less evidence, and the findings on them.

    `cannot_say` is the verdict of judges and functions that may rest on what is missing.
    """
    kept = Turns(turns)
    transcript = Transcript(
        turns=tuple(turns), status=result.status, probes=result.probes, canaries=result.canaries
    )
    findings = tuple(
        less_evidence.finding(evaluation, before, transcript, cannot_say)
        for evaluation, before in zip(test.evaluations, result.findings, strict=bool(result.findings))
    )
    traces = process.of_turns(kept, test.optimal_tools)
    return replace(result, turns=kept, findings=findings, process=traces.process, fired=traces.fired)
