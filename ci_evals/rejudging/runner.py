"""Judges at work on saved conversations, some at a time. The only code here that does two things at once."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from math import fsum

from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import Listener, TrialFinished, TrialStarted
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.domain.suite import Test
from ci_evals.domain.verdict import UNUSABLE, Cause, Finding, Verdict
from ci_evals.grading.grade import grade
from ci_evals.grading.judge import Judge
from ci_evals.grading.voting import JudgePanel
from ci_evals.metering import MeteredLLM
from ci_evals.rejudging.work import Case, RejudgedTrial, RejudgeJob, is_judged
from ci_evals.scoring.usage import cost_of, unmeasured, with_other
from ci_evals.stop import Stop

_MOST_IN_ROW = 10
"""Trials of which no criterion could be judged: after so many in a row the judge is taken to be gone."""


class RejudgeRunner:
    """Asks judges about conversations, some at a time, until all are judged or the run ends."""

    def __init__(
        self,
        work: RejudgeJob,
        panels: Mapping[int, JudgePanel],
        stop: Stop,
        listen: Listener,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._work, self._panels, self._stop, self._listen, self._clock = (
            work,
            panels,
            stop,
            listen,
            clock,
        )
        self._done: dict[Trial, RejudgedTrial] = {}
        self._under_way = self._in_row = 0
        self._costs: list[float] = []
        self._others = with_other(work.judged.usage, "judge", Usage()).cost_usd

    async def judge(self, cases: Sequence[Case]) -> None:
        """Judges the conversations. A bug of ours ends it in order, and stands in the stop."""
        waiting = iter(cases)

        async def sit() -> None:
            for case in waiting:
                self._look_at_cost()
                if self._stop.requested:
                    return
                await self._judge(case)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._work.parallel, len(cases))):
                group.create_task(self._stop.on_bug(sit()))

    def result_of(self, case: Case) -> RejudgedTrial:
        """What came of a conversation; one that was not begun has no verdicts."""
        return self._done.get(case.trial) or self._again(case, (None,) * len(case.tests), (), 0)

    async def _judge(self, case: Case) -> None:
        self._listen(TrialStarted(case.trial))
        self._under_way += 1
        panel = self._panels[case.trial.suite]
        meters = [MeteredLLM(llm, "judge", lambda _: None) for llm in panel.llms]
        begun = self._clock()
        judge = Judge(meters, self._work.redactor, votes=panel.votes, sample_id=str(case.saved.index))
        found = await asyncio.gather(*(self._verdict(case, test, judge) for test in case.tests))
        usage = tuple(meter.usage for meter in meters if meter.calls)
        again = self._again(case, found, usage, self._clock() - begun)
        self._done[case.trial] = again
        self._under_way -= 1
        self._costs.append(fsum(map(self._cost, usage)))
        for meter in meters:
            if meter.refusal:
                self._stop.because(meter.refusal, outage=True)
        self._look_for_judge(found)
        self._listen(TrialFinished(case.trial, again.result))

    async def _verdict(self, case: Case, test: Test, judge: Judge) -> Verdict | None:
        """The verdict on the one criterion of `test`; None where the run ended before."""
        found = await self._stop.cuts_off(grade(test, case.turns, case.transcript, judge))
        if found is None:
            return None
        (finding,) = found
        return Verdict(**{name: getattr(finding, name) for name in Verdict.model_fields})

    def _again(
        self, case: Case, verdicts: Sequence[Verdict | None], usage: tuple[RoleUsage, ...], seconds: float
    ) -> RejudgedTrial:
        ended = "interrupted" if self._stop.interrupted else "stopped"
        missed = Verdict.undecided(Cause.JUDGE_ERROR, f"the run was {ended} before the judge had answered")
        waiting = iter(verdicts)
        findings = tuple(
            _decided(finding, next(waiting) or missed) if is_judged(finding) else finding
            for finding in case.saved.findings
        )
        times = case.saved.times
        result = case.saved.model_copy(
            update={
                "findings": findings,
                "usage": (*not_judging(case.saved), *usage),
                "times": times and times.model_copy(update={"judge": seconds}),
            }
        )
        return RejudgedTrial(self._work.redactor.model(result), tuple(verdicts))

    def _cost(self, usage: RoleUsage) -> float:
        """The cost as far as it is known; a budget ends where it is not."""
        cost, most = cost_of(usage, self._work.prices), self._work.policy.max_cost
        if cost is None and most is not None:
            self._stop.because(unmeasured(usage, most))
        return cost or 0.0

    def _look_at_cost(self) -> None:
        """Begins no trial that the budget may not hold."""
        most = self._work.policy.max_cost
        if most is None:
            return
        if self._others is None:
            self._stop.because(
                f"the cost of the saved run is unknown, so that --max-cost={most:g} cannot be kept"
            )
            return
        spent = self._others + fsum(self._costs)
        each = fsum(self._costs) / len(self._costs) if self._costs else 0.0
        if spent + each * (self._under_way + 1) > most:
            self._stop.because(
                f"{spent:.4f} US dollars are spent, with those of the saved run, and it may cost {most:g} "
                "(--max-cost): one more trial could pass that"
            )

    def _look_for_judge(self, found: Sequence[Verdict | None]) -> None:
        """Ends the run where the judge cannot be asked any more."""
        unasked = [verdict for verdict in found if verdict and verdict.cause in UNUSABLE]
        self._in_row = self._in_row + 1 if len(unasked) == len(found) else 0
        if self._in_row >= max(_MOST_IN_ROW, self._work.parallel):
            self._stop.because(
                f"in {self._in_row} trials in a row nothing could be judged, in the last one since "
                f"{unasked[-1].reason}"
            )


def _decided(finding: Finding, verdict: Verdict) -> Finding:
    """The finding with another verdict."""
    return finding.model_copy(update=dict(verdict))


def not_judging(trial: TrialResult) -> tuple[RoleUsage, ...]:
    """What others than its judge have used for a trial."""
    return tuple(usage for usage in trial.usage if usage.role != "judge")
