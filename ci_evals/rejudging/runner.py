"""Judges at work on saved conversations, some at a time."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from math import fsum

from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import Listener, TrialFinished, TrialStarted
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.domain.suite import Test
from ci_evals.domain.verdict import UNUSABLE, Cause, Finding, Verdict
from ci_evals.grading.grade import grade
from ci_evals.grading.judge import Judge
from ci_evals.grading.voting import JudgePanel
from ci_evals.metering import MeteredLLM
from ci_evals.rejudging.saved import RejudgedTrial, RejudgeJob, SavedConversation, is_judged, usage_of_others
from ci_evals.scoring.usage import cost_of, unmeasured, with_other
from ci_evals.stop import Stop

_MOST_IN_ROW = 10
"""Trials of which no criterion could be judged: after so many in a row the judge is taken to be gone."""


class RejudgeRunner:
    """Asks judges about conversations, some at a time, until all are judged or the run ends."""

    def __init__(
        self,
        job: RejudgeJob,
        panels: Mapping[int, JudgePanel],
        stop: Stop,
        listen: Listener,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._job, self._panels, self._stop = job, panels, stop
        self._listen, self._clock = listen, clock
        self._done: dict[Trial, RejudgedTrial] = {}
        self._under_way = self._in_row = 0
        self._costs: list[float] = []
        self._others = with_other(job.judged.usage, "judge", Usage()).cost_usd

    async def judge(self, conversations: Sequence[SavedConversation]) -> None:
        """Judge the conversations. A bug of ours ends it in order, and stands in the stop."""
        await self._stop.for_each(
            conversations, self._judge, parallel=self._job.parallel, admit=self._stays_in_budget
        )

    def result_of(self, saved: SavedConversation) -> RejudgedTrial:
        """The trial of a conversation after judging; one that was not begun has no verdicts."""
        return self._done.get(saved.trial) or self._rejudged(saved, (None,) * len(saved.tests), (), 0)

    async def _judge(self, saved: SavedConversation) -> None:
        self._listen(TrialStarted(saved.trial))
        self._under_way += 1
        panel = self._panels[saved.trial.suite]
        meters = [MeteredLLM(llm, "judge", lambda _: None) for llm in panel.llms]
        begun = self._clock()
        judge = Judge(meters, self._job.redactor, votes=panel.votes, sample_id=str(saved.result.index))
        verdicts = await asyncio.gather(*(self._verdict(saved, test, judge) for test in saved.tests))
        usage = tuple(meter.usage for meter in meters if meter.calls)
        rejudged = self._rejudged(saved, verdicts, usage, self._clock() - begun)
        self._done[saved.trial] = rejudged
        self._under_way -= 1
        self._costs.append(fsum(map(self._cost, usage)))
        for meter in meters:
            if meter.refusal:
                self._stop.request(meter.refusal, outage=True)
        self._look_for_judge(verdicts)
        self._listen(TrialFinished(saved.trial, rejudged.result))

    async def _verdict(self, saved: SavedConversation, test: Test, judge: Judge) -> Verdict | None:
        """The verdict on the one criterion of `test`; None if the run ended before."""
        findings = await self._stop.run_until_stopped(grade(test, saved.turns, saved.transcript, judge))
        if findings is None:
            return None
        (finding,) = findings
        return Verdict(**{name: getattr(finding, name) for name in Verdict.model_fields})

    def _rejudged(
        self,
        saved: SavedConversation,
        verdicts: Sequence[Verdict | None],
        usage: tuple[RoleUsage, ...],
        seconds: float,
    ) -> RejudgedTrial:
        ended = "interrupted" if self._stop.interrupted else "stopped"
        missed = Verdict.undecided(Cause.JUDGE_ERROR, f"the run was {ended} before the judge had answered")
        waiting = iter(verdicts)
        findings = tuple(
            _decided(finding, next(waiting) or missed) if is_judged(finding) else finding
            for finding in saved.result.findings
        )
        times = saved.result.times
        result = saved.result.model_copy(
            update={
                "findings": findings,
                "usage": (*usage_of_others(saved.result), *usage),
                "times": times and times.model_copy(update={"judge": seconds}),
            }
        )
        return RejudgedTrial(self._job.redactor.model(result), tuple(verdicts))

    def _cost(self, usage: RoleUsage) -> float:
        """The cost as far as it is known; a budget ends if it is not."""
        cost, most = cost_of(usage, self._job.prices), self._job.policy.max_cost
        if cost is None and most is not None:
            self._stop.request(unmeasured(usage, most))
        return cost or 0.0

    async def _stays_in_budget(self) -> bool:
        """Return whether the budget is likely to hold one more trial; if not, the run ends."""
        most = self._job.policy.max_cost
        if most is None:
            return True
        if self._others is None:
            self._stop.request(
                f"the cost of the saved run is unknown, so that --max-cost={most:g} cannot be kept"
            )
            return False
        spent = self._others + fsum(self._costs)
        each = fsum(self._costs) / len(self._costs) if self._costs else 0.0
        if spent + each * (self._under_way + 1) <= most:
            return True
        self._stop.request(
            f"{spent:.4f} US dollars are spent, with those of the saved run, and it may cost {most:g} "
            "(--max-cost): one more trial could pass that"
        )
        return False

    def _look_for_judge(self, verdicts: Sequence[Verdict | None]) -> None:
        """End the run if the judge cannot be asked any more."""
        unusable = [verdict for verdict in verdicts if verdict and verdict.cause in UNUSABLE]
        self._in_row = self._in_row + 1 if len(unusable) == len(verdicts) else 0
        if self._in_row >= max(_MOST_IN_ROW, self._job.parallel):
            self._stop.request(
                f"in {self._in_row} trials in a row nothing could be judged, in the last one since "
                f"{unusable[-1].reason}"
            )


def _decided(finding: Finding, verdict: Verdict) -> Finding:
    """The finding with another verdict."""
    return finding.model_copy(update=dict(verdict))
