"""Play a plan, decide the gate, and play more of it as long as the decision asks for that."""

import asyncio
import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ci_evals.adapters.journal.records import JournalMark
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAccessError, UsageError
from ci_evals.domain.plan import PlannedSuite, Trial
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Event, Extended, Listener, ModelAnswered, RunResumed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.gate.rules.max_cost import MaxCost
from ci_evals.job.job import Job
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.late_evidence import LateEvidence, PlayPlan
from ci_evals.job.limits import Budget, LimitsWatcher
from ci_evals.job.results_builder import ResultsBuilder
from ci_evals.job.setup import RunSetup
from ci_evals.job.stages import first_stage, next_stage
from ci_evals.planning.workload import of_plan
from ci_evals.ports import WorldSteps
from ci_evals.runner import Participants, ParticipantsFor, SaveTrial, play, run
from ci_evals.stop import Stop
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import CheckedJudge
from ci_evals.wiring.participants import RunParticipants, build_participants, world_steps
from ci_evals.wiring.waits import report_waits

if TYPE_CHECKING:
    from ci_evals.adapters.journal.capture import RunCapture
    from ci_evals.job.job import PlayerElsewhere


async def evaluate(
    job: Job,
    clients: Connections | Participants,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """Play a plan, score it, and let the gate decide. Secrets are taken out of the results.

    Trials that the job's journal holds are not rerun.

    Raises:
        UsageError: before anything is played: a budget is set and a model has no price, an agent or a model
            cannot be built, or the journal is of another run.
    """
    stop = stop or Stop()
    setup = RunSetup.of(job.plan, clients)
    if job.policy.rule(MaxCost).max_cost is not None and not setup.reports_cost:
        check_priced(set(setup.paid_models(job.plan)), job.prices())
    async with _participants(job, clients, stop) as players:
        builder = ResultsBuilder(job, setup, stop, now, notes=players.notes)
        done = _resume(job, builder, listen)
        budget = Budget(job.policy.rule(MaxCost).max_cost, job.prices)
        limits = LimitsWatcher(
            job.limits,
            budget,
            stop,
            builder.undecided_rule,
            job.options.parallel,
            is_tested=lambda trial: job.plan.arm_of(trial.suite) == 0,
            is_quarantined=lambda trial: job.plan.test_of(trial).quarantine is not None,
        )
        limits.count_resumed(done)

        def hear(event: Event) -> None:
            limits(event)
            listen(event)

        save = _saver(job, builder, players.capture)
        if players.elsewhere:
            players.elsewhere.listen = hear
            begin = partial(play, player=players.elsewhere)
        else:
            begin = partial(run, participants_for=players.participants_for, redactor=job.redactor)
        play_plan: PlayPlan = partial(
            begin,
            options=replace(
                job.options,
                judge_first=job.limits.fail_fast or budget.most is not None,
                timed=job.origin is None,
            ),
            admit=limits.admits,
            save=save,
            listen=hear,
            stop=stop,
        )
        if late := _late_evidence(job, players, save):
            play_plan = late.settling(play_plan, stop)
        checks = builder.judge_checks = JudgeChecks(
            judges=players.judges,
            mode=job.judge_check,
            provider=setup.provider,
            redactor=job.redactor,
            baseline=job.baseline.results,
            prices=job.prices,
            now=builder.now,
            spent=lambda usage: hear(ModelAnswered(None, usage)),
        )
        play_all = partial(_play_in_stages, job, builder, play_plan, done, listen=listen, stop=stop)
        with _timed(job, limits):
            check_judges = _check_judges(job, checks, players.capture, stop)
            # The judges of a resumed run are checked even if all its trials have finished.
            if done.keys() >= set(job.plan.trials):
                async with _in_background(stop.stop_on_error(check_judges)) as checked:
                    return await play_all(checked)
            async with report_waits(players.waits, listen):
                await stop.run_until_stopped(players.start_agents(stop))
                await stop.run_until_stopped(players.check_agents(stop))
                async with (
                    _in_background(stop.stop_on_error(players.watch_agents(stop))),
                    _in_background(stop.stop_on_error(players.check_models(stop))),
                    _in_background(stop.stop_on_error(check_judges)) as checked,
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
    if job.journal:
        job.journal.open(builder.header)
    if job.write_unfinished:
        job.write_unfinished(builder.unfinished())
    past = job.journal.past if job.journal else None
    if not (job.journal and past):
        return {}
    builder.resumed = past.done.keys()
    job.journal.mark(JournalMark(mark="resumed"))
    listen(RunResumed(len(past.done.keys() & set(job.plan.trials)), past.header.started_at))
    return past.done


async def _check_judges(job: Job, checks: JudgeChecks, capture: "RunCapture | None", stop: Stop) -> None:
    await asyncio.sleep(0)  # the first conversations begin before anything is rendered or imported for it
    await checks.ask(stop)
    if job.journal is None:
        return
    if checks.failed:
        job.journal.mark(JournalMark(mark="judge_check_failed"))
    if capture and (answers := capture.judge_check_answers()).judge_check:
        job.journal.mark(answers)


async def _play_in_stages(
    job: Job,
    builder: ResultsBuilder,
    play: PlayPlan,
    done: Mapping[Trial, TrialResult],
    checked: Awaitable[None],
    *,
    listen: Listener,
    stop: Stop,
) -> Results:
    """Play the plan, and more of it as long as its results ask for that."""
    stage, finished = first_stage(job), dict(done)
    if stage.plan.trials != job.plan.trials:
        listen(Extended(stage.plan, ()))
    while True:
        played = await play(stage.plan, done=finished)
        await checked
        _mark_outage(job, stop)
        results = builder.results(stage.plan, played)
        following = None if stop.requested else next_stage(stage, results)
        if following is None:
            return results
        done_now = zip(stage.plan.trials, played, strict=True)
        finished |= {trial: result for trial, result in done_now if result}
        listen(Extended(following.plan, following.because))
        stage = following


def _late_evidence(job: Job, players: "_JobParticipants", save: SaveTrial | None) -> LateEvidence | None:
    """What corrects results if spans are received."""
    receiver = players.built.agents.receiver if players.built else None
    if receiver is None:
        return None
    return LateEvidence(receiver, job.redactor, job.journal, save)


def _saver(job: Job, builder: ResultsBuilder, capture: "RunCapture | None") -> SaveTrial | None:
    """Return what keeps finished trials in the journal, if there is one."""
    journal = job.journal
    if journal is None:
        return None

    async def save(trial: Trial, result: TrialResult) -> None:
        answers = capture.finish(trial) if capture else None
        await journal.keep(trial, result, builder.elapsed, builder.now(), answers)

    return save


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
    if job.limits.max_duration is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(job.limits.max_duration, limits.out_of_time)
    try:
        yield
    finally:
        timer.cancel()


@dataclass(frozen=True)
class _JobParticipants:
    """The participants of a job, and the checks of those that settings chose."""

    participants_for: ParticipantsFor
    judges: tuple[CheckedJudge, ...] = ()
    """Those whose verdicts the plan wants, each model once."""
    built: RunParticipants | None = None
    worlds: tuple[WorldSteps, ...] = ()
    """Of the suites, where nothing was built."""
    elsewhere: "PlayerElsewhere | None" = None
    """Plays the trials instead of this process."""
    capture: "RunCapture | None" = None
    """The answers of agents and models, if they are to be kept."""

    async def start_agents(self, stop: Stop) -> None:
        """Start the programs that serve agents, or end the run before it has begun."""
        try:
            if self.built:
                await self.built.agents.start_programs()
        except AgentError as error:
            stop.request(str(error), outage=True, cut_off=True)

    async def watch_agents(self, stop: Stop) -> None:
        """End the run once such a program has ended: no other trial can do better."""
        if self.built:
            stop.request(await self.built.agents.ended_program(), outage=True, cut_off=True)

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
        return self.built.waits() if self.built else ()

    def notes(self) -> tuple[str, ...]:
        worlds = (note for world in self.worlds for note in world.notes())
        lost = self.elsewhere.notes() if self.elsewhere else ()
        return (*(self.built.notes() if self.built else ()), *worlds, *lost)


@asynccontextmanager
async def _participants(
    job: Job, clients: Connections | Participants, stop: Stop
) -> AsyncIterator[_JobParticipants]:
    if job.replay:
        judges = job.replay.judges(always=job.judge_check is CheckMode.ALWAYS)
        yield _JobParticipants(job.replay.participants, judges)
    elif isinstance(clients, Participants):
        llms = clients.judges if of_plan(job.plan).judge_calls else ()
        suites = tuple(_in_world(clients, planned, job) for planned in job.plan.suites)
        worlds = tuple(suite.world for suite in suites if suite.world)
        judges = tuple(map(CheckedJudge, llms))
        yield _recorded(job, _JobParticipants(lambda trial: suites[trial.suite], judges, worlds=worlds))
    else:
        async with build_participants(job.plan, clients, job.redactor) as built:
            local = _JobParticipants(lambda trial: built.by_suite[trial.suite], built.judges, built)
            if job.elsewhere is None:
                yield _recorded(job, local)
                return
            if job.journal and job.journal.holds_answers:
                raise UsageError(
                    "--cluster, --resume: the run to resume was recorded, and answers are recorded by one "
                    "process. Omit --cluster, or start over without --resume."
                )
            async with job.elsewhere(job, clients, built, stop) as player:
                yield replace(local, elsewhere=player)


def _in_world(clients: Participants, planned: PlannedSuite, job: Job) -> Participants:
    """Given participants, with what does the steps of a suite's worlds."""
    url = planned.suite.base_url or ""
    return replace(clients, world=clients.world or world_steps(planned, os.environ, job.redactor, url))


def _recorded(job: Job, participants: _JobParticipants) -> _JobParticipants:
    """The participants with their answers captured, if the journal is to hold them."""
    if job.journal is None or not job.journal.holds_answers:
        return participants
    from ci_evals.adapters.journal.capture import RunCapture  # noqa: PLC0415  # few runs are recorded
    from ci_evals.wiring.recordings import recorded, recorded_judges  # noqa: PLC0415  # likewise

    capture, unrecorded = RunCapture(job.plan, job.redactor), participants.participants_for
    return replace(
        participants,
        participants_for=lambda trial: recorded(unrecorded(trial), capture.begin(trial)),
        judges=recorded_judges(participants.judges, capture),
        capture=capture,
    )
