"""The participants of a run's suites: agent, simulated user and judges."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import Suite
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.ports import KeyCheckingAgent, WorldSteps
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents, agent_settings
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.functions import function_caller
from ci_evals.wiring.models import CheckedJudge, RunModels


@dataclass(frozen=True)
class RunParticipants:
    """The participants of a run, for each suite of its plan."""

    by_suite: tuple[Participants, ...]
    judges: tuple[CheckedJudge, ...]
    agents: RunAgents
    models: RunModels

    async def check_agents(self) -> None:
        """Learn whether agents' keys are good if a simulated user would be paid before they are asked.

        That costs nothing, and takes some seconds at most. Raise `AgentAccessError` if a key is refused.
        """
        paid_first = [suite.agent for suite in self.by_suite if suite.user_llm]
        checks = (agent.check() for agent in paid_first if isinstance(agent, KeyCheckingAgent))
        for error in await asyncio.gather(*checks, return_exceptions=True):
            if error:
                raise error

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """The current waits for each server."""
        yield from self.agents.waits()
        yield from self.models.waits()

    def limiters(self) -> list[RateLimiter]:
        """The rate limiters of all services: in every process that builds the same plan the same ones."""
        return [*self.agents.limiters(), *self.models.limiters()]

    def notes(self) -> tuple[str, ...]:
        """Limits that servers have set to the rate until now, and what is known of the cache."""
        worlds = (note for suite in self.by_suite if suite.world for note in suite.world.notes())
        return (*self.agents.notes(), *self.models.notes(), *worlds)


@asynccontextmanager
async def build_participants(
    plan: Plan, connections: Connections, redactor: Redactor
) -> AsyncIterator[RunParticipants]:
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
            agent = agents.agent(planned.suite, planned.agent_headers)
            participants = Participants(
                agent,
                world=world_steps(planned, connections.environ, redactor, agents.base_url(planned.suite)),
                user_llm=models.llm(user) if user else None,
                audit_llm=models.llm(names.auditor) if user and names.auditor else None,
                judge_panel=tuple(map(models.judge, judges)),
                judge_votes=names.votes if judges else 1,
                embedder=embedder,
                call_function=function_caller(connections.environ, redactor),
            )
            by_suite.append(participants)
        await agents.start()
        yield RunParticipants(tuple(by_suite), tuple(map(models.checked_judge, all_judges)), agents, models)


def world_steps(
    planned: PlannedSuite, environ: Mapping[str, str], redactor: Redactor, base_url: str
) -> WorldSteps | None:
    """The object that does the steps of a suite's worlds; None if they have none."""
    if not planned.has_worlds:
        return None
    from ci_evals.adapters.world import steps  # noqa: PLC0415  # for the few suites that have any

    return steps.WorldSteps(environ, redactor, base_url)


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
