"""A run from its plan to its results: play, score, compare, decide, and look twice where it is close."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ci_evals.adapters.transport import pool
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.adapters.transport.waits import telling
from ci_evals.domain.errors import AgentAccessError, LLMAccessError
from ci_evals.domain.journal import JournalMark
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Event, Extended, Listener, RunResumed, Spent
from ci_evals.domain.results.run import Confirmation, Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Suite
from ci_evals.job.job import Job
from ci_evals.job.judge_check import CheckedJudge, JudgeChecks, JudgeCheckSettings
from ci_evals.job.limits import Budget, LimitsWatcher
from ci_evals.job.results_builder import ResultsBuilder, models_of
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.runner import Participants, ParticipantsFor, SaveTrial, run
from ci_evals.scoring.gate.near_threshold import close_calls
from ci_evals.stop import Stop
from ci_evals.wiring import Connections, RunParticipants, build_participants


async def evaluate(
    job: Job,
    adapter: Connections | Participants,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """Plays a plan, scores it, and lets the gate decide. Secrets are taken out of what it gives back.

    Trials that the job's journal holds are not played again.

    Raises:
        UsageError: before anything is played: a budget is set and a model has no price, an agent or a model
            cannot be built, or the journal is of another run.
    """
    stop = stop or Stop()
    if job.policy.max_cost is not None:
        _check_prices(job, adapter)
    async with _players(job, adapter) as players:
        builder = ResultsBuilder(job, adapter, stop, now, notes=players.notes)
        done: Mapping[Trial, TrialResult] = {}
        held = job.journal.past.done.keys() if job.journal and job.journal.past else ()
        again = job.before_playing(builder.header, held)
        if job.journal:
            job.journal.open(builder.header)
        if job.write_unfinished:
            job.write_unfinished(builder.unfinished())
        if job.journal and (past := job.journal.past):
            done = {trial: result for trial, result in past.done.items() if trial not in again}
            builder.resumed = done.keys()
            job.journal.mark(JournalMark(mark="resumed"))
            listen(RunResumed(len(done.keys() & set(job.plan.trials)), past.header.started_at))
        budget = Budget(job.policy.max_cost, job.prices)
        watch = LimitsWatcher(job.limits, budget, stop, builder.counting, job.options.parallel)
        watch.take(done.values())

        def hear(event: Event) -> None:
            watch(event)
            listen(event)

        play = partial(
            run,
            participants_for=players.participants_for,
            options=replace(
                job.options,
                judge_first=job.limits.fail_fast or budget.most is not None,
                timed=job.origin is None,
            ),
            redactor=job.redactor,
            admit=watch.admits,
            # The journal comes last: what it holds is not played again, so the others must have it by then.
            save=(*job.save, *_journal(job, builder)),
            listen=hear,
            stop=stop,
        )
        builder.judge_checks = JudgeChecks(
            job.wrap_judges(players.judges),
            JudgeCheckSettings(
                mode=job.judge_check,
                provider=adapter.provider if isinstance(adapter, Connections) else None,
                redactor=job.redactor,
                baseline=job.baseline,
                prices=job.prices,
                now=builder.now,
                spent=lambda usage: hear(Spent(None, usage)),
            ),
        )
        with _timed(job, watch):
            # A run whose trials have all finished is held against its judge all the same.
            if done.keys() >= set(job.plan.trials):
                async with _asked(job, builder.judge_checks, stop) as answered:
                    return await _looked_twice(job, builder, play, done, answered, listen=listen, stop=stop)
            await stop.cuts_off(players.check_agents(stop))
            async with (
                _beside(stop.on_bug(players.check_models(stop))),
                telling(players.waits, listen),
                _asked(job, builder.judge_checks, stop) as answered,
            ):
                return await _looked_twice(job, builder, play, done, answered, listen=listen, stop=stop)


@asynccontextmanager
async def _asked(job: Job, checks: JudgeChecks, stop: Stop) -> AsyncIterator[Awaitable[None]]:
    """Ask the judges their control questions meanwhile; gives what to await for the end of that."""

    async def ask() -> None:
        await asyncio.sleep(0)  # the first conversations begin before anything is rendered or imported for it
        await stop.cuts_off(checks.ask())
        if checks.refusal:
            stop.because(checks.refusal, outage=True)
        if job.journal and checks.failed:
            job.journal.mark(JournalMark(mark="judge_check_failed"))
        job.after_judge_check()

    task = asyncio.create_task(stop.on_bug(ask()))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _looked_twice(
    job: Job,
    builder: ResultsBuilder,
    play: Callable[..., Coroutine[Any, Any, Sequence[TrialResult | None]]],
    done: Mapping[Trial, TrialResult],
    answered: Awaitable[None],
    *,
    listen: Listener,
    stop: Stop,
) -> Results:
    """What came of the plan, and where that is close, of the plan with more trials of each test."""
    played = await play(job.plan, done=done)
    await answered
    _mark_outage(job, stop)
    results = builder.at(job.plan, played)
    close = close_calls(results.gate) if job.confirm and not stop.requested else ()
    if not close:
        return results
    plan = replace(job.plan, more=job.confirm)
    if _too_dear(job, results, len(plan.trials)):
        said = "the first look was close, but more trials would not stay within --max-cost"
        info = results.run.model_copy(update={"warnings": (*results.run.warnings, said)})
        return results.model_copy(update={"run": info})
    first = {trial: result for trial, result in zip(job.plan.trials, played, strict=True) if result}
    listen(Extended(plan, close))
    played = await play(plan, done={**done, **first})
    _mark_outage(job, stop)
    return builder.at(plan, played, Confirmation(trials=job.confirm, because=close))


def _journal(job: Job, builder: ResultsBuilder) -> Iterator[SaveTrial]:
    """What puts a finished trial into the journal, if there is one."""
    if journal := job.journal:

        async def keep(trial: Trial, result: TrialResult) -> None:
            await journal.keep(trial, result, builder.elapsed, builder.now())

        yield keep


def _mark_outage(job: Job, stop: Stop) -> None:
    if job.journal and stop.outage:
        job.journal.mark(JournalMark(mark="outage"))


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Does `work` meanwhile; what is left of it at the end is not wanted any more."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextmanager
def _timed(job: Job, watch: LimitsWatcher) -> Iterator[None]:
    """Ends the run when its time is up."""
    if job.limits.max_duration is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(job.limits.max_duration, watch.out_of_time)
    try:
        yield
    finally:
        timer.cancel()


def not_played(
    job: Job,
    adapter: Connections | Participants,
    why: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """The results of a run that was skipped: what was planned, none of it played, and no verdict."""
    builder = ResultsBuilder(job, adapter, Stop(), now, skipped_because=why)
    return builder.at(job.plan, [None] * len(job.plan.trials))


def _check_prices(job: Job, adapter: Connections | Participants) -> None:
    """A budget that cannot be counted would guard nothing."""
    if isinstance(adapter, Connections) and adapter.tells_cost:
        return
    models: set[str] = set()
    for suite in job.plan.suites:
        named, work = models_of(adapter, suite.suite), of_suite(job.plan, suite)
        models |= {named.user} if named.user and work.user_calls else set()
        auditor = _auditor(adapter, suite.suite)
        models |= {auditor} if auditor and work.user_calls else set()
        models |= set(named.judges) if work.judge_calls else set()
        models |= {named.embedder} if named.embedder and work.embedder_calls else set()
    check_priced(models, job.prices())


def _auditor(adapter: Connections | Participants, suite: Suite) -> str | None:
    if isinstance(adapter, Connections):
        return adapter.auditor(suite)
    return adapter.audit_llm.model if adapter.audit_llm else None


def _too_dear(job: Job, results: Results, trials: int) -> bool:
    """Whether so many trials in all, each like those played, would cost more than is allowed.

    So they would where nobody knows the cost.
    """
    allowed, cost = job.policy.max_cost, results.usage.cost_usd
    return allowed is not None and (cost is None or cost * trials / results.counts.trials > allowed)


@dataclass(frozen=True)
class _Players:
    """Who plays, and what can be asked of them all; nothing of those that a caller brings."""

    participants_for: ParticipantsFor
    run_participants: RunParticipants | None = None
    judges: tuple[CheckedJudge, ...] = ()
    """Those whose verdicts the plan wants, each model once."""

    async def check_agents(self, stop: Stop) -> None:
        """Ends the run before it has begun where an agent's key is refused."""
        try:
            if self.run_participants:
                await self.run_participants.check_agents()
        except AgentAccessError as error:
            stop.because(str(error), outage=True)

    async def check_models(self, stop: Stop) -> None:
        """Ends the run soon after it has begun where the models' key is refused."""
        await asyncio.sleep(0)  # the first conversations go before an import that takes a second or two
        try:
            if self.run_participants and not stop.requested:
                await self.run_participants.check_models()
        except LLMAccessError as error:
            stop.because(str(error), outage=True, cut_off=True)

    def waits(self) -> Iterable[tuple[str, Waiting | None]]:
        """How long each neighbour is waited for now."""
        return self.run_participants.waits() if self.run_participants else ()

    def notes(self) -> tuple[str, ...]:
        """What they tell of the run."""
        return self.run_participants.notes() if self.run_participants else ()


@asynccontextmanager
async def _players(job: Job, adapter: Connections | Participants) -> AsyncIterator[_Players]:
    async with pool.kept_open():
        if job.participants_for:
            yield _Players(job.participants_for)
        elif isinstance(adapter, Participants):
            participants = adapter
            judges = participants.judges if of_plan(job.plan).judge_calls else ()
            yield _Players(
                lambda trial: job.wrap(trial, participants), judges=tuple(map(CheckedJudge, judges))
            )
        else:
            async with build_participants(job.plan, adapter, job.redactor) as run_participants:
                examined = tuple(
                    CheckedJudge.cached(llm, run_participants.cache) for llm in run_participants.judges
                )
                yield _Players(
                    lambda trial: job.wrap(trial, run_participants.by_suite[trial.suite]),
                    run_participants,
                    examined,
                )
