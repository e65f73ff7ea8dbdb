"""The agent that a suite names, whichever adapter speaks to it."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ci_evals.adapters.code import plugins
from ci_evals.adapters.code.agent_settings import AgentSettings
from ci_evals.adapters.endpoints import chat_wire
from ci_evals.adapters.endpoints.aui_agent import AuiAgent, AuiConfig
from ci_evals.adapters.endpoints.aui_wire import DEFAULT_BASE_URL
from ci_evals.adapters.endpoints.chat_agent import ChatAgent, ChatConfig
from ci_evals.adapters.transport.connections import host_of
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting
from ci_evals.domain.agents import BUILT_IN, ChatOptions, HttpOptions
from ci_evals.domain.choices import AgentIdLocation
from ci_evals.domain.suite import Suite
from ci_evals.ports import Agent
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

if TYPE_CHECKING:
    from ci_evals.adapters.code.hosting.host import Host
    from ci_evals.adapters.endpoints.http_agent import HttpAgent
    from ci_evals.demo_agent.server import DemoServer


class RunAgents:
    """The agents of a run, with the servers, processes and rate limiters that they share."""

    def __init__(self, connections: Connections, redactor: Redactor, stack: AsyncExitStack) -> None:
        """Build nothing yet; what is built is closed with the stack."""
        self._connections, self._redactor, self._stack = connections, redactor, stack
        self._limiters: dict[tuple[str, str], RateLimiter] = {}
        self._server: DemoServer | None = None
        self._host: Host | None = None

    def agent(self, suite: Suite) -> Agent:
        """The agent of a suite; those in Python are loaded by `start`.

        Raises:
            UsageError: an address, a module, a program or a plug-in cannot be used.
        """
        name = suite.adapter
        plugins.check_built_in(name)
        if name not in BUILT_IN:
            from ci_evals.wiring import code  # noqa: PLC0415  # most suites speak to a server

            host = None if self._connections.agent_in_process else self._python_host
            settings = agent_settings(suite, self._redactor, debug=self._connections.debug)
            return code.agent(name, settings, self._redactor, host, self._connections.environ)
        match name:
            case "demo":
                return self._demo(suite)
            case "aui":
                return self._aui(suite)
            case "openai":
                return self._chat(suite)
            case "http":
                return self._http(suite)
            case _:
                raise AssertionError(f"no way to build the built-in adapter {name}")

    async def start(self) -> None:
        """Start the process for agents in Python and load them, if there are any.

        Raises:
            UsageError: one cannot be loaded.
        """
        if self._host:
            await self._host.start()

    def limiter(self, url: str, key: str) -> RateLimiter:
        """One rate limiter for each server and key, whichever suites name them."""
        return self._limiters.setdefault((host_of(url), key.strip()), RateLimiter())

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """The current waits for each agent's server."""
        for (host, _), limiter in self._limiters.items():
            yield f"the agent at {host}", limiter.waiting()

    def notes(self) -> tuple[str, ...]:
        """Limits that agents have set to the rate until now."""
        notes = (limiter.note(f"the agent at {host}") for (host, _), limiter in self._limiters.items())
        return tuple(note for note in notes if note)

    def _aui(self, suite: Suite) -> AuiAgent:
        connections = self._connections
        config = AuiConfig(
            agent_id=self._redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
            key=suite.api_key.get_secret_value() if suite.api_key else "",
            base_url=suite.base_url or DEFAULT_BASE_URL,
            key_header=connections.key_header,
            headers=connections.headers,
            agent_id_in=AgentIdLocation(connections.agent_id_in),
            task_origin_type=connections.task_origin_type,
            debug=connections.debug,
        )
        return AuiAgent(config, redactor=self._redactor, limiter=self.limiter(config.base_url, config.key))

    def _chat(self, suite: Suite) -> ChatAgent:
        settings = agent_settings(suite, self._redactor)
        config = ChatConfig(
            model=settings.model or settings.agent_id or "",
            key=settings.api_key or "",
            base_url=settings.base_url or chat_wire.DEFAULT_BASE_URL,
            options=ChatOptions.model_validate(settings.options),
            headers=self._connections.headers,
            debug=self._connections.debug,
        )
        return ChatAgent(config, redactor=self._redactor, limiter=self.limiter(config.base_url, config.key))

    def _http(self, suite: Suite) -> "HttpAgent":
        from ci_evals.adapters.endpoints.http_agent import HttpAgent, HttpConfig  # noqa: PLC0415  # 0.1 s, for the JSONPaths

        settings = agent_settings(suite, self._redactor)
        config = HttpConfig(
            base_url=settings.base_url or "",
            options=HttpOptions.model_validate(settings.options),
            key=settings.api_key or "",
            agent_id=settings.agent_id,
            model=settings.model,
            headers=self._connections.headers,
            debug=self._connections.debug,
        )
        return HttpAgent(config, redactor=self._redactor, limiter=self.limiter(config.base_url, config.key))

    def _demo(self, suite: Suite) -> AuiAgent:
        from ci_evals.demo_agent.server import DemoServer  # noqa: PLC0415  # 0.1 s, for suites that name it

        if self._server is None:
            self._server = self._stack.enter_context(DemoServer())
        url, debug = self._server.base_url, self._connections.debug
        return AuiAgent(AuiConfig(agent_id=suite.agent_id, key="demo-key", base_url=url, debug=debug))

    def _python_host(self) -> "Host":
        from ci_evals.adapters.code.hosting.host import Host  # noqa: PLC0415  # as above
        from ci_evals.wiring import code  # noqa: PLC0415  # as above

        if self._host is None:
            self._host = Host(self._connections.environ, self._redactor)
            if self._connections.agent_log:
                self._stack.callback(code.write_log, self._host, self._connections.agent_log)
            self._stack.push_async_callback(self._host.end)
        return self._host


def agent_settings(suite: Suite, redactor: Redactor, *, debug: bool = False) -> AgentSettings:
    """A suite's settings of its agent, for one that is code."""
    return AgentSettings(
        agent_id=redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
        api_key=(suite.api_key.get_secret_value().strip() or None) if suite.api_key else None,
        base_url=suite.base_url,
        model=suite.model,
        options=suite.adapter_options or {},
        debug=debug,
    )
