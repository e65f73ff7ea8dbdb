"""Play a plan, decide the gate, and play more trials of each test if a check is near its threshold."""

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
from ci_evals.adapters.transport.waits import report_waits
from ci_evals.domain.errors import AgentAccessError, LLMAccessError
from ci_evals.domain.journal import JournalMark
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Event, Extended, Listener, ModelAnswered, RunResumed
from ci_evals.domain.results.run import Confirmation, Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.job.job import Job
from ci_evals.job.judge_check import CheckedJudge, JudgeChecks, JudgeCheckSettings
from ci_evals.job.limits import Budget, LimitsWatcher
from ci_evals.job.results_builder import ResultsBuilder
from ci_evals.job.setup import RunSetup
from ci_evals.planning.workload import of_plan
from ci_evals.reports.facts.gate import near_threshold
from ci_evals.runner import Participants, ParticipantsFor, SaveTrial, run
from ci_evals.scoring.gate.near_threshold import checks_near_threshold
from ci_evals.stop import Stop
from ci_evals.wiring import Connections, RunParticipants, build_participants


async def evaluate(
    job: Job,
    clients: Connections | Participants,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """Play a plan, score it, and let the gate decide. Secrets are taken out of the results.

    Trials that the job's journal holds are not played again.

    Raises:
        UsageError: before anything is played: a budget is set and a model has no price, an agent or a model
            cannot be built, or the journal is of another run.
    """
    stop = stop or Stop()
    setup = RunSetup.of(job.plan, clients)
    if job.policy.max_cost is not None and not setup.reports_cost:
        check_priced(set(setup.paid_models(job.plan)), job.prices())
    async with _players(job, clients) as players:
        builder = ResultsBuilder(job, setup, stop, now, notes=players.notes)
        done = _resume(job, builder, listen)
        budget = Budget(job.policy.max_cost, job.prices)
        limits = LimitsWatcher(job.limits, budget, stop, builder.undecided_rule, job.options.parallel)
        limits.count_resumed(done.values())

        def hear(event: Event) -> None:
            limits(event)
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
            admit=limits.admits,
            # The journal comes last: what it holds is not played again, so the others must have it by then.
            save=(*job.save, *_journal(job, builder)),
            listen=hear,
            stop=stop,
        )
        checks = builder.judge_checks = JudgeChecks(
            job.wrap_judges(players.judges),
            JudgeCheckSettings(
                mode=job.judge_check,
                provider=setup.provider,
                redactor=job.redactor,
                baseline=job.baseline,
                prices=job.prices,
                now=builder.now,
                spent=lambda usage: hear(ModelAnswered(None, usage)),
            ),
        )
        play_all = partial(_play_and_confirm, job, builder, play, done, listen=listen, stop=stop)
        with _timed(job, limits):
            # The judges of a resumed run are checked even if all its trials have finished.
            if done.keys() >= set(job.plan.trials):
                async with _in_background(stop.stop_on_error(_check_judges(job, checks, stop))) as checked:
                    return await play_all(checked)
            await stop.run_until_stopped(players.check_agents(stop))
            async with (
                _in_background(stop.stop_on_error(players.check_models(stop))),
                report_waits(players.waits, listen),
                _in_background(stop.stop_on_error(_check_judges(job, checks, stop))) as checked,
            ):
                return await play_all(checked)


def not_played(
    job: Job,
    clients: Connections | Participants,
    reason: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """The results of a run that was skipped: the plan, none of it played, and no verdict."""
    setup = RunSetup.of(job.plan, clients)
    builder = ResultsBuilder(job, setup, Stop(), now, skipped_because=reason)
    return builder.results(job.plan, [None] * len(job.plan.trials))


def _resume(job: Job, builder: ResultsBuilder, listen: Listener) -> Mapping[Trial, TrialResult]:
    """Begin the journal and the results, and return the trials that the journal already holds."""
    past = job.journal.past if job.journal else None
    again = job.before_playing(builder.header, past.done.keys() if past else ())
    if job.journal:
        job.journal.open(builder.header)
    if job.write_unfinished:
        job.write_unfinished(builder.unfinished())
    if not (job.journal and past):
        return {}
    done = {trial: result for trial, result in past.done.items() if trial not in again}
    builder.resumed = done.keys()
    job.journal.mark(JournalMark(mark="resumed"))
    listen(RunResumed(len(done.keys() & set(job.plan.trials)), past.header.started_at))
    return done


async def _check_judges(job: Job, checks: JudgeChecks, stop: Stop) -> None:
    """Ask the judges their control questions."""
    await asyncio.sleep(0)  # the first conversations begin before anything is rendered or imported for it
    await stop.run_until_stopped(checks.ask())
    if checks.refusal:
        stop.request(checks.refusal, outage=True)
    if job.journal and checks.failed:
        job.journal.mark(JournalMark(mark="judge_check_failed"))
    job.after_judge_check()


async def _play_and_confirm(
    job: Job,
    builder: ResultsBuilder,
    play: Callable[..., Coroutine[Any, Any, Sequence[TrialResult | None]]],
    done: Mapping[Trial, TrialResult],
    checked: Awaitable[None],
    *,
    listen: Listener,
    stop: Stop,
) -> Results:
    """Play the plan, and if checks are near their threshold, more trials of each test."""
    played = await play(job.plan, done=done)
    await checked
    _mark_outage(job, stop)
    results = builder.results(job.plan, played)
    near = checks_near_threshold(results.gate) if job.confirm and not stop.requested else ()
    if not near:
        return results
    plan = replace(job.plan, more=job.confirm)
    if _too_dear(job, results, len(plan.trials)):
        warning = "the first look was close, but more trials would not stay within --max-cost"
        info = results.run.model_copy(update={"warnings": (*results.run.warnings, warning)})
        return results.model_copy(update={"run": info})
    first = {trial: result for trial, result in zip(job.plan.trials, played, strict=True) if result}
    because = tuple(map(near_threshold, near))
    listen(Extended(plan, because))
    played = await play(plan, done={**done, **first})
    _mark_outage(job, stop)
    return builder.results(plan, played, Confirmation(trials=job.confirm, because=because))


def _journal(job: Job, builder: ResultsBuilder) -> Iterator[SaveTrial]:
    """The function that puts a finished trial into the journal, if there is one."""
    if journal := job.journal:

        async def keep(trial: Trial, result: TrialResult) -> None:
            await journal.keep(trial, result, builder.elapsed, builder.now())

        yield keep


def _mark_outage(job: Job, stop: Stop) -> None:
    if job.journal and stop.outage:
        job.journal.mark(JournalMark(mark="outage"))


@asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[Awaitable[None]]:
    """Do `work` meanwhile; gives the task to await, whose rest is canceled at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextmanager
def _timed(job: Job, limits: LimitsWatcher) -> Iterator[None]:
    """End the run when its time is up."""
    if job.limits.max_duration is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(job.limits.max_duration, limits.out_of_time)
    try:
        yield
    finally:
        timer.cancel()


def _too_dear(job: Job, results: Results, trials: int) -> bool:
    """Return whether this number of trials, each like those played, would cost more than is allowed.

    So they would where nobody knows the cost.
    """
    allowed, cost = job.policy.max_cost, results.usage.cost_usd
    return allowed is not None and (cost is None or cost * trials / results.counts.trials > allowed)


@dataclass(frozen=True)
class _Players:
    """The participants of a job, and the checks of those that settings chose."""

    participants_for: ParticipantsFor
    judges: tuple[CheckedJudge, ...] = ()
    """Those whose verdicts the plan wants, each model once."""
    built: RunParticipants | None = None

    async def check_agents(self, stop: Stop) -> None:
        """End the run before it has begun if an agent's key is refused."""
        try:
            if self.built:
                await self.built.check_agents()
        except AgentAccessError as error:
            stop.request(str(error), outage=True)

    async def check_models(self, stop: Stop) -> None:
        """End the run soon after it has begun if the models' key is refused."""
        await asyncio.sleep(0)  # the first conversations go before an import that takes a second or two
        try:
            if self.built and not stop.requested:
                await self.built.models.check()
        except LLMAccessError as error:
            stop.request(str(error), outage=True, cut_off=True)

    def waits(self) -> Iterable[tuple[str, Waiting | None]]:
        """The current waits for each server."""
        return self.built.waits() if self.built else ()

    def notes(self) -> tuple[str, ...]:
        """Notes about limits to the rate and about the cache."""
        return self.built.notes() if self.built else ()


@asynccontextmanager
async def _players(job: Job, clients: Connections | Participants) -> AsyncIterator[_Players]:
    async with pool.kept_open():
        if job.participants_for:
            yield _Players(job.participants_for)
        elif isinstance(clients, Participants):
            judges = clients.judges if of_plan(job.plan).judge_calls else ()
            yield _Players(lambda trial: job.wrap(trial, clients), tuple(map(CheckedJudge, judges)))
        else:
            async with build_participants(job.plan, clients, job.redactor) as built:
                models = built.models
                yield _Players(
                    lambda trial: job.wrap(trial, built.by_suite[trial.suite]),
                    tuple(CheckedJudge(models.llm(name), models.cache(name)) for name in built.judges),
                    built,
                )
