"""Plays a plan: conversations run side by side, and results keep the plan's order."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from types import MappingProxyType
from typing import Protocol

from ci_evals.conversation import audit
from ci_evals.conversation.converse import ConversationEnd, ConversationPlayer
from ci_evals.conversation.in_world import WorldPlayer
from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.canaries import draw, filled
from ci_evals.domain.checks.strict.expected_answers import NO_MODEL
from ci_evals.domain.errors import AgentAccessError, LLMAccessError, UsageError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import Listener, ModelAnswered, TrialFinished, TrialStarted, TurnPlayed
from ci_evals.domain.results.process import Times
from ci_evals.domain.results.simulated_user import UserAudit
from ci_evals.domain.results.trial import Attempt, TrialResult
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, PlannedTurn
from ci_evals.domain.transcript import EndState, Transcript, Turns
from ci_evals.domain.verdict import Cause, Finding, Verdict
from ci_evals.grading.grade import NO_JUDGE, NO_USER, grade
from ci_evals.grading.judge import Judge
from ci_evals.grading.semantic import SemanticMatcher
from ci_evals.metering import MeteredEmbedder, MeteredLLM
from ci_evals.ports import LLM, Agent, CallFunction, Embedder, WorldSteps
from ci_evals.scoring import process
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class Participants:
    """Agent, simulated user and judge of a trial; without models a scripted user and no judge."""

    agent: Agent
    user_llm: LLM | None = None
    judge_llm: LLM | None = None
    embedder: Embedder | None = None
    judge_panel: Sequence[LLM] = ()
    """The models that vote in turn, instead of one judge."""
    judge_votes: int = 1
    """The most votes on one criterion; odd."""
    world: WorldSteps | None = None
    """Does the steps of the tests' worlds; without it they have none."""
    audit_llm: LLM | None = None
    """Checks whether the simulated user kept to its role."""
    audit_all: bool = True
    """False if it checks only the tests that ask for it (`auditUser`)."""
    adjust_findings: Callable[[tuple[Finding, ...]], tuple[Finding, ...]] = tuple
    """Changes findings that are known to be wrong, as those of a recording may be."""
    call_function: CallFunction | None = None
    """Calls the functions of `python` checks; without it they are undecided."""
    canaries: Mapping[str, str] | None = None
    """The values of a recorded trial's canaries; without them they are drawn."""

    def __post_init__(self) -> None:
        if self.judge_votes < 1 or self.judge_votes % 2 == 0:
            raise UsageError(f"judge_votes={self.judge_votes}: it takes an odd number to come to a majority")

    @property
    def judges(self) -> Sequence[LLM]:
        """The models that judge, if anything is judged."""
        return self.judge_panel or ([self.judge_llm] if self.judge_llm else ())


@dataclass(frozen=True)
class Options:
    """Settings for playing a plan."""

    parallel: int = 1
    retries: int = 1
    agent_timeout: float = DEFAULT_TIMEOUT_SECONDS
    """Seconds that a reply may take in turns that set no `timeout`."""
    judge_first: bool = False
    """True if a conversation waits for the verdicts on the one before it, since they may end the run."""
    timed: bool = True
    """True if results say where the time went: while a recording is played nobody waits."""
    clock: Callable[[], float] = time.perf_counter
    debug: bool = False
    """Keep what a judge wrote if it could not be used."""


ParticipantsFor = Callable[[Trial], Participants]
SaveTrial = Callable[[Trial, TrialResult], Awaitable[None]]
"""Puts the result of a finished trial where it will not be lost. Raises nothing."""
GradeTrial = Callable[[], Awaitable[TrialResult]]
"""Grades a conversation that has ended, whatever made it end, and returns a result without secrets."""


class TrialPlayer(Protocol):
    """Plays trials, in this process or elsewhere."""

    async def converse(self, trial: Trial) -> GradeTrial:
        """Play the trial's conversation to its end, retries included, and return what grades it."""
        ...


async def run(
    plan: Plan,
    participants_for: ParticipantsFor,
    options: Options,
    redactor: Redactor,
    *,
    done: Mapping[Trial, TrialResult] = MappingProxyType({}),
    admit: Callable[[], Awaitable[bool]] | None = None,
    save: SaveTrial | None = None,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
) -> tuple[TrialResult | None, ...]:
    """Play every trial of the plan that is not `done`, each with the participants of `participants_for`."""
    stop = stop or Stop()
    player = LocalPlayer(plan, participants_for, options, redactor, listen, stop)
    return await play(plan, player, options, done=done, admit=admit, save=save, listen=listen, stop=stop)


async def play(
    plan: Plan,
    player: TrialPlayer,
    options: Options,
    *,
    done: Mapping[Trial, TrialResult] = MappingProxyType({}),
    admit: Callable[[], Awaitable[bool]] | None = None,
    save: SaveTrial | None = None,
    listen: Listener = lambda _: None,
    stop: Stop,
) -> tuple[TrialResult | None, ...]:
    """Have every trial of the plan that is not `done` played by `player`.

    `admit` is asked before each trial, and may take its time: if it refuses, no more are begun.

    Returns a result without secrets for each trial of `plan.trials`, None for those that were not started
    before a stop. A trial that a stop cuts off is `interrupted`, with its turns until then; any other is
    saved before the listener hears of its end. A bug of ours stops the run too, and stands in `stop.bug`.
    """
    trials = plan.trials
    results = [done.get(trial) for trial in trials]
    # A conversation's slot is free for the next one while the last is judged; no more are judged at a time
    # than may talk, so that transcripts do not pile up before a slow judge.
    judging = asyncio.Semaphore(options.parallel)

    async def grade_trial(index: int, grade_conversation: GradeTrial) -> None:
        trial = trials[index]
        try:
            result = await grade_conversation()
            if save and result.status is not EndState.INTERRUPTED:
                await save(trial, result)
            results[index] = result = result.packed()
            listen(TrialFinished(trial, result))
        finally:
            judging.release()

    async with asyncio.TaskGroup() as grading:

        async def play_trial(index: int) -> None:
            listen(TrialStarted(trials[index]))
            grade_conversation = await player.converse(trials[index])
            await judging.acquire()
            task = grading.create_task(stop.stop_on_error(grade_trial(index, grade_conversation)))
            if options.judge_first:
                await task

        order = _play_order(plan, done, options.parallel)
        await stop.for_each(
            order,
            play_trial,
            parallel=options.parallel,
            admit=admit,
            lock_of=lambda index: plan.lock_of(trials[index]),
        )
    return tuple(results)


def interruption(stop: Stop) -> str:
    """The reason why a trial was cut off."""
    return "the run was interrupted" if stop.interrupted else "the run was ended meanwhile"


def _play_order(plan: Plan, done: Container[Trial], parallel: int) -> list[int]:
    """The positions in the plan of the trials to play, in the order in which they begin.

    Those with the most turns first, or the last one to begin could be long, and all other slots idle until it
    ends; of equally long tests each once, then each again, which is the earliest news of every one. Arms
    alternate trial by trial, and none is always first: what changes while a run lasts changes for all.
    """
    trials, arms = plan.trials, len(plan.arms)
    order = [index for index, trial in enumerate(trials) if trial not in done]

    def place(index: int) -> tuple[int, ...]:
        trial = trials[index]
        arm, suite = plan.arm_of(trial.suite), trial.suite % (len(plan.suites) // arms)
        turn = (arm + trial.test + trial.index) % arms
        if parallel == 1:
            return suite, trial.test, trial.index, turn
        return -len(plan.turns_of(trial)), trial.index, suite, trial.test, turn

    return sorted(order, key=place)


_RUN_ENDED = Verdict.undecided(Cause.JUDGE_ERROR, "the run was ended before the model had answered")


@dataclass
class _FinishedConversation:
    transcript: Transcript
    attempts: tuple[Attempt, ...]
    started: float
    user_audit: UserAudit | None
    user_seconds: float
    meters: tuple[MeteredLLM | MeteredEmbedder, ...]
    judge: Judge | Verdict
    semantic_matcher: SemanticMatcher | Verdict
    adjust_findings: Callable[[tuple[Finding, ...]], tuple[Finding, ...]]
    call_function: CallFunction | None
    nobody_played: bool
    """True if a script stood in for a user whom only a model can play."""


@dataclass(frozen=True)
class LocalPlayer:
    """Plays trials in this process. Implements `TrialPlayer`."""

    plan: Plan
    participants_for: ParticipantsFor
    options: Options
    redactor: Redactor
    listen: Listener
    stop: Stop

    async def converse(self, trial: Trial) -> GradeTrial:
        """Play the trial, again from a fresh session if it fails or its user breaks its role."""
        clock = self.options.clock
        started = clock()

        def spent(usage: RoleUsage) -> None:
            self.listen(ModelAnswered(trial, usage))

        who = self.participants_for(trial)
        user_meter = MeteredLLM(who.user_llm, "user", spent, clock) if who.user_llm else None
        judge_meters = tuple(MeteredLLM(llm, "judge", spent) for llm in who.judges)
        embedder_meter = MeteredEmbedder(who.embedder, "embedder", spent) if who.embedder else None
        audits = who.audit_all or self.plan.test_of(trial).audit_user
        auditor_meter = MeteredLLM(who.audit_llm, "auditor", spent) if who.audit_llm and audits else None
        auditor = audit.Auditor(auditor_meter, self.redactor) if auditor_meter else None
        user = ModelUser(user_meter, self.redactor.only_keys) if user_meter else ScriptedUser()
        # Keys go to nobody: not to the agent, in whose messages an author may have put one, nor to the user.
        test = self.redactor.only_keys.model(self.plan.test_of(trial))
        canaries = draw(test.canaries) if who.canaries is None else who.canaries
        test = filled(test, canaries)
        # An agent may be anybody's code: what it does with its user's data reaches no other trial.
        # Nor are addresses and passwords of databases for it.
        test = test.copy_with(setup=(), probes={}, teardown=(), user_info=deepcopy(test.user_info))
        world = WorldPlayer(self.plan.world_of(trial), who.world, self.stop)
        planned_turns = self.plan.suites[trial.suite].suite.turns_of(test)
        turns = [self._with_timeout(turn) for turn in planned_turns]
        attempts: list[Attempt] = []
        while True:
            conversation = ConversationPlayer(
                who.agent, user, lambda number: self.listen(TurnPlayed(trial, number)), canaries
            )
            end = await world.play(conversation, test, turns)
            transcript, user_audit = conversation.transcript(end), None
            if user_meter:
                user_audit = await self.stop.run_until_stopped(audit.check(test, transcript, auditor))
            else:
                user_audit = audit.check_script(test, transcript)
            if user_audit and not user_audit.valid:
                reason = audit.reason(user_audit)
                transcript = transcript.copy_with(status=EndState.INVALID_USER, error=reason)
            if isinstance(end.failure, AgentAccessError | LLMAccessError):
                self.stop.request(str(end.failure), outage=True)
            attempt = Attempt(status=transcript.status, error=transcript.error, cause=transcript.cause)
            if not self._retries(attempts, transcript.status):
                attempts.append(attempt)
                break
            attempts.append(replace(attempt, user_audit=user_audit))
        finished = _FinishedConversation(
            transcript=transcript,
            attempts=tuple(attempts),
            user_audit=user_audit,
            started=started,
            user_seconds=user_meter.seconds if user_meter else 0.0,
            nobody_played=user_meter is None and self.plan.needs_model_user(trial),
            meters=tuple(m for m in (user_meter, auditor_meter, *judge_meters, embedder_meter) if m),
            judge=self._judge(trial, judge_meters, who.judge_votes, end),
            semantic_matcher=SemanticMatcher(embedder_meter, self.redactor) if embedder_meter else NO_MODEL,
            adjust_findings=who.adjust_findings,
            call_function=who.call_function,
        )
        return partial(self._grade, trial, finished)

    def _with_timeout(self, turn: PlannedTurn) -> PlannedTurn:
        if "timeout" in turn.model_fields_set:
            return turn
        return turn.copy_with(timeout=self.options.agent_timeout)

    def _retries(self, earlier: Sequence[Attempt], status: EndState) -> bool:
        """Return whether a trial that ended like this is retried; if its user broke character, once."""
        most = {EndState.FAILED: self.options.retries, EndState.INVALID_USER: 1}.get(status, 0)
        return sum(attempt.status is status for attempt in earlier) < most and not self.stop.requested

    def _judge(
        self, trial: Trial, llms: Sequence[MeteredLLM], votes: int, end: ConversationEnd
    ) -> Judge | Verdict:
        if not llms:
            return NO_JUDGE
        if isinstance(end.failure, LLMAccessError):  # the same key opens the judge
            return Verdict.undecided(Cause.JUDGE_ERROR, str(end.failure))
        return Judge(llms, self.redactor, votes=votes, sample_id=str(trial.index), debug=self.options.debug)

    async def _grade(self, trial: Trial, finished: _FinishedConversation) -> TrialResult:
        """Grade the conversation; one that is interrupted here is cut off too."""
        test, turns = self.plan.test_of(trial), self.plan.turns_of(trial)
        transcript, findings, begun = finished.transcript, None, self.options.clock()
        if finished.nobody_played:
            findings = tuple(Finding.of(evaluation, NO_USER) for evaluation in test.evaluations)
        elif transcript.status not in {EndState.INTERRUPTED, EndState.INVALID_USER}:
            grading = grade(
                test,
                turns,
                transcript,
                finished.judge,
                finished.semantic_matcher,
                call_function=finished.call_function,
            )
            findings = await self.stop.run_until_stopped(grading)
            if findings is None:  # what needs no model is decided all the same
                findings = await grade(test, turns, transcript, _RUN_ENDED, _RUN_ENDED)
                transcript = transcript.copy_with(status=EndState.INTERRUPTED)
        if transcript.status is EndState.INTERRUPTED:
            transcript = transcript.copy_with(error=interruption(self.stop))
        for meter in finished.meters:
            if meter.refusal:
                self.stop.request(meter.refusal, outage=True)
        ended = self.options.clock()
        result = TrialResult(
            index=trial.index,
            status=transcript.status,
            error=transcript.error,
            cause=transcript.cause,
            duration_seconds=ended - finished.started,
            attempts=finished.attempts,
            closing_remark=transcript.closing_remark,
            turns=Turns(transcript.turns),
            probes=transcript.probes,
            probes_before=transcript.probes_before,
            canaries=transcript.canaries,
            findings=finished.adjust_findings(findings) if findings else (),
            user_audit=finished.user_audit,
            usage=tuple(meter.usage for meter in finished.meters if meter.calls),
            times=self._times(finished, judge=ended - begun, whole=ended - finished.started),
        )
        # A listener may write what it hears.
        result = self.redactor.model(result)
        traces = process.of_turns(result.turns, test.optimal_tools)
        return replace(result, process=traces.process, fired=traces.fired)

    def _times(self, finished: _FinishedConversation, *, judge: float, whole: float) -> Times | None:
        """The time of a trial by participant. Agents measure their replies by a clock of their own."""
        if not self.options.timed:
            return None
        agent = fsum(turn.latency_seconds for turn in finished.transcript.turns)
        other = max(0.0, whole - agent - finished.user_seconds - judge)
        return Times(agent=agent, user=finished.user_seconds, judge=judge, other=other)
