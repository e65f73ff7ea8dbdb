"""Play a plan, decide the gate, and play more of it as long as the decision asks for that."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ci_evals.adapters.journal.records import JournalMark
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Event, Extended, Listener, ModelAnswered, RunResumed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.gate.rules.max_cost import MaxCost
from ci_evals.grading import control
from ci_evals.job.chosen import Chosen, ChosenModels
from ci_evals.job.job import Job
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.late_evidence import LateEvidence, PlayPlan
from ci_evals.job.limits import Budget, LimitsWatcher
from ci_evals.job.results_builder import ResultsBuilder
from ci_evals.job.stages import first_stage, next_stage
from ci_evals.planning.workload import judges_claims
from ci_evals.runner import Participants, ParticipantsFor, SaveTrial, play, run
from ci_evals.stop import Stop
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import CheckedJudge
from ci_evals.wiring.players import GivenPlayers, Players, build_players
from ci_evals.wiring.waits import report_waits

if TYPE_CHECKING:
    from ci_evals.adapters.journal.capture import RunCapture
    from ci_evals.job.job import PlayerElsewhere


async def evaluate(
    job: Job,
    chosen: Chosen,
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
    models = ChosenModels.of(job.plan, chosen)
    if job.policy.rule(MaxCost).max_cost is not None and not models.reports_cost:
        check_priced(set(models.paid_models(job.plan)), job.prices())
    async with _players(job, chosen, stop) as (players, elsewhere):

        def notes() -> tuple[str, ...]:
            here = players.notes()
            return (*here, *elsewhere.notes()) if elsewhere else here

        builder = ResultsBuilder(job, models, stop, now, notes=notes)
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

        capture = _capture(job)
        participants_for, judges = _captured(players, capture)
        save = _saver(job, builder, capture)
        if elsewhere:
            elsewhere.listen = hear
            begin = partial(play, player=elsewhere)
        else:
            begin = partial(run, participants_for=participants_for, redactor=job.redactor)
        play_plan: PlayPlan = partial(
            begin,
            options=replace(
                job.options,
                judge_first=job.limits.fail_fast or budget.most is not None,
                timed=job.facts.origin is None,
            ),
            admit=limits.admits,
            save=save,
            listen=hear,
            stop=stop,
        )
        if players.receiver:
            late = LateEvidence(players.receiver, job.redactor, job.journal, save)
            play_plan = late.settling(play_plan, stop)
        checks = builder.judge_checks = JudgeChecks(
            judges=judges,
            mode=job.judge_check,
            provider=models.provider,
            redactor=job.redactor,
            baseline=job.baseline.results,
            prices=job.prices,
            now=builder.now,
            subjects=control.subjects(with_claims=judges_claims(job.plan)),
            spent=lambda usage: hear(ModelAnswered(None, usage)),
        )
        play_all = partial(_play_in_stages, job, builder, play_plan, done, listen=listen, stop=stop)
        with _timed(job, limits):
            check_judges = _check_judges(job, checks, capture, stop)
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
    chosen: Chosen,
    reason: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """The results of a run that was skipped: the plan, none of it played, and no verdict."""
    models = ChosenModels.of(job.plan, chosen)
    builder = ResultsBuilder(job, models, Stop(), now, skipped_because=reason)
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


@asynccontextmanager
async def _players(
    job: Job, chosen: Chosen, stop: Stop
) -> AsyncIterator[tuple[Players, "PlayerElsewhere | None"]]:
    """Build those who play the job, and what plays its trials elsewhere, if that was chosen."""
    if isinstance(chosen, Players):
        yield chosen, None
    elif isinstance(chosen, Participants):
        yield GivenPlayers(job.plan, chosen, job.redactor), None
    elif isinstance(chosen, Connections):
        async with build_players(job.plan, chosen, job.redactor) as players:
            yield players, None
    else:
        if job.journal and job.journal.holds_answers:
            raise UsageError(
                "the run to resume was recorded, and answers are recorded by one process alone: resume it "
                "in this process, or start over without `resume=`"
            )
        async with (
            build_players(job.plan, chosen.connections, job.redactor) as players,
            chosen.start(job, chosen.connections, players, stop) as elsewhere,
        ):
            yield players, elsewhere


def _capture(job: Job) -> "RunCapture | None":
    """What captures the answers of agents and models, if the journal is to hold them."""
    if job.journal is None or not job.journal.holds_answers:
        return None
    from ci_evals.adapters.journal.capture import RunCapture  # noqa: PLC0415  # few runs are recorded

    return RunCapture(job.plan, job.redactor)


def _captured(
    players: Players, capture: "RunCapture | None"
) -> tuple[ParticipantsFor, Sequence[CheckedJudge]]:
    """The participants of each trial and the judges, with their answers captured."""
    if capture is None:
        return players.participants, players.judges
    from ci_evals.wiring.recordings import recorded, recorded_judges  # noqa: PLC0415  # few runs are recorded

    def participants_for(trial: Trial) -> Participants:
        return recorded(players.participants(trial), capture.begin(trial))

    return participants_for, recorded_judges(players.judges, capture)
