"""The participants of a run's suites: agent, simulated user and judges."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from ci_evals import extension_registry
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAccessError
from ci_evals.domain.plan import Plan, PlannedSuite, Trial
from ci_evals.domain.suite import Suite
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.ports import KeyCheckingAgent, SpanReceiver, WorldSteps
from ci_evals.runner import Participants
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents, agent_settings
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.functions import function_caller
from ci_evals.wiring.models import CheckedJudge, RunModels


class Players:
    """Those who play the trials of a run: built from settings, given by a library's caller, or replayed.

    What only built ones have to do before and during a run, others pass over.
    """

    judges: tuple[CheckedJudge, ...] = ()
    """Those whose verdicts the plan wants, each model once."""
    receiver: SpanReceiver | None = None
    """The receiver of spans, if any agent has them received."""

    def participants(self, trial: Trial) -> Participants:
        """Return the participants of a trial."""
        raise NotImplementedError

    async def start_agents(self, stop: Stop) -> None:
        """Start the programs that serve agents, or end the run before it has begun."""

    async def watch_agents(self, stop: Stop) -> None:
        """End the run once such a program has ended: no other trial can do better."""

    async def check_agents(self, stop: Stop) -> None:
        """End the run before it has begun if an agent's key is refused."""

    async def check_models(self, stop: Stop) -> None:
        """End the run soon after it has begun if the models' key is refused."""

    def waits(self) -> Iterable[tuple[str, Waiting | None]]:
        """Return the current waits for each server."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Return what the results should say of them."""
        return ()


class GivenPlayers(Players):
    """The same participants for all trials, as a library's caller gives them."""

    def __init__(self, plan: Plan, given: Participants, redactor: Redactor) -> None:
        """Give each suite the steps of its world, unless the caller has some."""
        worlds = []
        for planned in plan.suites:
            url = planned.suite.base_url or ""
            worlds.append(given.world or world_steps(planned, os.environ, redactor, url))
        self._by_suite = tuple(replace(given, world=world) for world in worlds)
        if of_plan(plan).judge_calls:
            self.judges = tuple(map(CheckedJudge, given.judges))

    def participants(self, trial: Trial) -> Participants:
        """Return those of the trial's suite."""
        return self._by_suite[trial.suite]

    def notes(self) -> tuple[str, ...]:
        """Return what the worlds have to say."""
        return _notes_of_worlds(self._by_suite)


def _notes_of_worlds(by_suite: Iterable[Participants]) -> tuple[str, ...]:
    return tuple(note for suite in by_suite if suite.world for note in suite.world.notes())


class BuiltPlayers(Players):
    """The participants of a run, built from settings for each suite of its plan."""

    def __init__(
        self,
        by_suite: Sequence[Participants],
        judges: Iterable[CheckedJudge],
        agents: RunAgents,
        models: RunModels,
    ) -> None:
        self.by_suite = tuple(by_suite)
        self.judges = tuple(judges)
        self.agents, self._models = agents, models
        self.receiver = agents.receiver

    def participants(self, trial: Trial) -> Participants:
        """Return those of the trial's suite."""
        return self.by_suite[trial.suite]

    async def start_agents(self, stop: Stop) -> None:
        """Start the programs that serve agents, or end the run before it has begun."""
        try:
            await self.agents.start_programs()
        except AgentError as error:
            stop.request(str(error), outage=True, cut_off=True)

    async def watch_agents(self, stop: Stop) -> None:
        """End the run once such a program has ended."""
        stop.request(await self.agents.ended_program(), outage=True, cut_off=True)

    async def check_agents(self, stop: Stop) -> None:
        """Learn whether agents' keys are good if a simulated user would be paid before they are asked.

        That costs nothing, and takes some seconds at most.
        """
        paid_first = [suite.agent for suite in self.by_suite if suite.user_llm]
        checks = (agent.check() for agent in paid_first if isinstance(agent, KeyCheckingAgent))
        for error in await asyncio.gather(*checks, return_exceptions=True):
            if isinstance(error, AgentAccessError):
                stop.request(str(error), outage=True)
                return
            if error:
                raise error

    async def check_models(self, stop: Stop) -> None:
        """End the run soon after it has begun if the models' key is refused."""
        await asyncio.sleep(0)  # the first conversations go before an import that takes a second or two
        try:
            if not stop.requested:
                await self._models.check()
        except LLMAccessError as error:
            stop.request(str(error), outage=True, cut_off=True)

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """The current waits for each server."""
        yield from self.agents.waits()
        yield from self._models.waits()

    def limiters(self) -> list[RateLimiter]:
        """The rate limiters of all services: in every process that builds the same plan the same ones."""
        return [*self.agents.limiters(), *self._models.limiters()]

    def notes(self) -> tuple[str, ...]:
        """Limits that servers have set to the rate until now, and what is known of the cache."""
        return (*self.agents.notes(), *self._models.notes(), *_notes_of_worlds(self.by_suite))


@asynccontextmanager
async def build_players(
    plan: Plan, connections: Connections, redactor: Redactor
) -> AsyncIterator[BuiltPlayers]:
    """Build the participants of each suite of the plan, and close them afterwards.

    Raise `UsageError` if the plan needs an LLM and there is no key, or an agent cannot be built.
    """
    async with AsyncExitStack() as stack:
        agents = RunAgents(connections, redactor, stack)
        if connections.otlp or any(planned.suite.trace == "otlp" for planned in plan.suites):
            agents.receive_spans()
        models = RunModels(connections, redactor, stack, "run")
        compares = connections.embedder if of_plan(plan).embedder_calls else None
        embedder = models.embedder(compares) if compares else None
        by_suite, all_judges = [], dict[str, None]()
        for planned in plan.suites:
            names, work = connections.models(planned.suite), of_suite(plan, planned)
            user = names.user if work.user_calls else None
            judges = names.judges if work.judge_calls else ()
            all_judges |= dict.fromkeys(judges)
            agent = agents.agent(planned)
            participants = Participants(
                agent,
                world=world_steps(planned, connections.environ, redactor, agents.base_url(planned.suite)),
                user_llm=models.llm(user) if user else None,
                audit_llm=models.llm(names.auditor) if user and names.auditor else None,
                audit_all=connections.audit_user,
                judge_panel=tuple(map(models.judge, judges)),
                judge_votes=names.votes if judges else 1,
                embedder=embedder,
                call_function=function_caller(connections.environ, redactor),
            )
            by_suite.append(participants)
        await agents.start()
        yield BuiltPlayers(by_suite, map(models.checked_judge, all_judges), agents, models)


def world_steps(
    planned: PlannedSuite, environ: Mapping[str, str], redactor: Redactor, base_url: str
) -> WorldSteps | None:
    """The object that does the steps of a suite's worlds; None if they have none."""
    if not planned.has_worlds:
        return None
    steps: WorldSteps = extension_registry.world_steps(environ, redactor, base_url)
    return steps


def participants_for(
    target: Any, suite: Suite, redactor: Redactor | None = None, *, debug: bool = False
) -> Participants:
    """The participants that an object of a library's caller gives for a suite, or raise `UsageError`.

    An object with `open_session` and `send_message`, or a function `reply(message)`, is the agent alone: the
    user is scripted, and nothing is judged. One with the four methods of the adapters of `@aui.io/evals` is
    the agent, and the models behind judge and simulated user too if it has their methods. `Participants` stay
    as they are.
    """
    from ci_evals.agents.python.four_methods import FourMethodAgent, MethodLLM  # noqa: PLC0415  # likewise
    from ci_evals.agents.python.loading import agent_of  # noqa: PLC0415  # 0.2 s, for libraries alone

    if isinstance(target, Participants):
        return target
    redactor = redactor or Redactor()
    name = getattr(target, "__qualname__", type(target).__qualname__)
    agent = agent_of(target, name, agent_settings(suite, redactor, debug=debug), redactor)
    if not isinstance(agent, FourMethodAgent):
        return Participants(agent, call_function=function_caller(os.environ, redactor))

    def llm(method: str, model: str | None) -> MethodLLM | None:
        function = getattr(target, method, None)
        return MethodLLM(function, f"{name}.{method}", model, redactor=redactor) if function else None

    user_llm, judge_llm = llm("generate_user_message", suite.user_model), llm("call_judge", suite.judge_model)
    return Participants(agent, user_llm, judge_llm, call_function=function_caller(os.environ, redactor))


def judged_by_method(player: object) -> bool:
    """Return whether the judge is the method `call_judge` of a library caller's object."""
    from ci_evals.agents.python.four_methods import MethodLLM  # noqa: PLC0415  # as above

    return isinstance(player, Participants) and isinstance(player.judge_llm, MethodLLM)
