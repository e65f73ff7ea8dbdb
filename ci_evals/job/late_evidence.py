"""Evidence that came after the turns that it belongs to were read: their trials are corrected.

A check that a missing call could decide is undecided then, as if the turn had been incomplete from the start.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import JournalMark
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.job.less_evidence import with_turns
from ci_evals.ports import SpanReceiver
from ci_evals.runner import SaveTrial
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

PlayPlan = Callable[..., Coroutine[Any, Any, Sequence[TrialResult | None]]]


@dataclass
class LateEvidence:
    """Corrects the results of a run whose agents' spans are received."""

    receiver: SpanReceiver
    redactor: Redactor
    journal: Journal | None = None
    save: SaveTrial | None = None
    """Keeps corrected results, in place of those before."""
    _corrected: dict[Trial, TrialResult] = field(default_factory=dict)
    _marked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.receiver.gaps.listen = self._mark

    def _mark(self, traces: Collection[str], *, earlier: bool) -> None:
        """Let no run that resumes take over a trial that is to be corrected."""
        new = set(traces) - self._marked
        if self.journal and (new or earlier):
            self.journal.mark(JournalMark(mark="late_evidence", traces=tuple(sorted(new)), earlier=earlier))
            self._marked |= new

    def settling(self, play: PlayPlan, stop: Stop) -> PlayPlan:
        """Return what plays a plan, waits for what still comes soon, and corrects the results."""

        async def played(plan: Plan, **options: Any) -> Sequence[TrialResult | None]:
            results = await play(plan, **options)
            if not stop.interrupted:
                waiting = self.receiver.wait_for_late()
                await (waiting if stop.requested else stop.run_until_stopped(waiting))
            self.receiver.finish()
            return await self._settled(plan, results)

        return played

    async def _settled(
        self, plan: Plan, played: Sequence[TrialResult | None]
    ) -> Sequence[TrialResult | None]:
        if not self.receiver.gaps.found:
            return played
        trials = zip(plan.trials, played, strict=True)
        return [result and await self._correct(plan, trial, result) for trial, result in trials]

    async def _correct(self, plan: Plan, trial: Trial, result: TrialResult) -> TrialResult:
        result = self._corrected.get(trial, result)
        gaps = {turn.index: gap for turn in result.turns if (gap := self._gap(turn))}
        if not gaps:
            return result
        result = self.redactor.model(with_gaps(plan.test_of(trial), result, gaps))
        if self.save:
            await self.save(trial, result)
        self._corrected[trial] = result = result.packed()
        return result

    def _gap(self, turn: Turn) -> str | None:
        return None if turn.tool_calls_partial else self.receiver.gaps.reason(turn.traceparent)


def with_gaps(test: Test, result: TrialResult, gaps: Mapping[int, str]) -> TrialResult:
    """Return a result whose turns have these gaps in their evidence, by number."""
    turns = tuple(_incomplete(turn, gaps.get(turn.index)) for turn in result.turns)
    number, gap = next(iter(gaps.items()))
    reason = f"the evidence of turn {number} is incomplete: {gap}"
    return with_turns(test, result, turns, Verdict.undecided(Cause.NO_TRACE, reason, *gaps))


def _incomplete(turn: Turn, gap: str | None) -> Turn:
    if gap is None:
        return turn
    return turn.copy_with(
        tool_calls_partial=True,
        trace_missing=gap,
        # A tool may hand over to a person: that no call did so is not known any more.
        handed_over=turn.handed_over or None,
        handed_over_apart=True,
    )
