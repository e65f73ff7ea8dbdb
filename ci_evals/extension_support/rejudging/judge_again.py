"""From a saved run to results by other judges."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ci_evals.domain.errors import LLMAccessError, UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Event, Listener, ModelAnswered, TrialFinished, TrialStarted
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.domain.suite import Test
from ci_evals.domain.verdict import UNUSABLE, Cause, Verdict
from ci_evals.extension_registry import providers
from ci_evals.extension_support.rejudging.results_builder import RejudgedResultsBuilder
from ci_evals.extension_support.rejudging.saved import (
    RejudgedTrial,
    RejudgeJob,
    SavedConversation,
    is_judged,
    saved_conversation,
    to_judge,
    usage_of_others,
)
from ci_evals.gate.rules.max_cost import MaxCost
from ci_evals.grading import control
from ci_evals.grading.grade import grade
from ci_evals.grading.judge import Judge
from ci_evals.grading.voting import JudgePanel
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.limits import Budget, Limits, LimitsWatcher
from ci_evals.metering import MeteredLLM
from ci_evals.scoring.agreement.judges import Twice
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import with_other
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import RunModels
from ci_evals.wiring.waits import report_waits


@dataclass(frozen=True)
class Rejudged:
    """The outcome of judging again."""

    results: Results
    verdicts: tuple[Twice, ...]
    """The verdicts that were given again, in the order of the results."""
    not_judged: int
    """Verdicts that the run ended too early for."""


@asynccontextmanager
async def judges(connections: Connections, redactor: Redactor) -> AsyncIterator[RunModels]:
    """The models of a provider, while in use."""
    async with AsyncExitStack() as stack:
        yield RunModels(connections, redactor, stack, "rejudge")


async def rejudge(
    job: RejudgeJob,
    judges: RunModels,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Rejudged:
    """Ask the judges for every judged criterion, and make all numbers, comparison and decision again.

    A judge is asked what the judge of the run was asked.

    Raises:
        UsageError: before anybody is asked: there is nothing to judge, what is saved is no conversation, or a
            budget is set and a judge has no price.
    """
    stop = stop or Stop()
    conversations = tuple(saved_conversation(job, trial) for trial in to_judge(job.judged))
    if not conversations:
        raise UsageError(f"{job.source}: it has no judged verdict to judge again")
    models = tuple(map(job.models_of, job.judged.suites))
    asked = {index: models[index] for index in {saved.trial.suite: None for saved in conversations}}
    names = dict.fromkeys(name for suite in asked.values() for name in suite.judges)
    if job.policy.rule(MaxCost).max_cost is not None and not providers()[job.provider].reports_cost:
        check_priced(names, job.prices)
    panels = {
        index: JudgePanel(tuple(map(judges.judge, suite.judges)), suite.votes)
        for index, suite in asked.items()
    }
    checks = JudgeChecks(
        judges=map(judges.checked_judge, names),
        mode=job.judge_check,
        provider=job.provider,
        redactor=job.redactor,
        baseline=job.baseline.results,
        prices=lambda: job.prices,
        now=now,
        subjects=control.subjects(with_claims=any(saved.has_claims for saved in conversations)),
    )
    runner = RejudgeRunner(job, panels, stop, listen)
    builder = RejudgedResultsBuilder(job, models, stop, now, checks)
    if job.write_unfinished:
        job.write_unfinished(builder.unfinished())
    try:
        await stop.run_until_stopped(judges.check())
    except LLMAccessError as error:
        stop.request(str(error), outage=True)
    async with report_waits(judges.waits, listen):
        await asyncio.gather(runner.judge(conversations), stop.stop_on_error(_check_judges(checks, stop)))
    trials = {saved.trial: runner.result_of(saved) for saved in conversations}
    pairs = (pair for saved in conversations for pair in _pairs(job.judged, saved, trials[saved.trial]))
    return Rejudged(
        results=builder.results(trials, judges.notes()),
        verdicts=tuple(pairs),
        not_judged=sum(verdict is None for trial in trials.values() for verdict in trial.verdicts),
    )


async def _check_judges(checks: JudgeChecks, stop: Stop) -> None:
    if not stop.requested:
        await checks.ask(stop)


def _pairs(judged: Results, saved: SavedConversation, rejudged: RejudgedTrial) -> Iterator[Twice]:
    """The verdicts on a conversation that were given again, beside the earlier ones."""
    suite = judged.suites[saved.trial.suite]
    findings = [
        (before, after)
        for before, after in zip(saved.result.findings, rejudged.result.findings, strict=True)
        if is_judged(before)
    ]
    for (before, after), verdict in zip(findings, rejudged.verdicts, strict=True):
        if verdict:
            yield Twice(suite.name, suite.tests[saved.trial.test].name, saved.result.index, before, after)


_MOST_IN_ROW = 10
"""Trials of which no criterion could be judged: after this many in a row the judge is taken to be gone."""


class RejudgeRunner:
    """Asks judges about conversations, some at a time, until all are judged or the run ends."""

    def __init__(
        self,
        job: RejudgeJob,
        panels: Mapping[int, JudgePanel],
        stop: Stop,
        listen: Listener,
    ) -> None:
        self._job, self._panels, self._stop = job, panels, stop
        self._listen = listen
        self._done: dict[Trial, RejudgedTrial] = {}
        self._in_row = 0
        self._others_cost = with_other(job.judged.usage, "judge", Usage()).cost_usd
        budget = Budget(job.policy.rule(MaxCost).max_cost, lambda: job.prices, self._others_cost or 0.0)
        self._limits = LimitsWatcher(Limits(), budget, stop, ScoreRule(offline=False), job.parallel)

    async def judge(self, conversations: Sequence[SavedConversation]) -> None:
        """Judge the conversations. A bug of ours ends it in order, and stands in the stop."""
        most = self._job.policy.rule(MaxCost).max_cost
        if most is not None and self._others_cost is None:
            self._stop.request(f"the cost of the saved run is unknown, so max-cost={most:g} cannot be kept")
        await self._stop.for_each(
            conversations, self._judge, parallel=self._job.parallel, admit=self._limits.admits
        )

    def result_of(self, saved: SavedConversation) -> RejudgedTrial:
        """The trial of a conversation after judging; one that was not begun has no verdicts."""
        return self._done.get(saved.trial) or self._rejudged(saved, (None,) * len(saved.tests), (), 0)

    async def _judge(self, saved: SavedConversation) -> None:
        self._hear(TrialStarted(saved.trial))
        panel = self._panels[saved.trial.suite]

        def spent(usage: RoleUsage) -> None:
            self._limits(ModelAnswered(saved.trial, usage))

        meters = [MeteredLLM(llm, "judge", spent) for llm in panel.llms]
        begun = time.perf_counter()
        judge = Judge(meters, self._job.redactor, votes=panel.votes, sample_id=str(saved.result.index))
        verdicts = await asyncio.gather(*(self._verdict(saved, test, judge) for test in saved.tests))
        usage = tuple(meter.usage for meter in meters if meter.calls)
        rejudged = self._rejudged(saved, verdicts, usage, time.perf_counter() - begun)
        self._done[saved.trial] = rejudged
        for meter in meters:
            if meter.refusal:
                self._stop.request(meter.refusal, outage=True)
        self._look_for_judge(verdicts)
        self._hear(TrialFinished(saved.trial, rejudged.result))

    def _hear(self, event: Event) -> None:
        self._limits(event)
        self._listen(event)

    async def _verdict(self, saved: SavedConversation, test: Test, judge: Judge) -> Verdict | None:
        """The verdict on the first criterion of `test`; None if the run ended before."""
        findings = await self._stop.run_until_stopped(grade(test, saved.turns, saved.transcript, judge))
        if findings is None:
            return None
        return findings[0].verdict

    def _rejudged(
        self,
        saved: SavedConversation,
        verdicts: Sequence[Verdict | None],
        usage: tuple[RoleUsage, ...],
        seconds: float,
    ) -> RejudgedTrial:
        ended = "interrupted" if self._stop.interrupted else "stopped"
        missed = Verdict.undecided(Cause.JUDGE_ERROR, f"the run was {ended} before the judge had answered")
        waiting = iter([verdict or missed for verdict in verdicts])
        findings = tuple(
            finding.with_verdict(next(waiting)) if is_judged(finding) else finding
            for finding in saved.result.findings
        )
        times = saved.result.times
        result = replace(
            saved.result,
            findings=findings,
            usage=(*usage_of_others(saved.result), *usage),
            times=times and replace(times, judge=seconds),
        )
        return RejudgedTrial(self._job.redactor.model(result), tuple(verdicts))

    def _look_for_judge(self, verdicts: Sequence[Verdict | None]) -> None:
        """End the run if the judge cannot be asked any more."""
        unusable = [verdict for verdict in verdicts if verdict and verdict.cause in UNUSABLE]
        self._in_row = self._in_row + 1 if len(unusable) == len(verdicts) else 0
        if self._in_row >= max(_MOST_IN_ROW, self._job.parallel):
            self._stop.request(
                f"in {self._in_row} trials in a row nothing could be judged, in the last one since "
                f"{unusable[-1].reason}"
            )
