"""The participants of a run's suites: agent, simulated user and judges."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from ci_evals.adapters.endpoints.chat_agent import ChatAgent
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.plan import Plan
from ci_evals.domain.suite import Suite
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents, agent_settings
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import RunModels


@dataclass(frozen=True)
class RunParticipants:
    """The participants of a run, for each suite of its plan."""

    by_suite: tuple[Participants, ...]
    judges: tuple[str, ...]
    """The names of the models that judge."""
    agents: RunAgents
    models: RunModels

    async def check_agents(self) -> None:
        """Learn whether agents' keys are good if a simulated user would be paid before they are asked.

        That costs nothing, and takes some seconds at most.

        Raises:
            AgentAccessError: a key is refused, or has no credit left.
        """
        paid_first = [suite.agent for suite in self.by_suite if suite.user_llm]
        checks = (agent.check() for agent in paid_first if isinstance(agent, ChatAgent))
        for error in await asyncio.gather(*checks, return_exceptions=True):
            if error:
                raise error

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """The current waits for each server."""
        yield from self.agents.waits()
        yield from self.models.waits()

    def notes(self) -> tuple[str, ...]:
        """Limits that servers have set to the rate until now, and what is known of the cache."""
        return (*self.agents.notes(), *self.models.notes())


@asynccontextmanager
async def build_participants(
    plan: Plan, connections: Connections, redactor: Redactor
) -> AsyncIterator[RunParticipants]:
    """Build the participants of each suite of the plan, and close them afterwards.

    Raises:
        UsageError: the plan needs an LLM and there is no key, or an agent cannot be built.
    """
    async with AsyncExitStack() as stack:
        agents = RunAgents(connections, redactor, stack)
        models = RunModels(connections, redactor, stack, "run")
        compares = connections.embedder if of_plan(plan).embedder_calls else None
        embedder = models.embedder(compares) if compares else None
        by_suite, judges = [], dict[str, None]()
        for planned in plan.suites:
            participants = Participants(agents.agent(planned.suite), embedder=embedder)
            names, work = connections.models(planned.suite), of_suite(plan, planned)
            if names.user and work.user_calls:
                auditor = models.llm(names.auditor) if names.auditor else None
                participants = replace(participants, user_llm=models.llm(names.user), audit_llm=auditor)
            if names.judges and work.judge_calls:
                judges |= dict.fromkeys(names.judges)
                panel = tuple(map(models.judge, names.judges))
                participants = replace(participants, judge_panel=panel, judge_votes=names.votes)
            by_suite.append(participants)
        await agents.start()
        yield RunParticipants(tuple(by_suite), tuple(judges), agents, models)


def participants_for(
    target: Any, suite: Suite, redactor: Redactor | None = None, *, debug: bool = False
) -> Participants:
    """The participants that an object of a library's caller gives for a suite.

    An object with `open_session` and `send_message`, or a function `reply(message)`, is the agent alone: the
    user is scripted, and nothing is judged. One with the four methods of the adapters of `@aui.io/evals` is
    the agent, and the models behind judge and simulated user too if it has their methods. `Participants`
    stay as they are.

    Raises:
        UsageError: it is none of these, or cannot be called as it will be.
    """
    from ci_evals.adapters.code.four_methods import FourMethodAgent, MethodLLM  # noqa: PLC0415  # likewise
    from ci_evals.adapters.code.loading import agent_of  # noqa: PLC0415  # 0.2 s, for libraries alone

    if isinstance(target, Participants):
        return target
    redactor = redactor or Redactor()
    name = getattr(target, "__qualname__", type(target).__qualname__)
    agent = agent_of(target, name, agent_settings(suite, redactor, debug=debug), redactor)
    if not isinstance(agent, FourMethodAgent):
        return Participants(agent)

    def llm(method: str, model: str | None) -> MethodLLM | None:
        function = getattr(target, method, None)
        return MethodLLM(function, f"{name}.{method}", model, redactor=redactor) if function else None

    user_llm, judge_llm = llm("generate_user_message", suite.user_model), llm("call_judge", suite.judge_model)
    return Participants(agent, user_llm, judge_llm)
