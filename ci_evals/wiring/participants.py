"""Who plays in each suite of a plan, built when the plan is played and closed afterwards."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ci_evals.adapters.endpoints.chat_agent import ChatAgent
from ci_evals.adapters.models.claude_code_llm import ClaudeCodeLLM
from ci_evals.adapters.models.local_embedder import LocalEmbedder
from ci_evals.adapters.models.openai_embedder import OpenAIEmbedder
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.plan import Plan
from ci_evals.planning.workload import of_plan, of_suite
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import agents, models
from ci_evals.wiring.cache import Cache
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.llms import LLMs
from ci_evals.wiring.rate_limiters import RateLimiters

if TYPE_CHECKING:
    from ci_evals.adapters.code.hosting.host import Host
    from ci_evals.demo_agent.server import DemoServer


@dataclass(frozen=True)
class RunParticipants:
    """Who plays in a run."""

    by_suite: tuple[Participants, ...]
    """One for each suite of the plan."""
    judges: tuple[SdkLLM | ClaudeCodeLLM, ...]
    """The models that judge, without the cache before them."""
    llms: Mapping[str, SdkLLM | ClaudeCodeLLM]
    """By their models' names, whatever their part is."""
    embedder: OpenAIEmbedder | LocalEmbedder | None
    limiters: RateLimiters
    cache: Cache

    async def check_agents(self) -> None:
        """Learns whether agents' keys are good, where a simulated user would be paid before they are asked.

        That costs nothing, and takes some seconds at most.

        Raises:
            AgentAccessError: a key is refused, or has no credit left.
        """
        agents = [
            participants.agent
            for participants in self.by_suite
            if participants.user_llm and isinstance(participants.agent, ChatAgent)
        ]
        for found in await asyncio.gather(*(agent.check() for agent in agents), return_exceptions=True):
            if found:
                raise found

    async def check_models(self) -> None:
        """Learns whether the models' key is good. That costs nothing, and takes some seconds at most.

        All models of a run are one provider's and have one key, so one of them is asked. Its SDK is imported
        for that, if it was not before.

        Raises:
            LLMAccessError: it is refused, or has no quota left.
        """
        models = (one for one in (*self.llms.values(), self.embedder) if isinstance(one, _CHECKED))
        if one := next(models, None):
            await one.check()

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """How long each neighbour is waited for now."""
        yield from self.limiters.waits()
        for one in (*self.llms.values(), self.embedder):
            if isinstance(one, _NOTING):
                yield one.waits()

    def notes(self) -> tuple[str, ...]:
        """What a person should know of the limits that the neighbours set to the rate, until now."""
        models = [one for one in (*self.llms.values(), self.embedder) if isinstance(one, _NOTING)]
        told = (model.note() for model in models)
        return (*self.limiters.notes(), *(note for note in told if note), *self.cache.notes())


_CHECKED = SdkLLM | OpenAIEmbedder
_NOTING = SdkLLM | OpenAIEmbedder | ClaudeCodeLLM


class _PythonHost:
    """The process of a run's agents in Python, made when it is first asked for."""

    def __init__(self, adapter: Connections, redactor: Redactor, stack: AsyncExitStack) -> None:
        self._adapter, self._redactor, self._stack = adapter, redactor, stack
        self._host: Host | None = None

    def __call__(self) -> "Host":
        from ci_evals.wiring import code  # noqa: PLC0415  # most suites speak to a server

        if self._host is None:
            self._host = code.new_host(self._redactor)
            if self._adapter.agent_log:
                self._stack.callback(code.write_log, self._host, self._adapter.agent_log)
            self._stack.push_async_callback(self._host.end)
        return self._host

    async def start(self) -> None:
        """Start it and load its agents, if there are any.

        Raises:
            UsageError: one cannot be loaded.
        """
        if self._host:
            await self._host.start()


@asynccontextmanager
async def build_participants(
    plan: Plan, adapter: Connections, redactor: Redactor
) -> AsyncIterator[RunParticipants]:
    """Build the participants of each suite of the plan, and close them afterwards.

    Raises:
        UsageError: the plan needs an LLM and there is no key, or an agent cannot be built.
    """
    async with AsyncExitStack() as stack:
        servers: list[DemoServer] = []
        llms = LLMs(adapter, redactor, stack)
        limiters = RateLimiters()

        def demo() -> "DemoServer":
            from ci_evals.demo_agent.server import DemoServer  # noqa: PLC0415  # 0.1 s, for suites that name it

            if not servers:
                servers.append(stack.enter_context(DemoServer()))
            return servers[0]

        host = _PythonHost(adapter, redactor, stack)

        cache = Cache.of(adapter, redactor, "run")
        stack.callback(cache.close)
        embedder = _embedder(plan, adapter, redactor, stack)
        built, judging = [], dict[str, SdkLLM | ClaudeCodeLLM]()
        for planned in plan.suites:
            participants = Participants(
                agents.agent(planned.suite, adapter, redactor, demo, limiters, host=host), embedder=embedder
            )
            named, work = adapter.models(planned.suite), of_suite(plan, planned)
            if named and work.user_calls:
                participants = replace(participants, user_llm=llms[named.user])
                if auditor := adapter.auditor(planned.suite):
                    participants = replace(participants, audit_llm=llms[auditor])
            if named and work.judge_calls:
                judging |= {judge: llms[judge] for judge in named.judges}
                judges = tuple(cache.before(llms[judge]) for judge in named.judges)
                participants = replace(participants, judge_panel=judges, judge_votes=named.votes)
            built.append(participants)
        await host.start()
        yield RunParticipants(tuple(built), tuple(judging.values()), llms, embedder, limiters, cache)


def _embedder(
    plan: Plan, adapter: Connections, redactor: Redactor, stack: AsyncExitStack
) -> OpenAIEmbedder | LocalEmbedder | None:
    """The model that compares meanings, where the plan wants that and there is one."""
    if not adapter.embedder or not of_plan(plan).embedder_calls:
        return None
    built = models.embedder(
        adapter.provider,
        adapter.embedder,
        adapter.llm_key,
        redactor,
        token=adapter.llm_token,
        timeout=adapter.llm_timeout,
    )
    stack.push_async_callback(built.aclose)
    return built
