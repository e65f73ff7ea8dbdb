"""The agent that a suite names, whichever adapter speaks to it."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ci_evals.adapters import files
from ci_evals.adapters.hand_over import tools_in
from ci_evals.adapters.transport.addresses import host_of
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting
from ci_evals.agent_registry import AGENT_KINDS, AgentKind, EmbeddedServer, kind_of_code
from ci_evals.agents import plugins
from ci_evals.agents.settings import AgentSettings, CodeEnvironment
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import PlannedSuite
from ci_evals.domain.suite import Suite
from ci_evals.extension_registry import span_receiver
from ci_evals.planning.agent_choice import awaited_address
from ci_evals.ports import Agent, SpanReceiver
from ci_evals.reports import sanitize
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

if TYPE_CHECKING:
    from ci_evals.agents.python.hosting.host import Host
    from ci_evals.agents.started.program import AgentProgram


class RunAgents:
    """The agents of a run, with the servers, processes and rate limiters that they share."""

    def __init__(self, connections: Connections, redactor: Redactor, stack: AsyncExitStack) -> None:
        """Build nothing yet; what is built is closed with the stack."""
        self._connections, self._redactor, self._stack = connections, redactor, stack
        self._limiters: dict[tuple[str, str], RateLimiter] = {}
        self._code: dict[str, RateLimiter] = {}
        """Of agents that are code, by the adapter's name."""
        self._embedded: dict[str, EmbeddedServer] = {}
        """Servers that the run starts itself, by the adapter's name."""
        self._host: Host | None = None
        self.receiver: SpanReceiver | None = None
        """The receiver of spans, if any agent has them received."""
        self.environ = connections.environ
        """The environment of agents that the run starts."""
        self._programs: dict[tuple[str | None, str | None], AgentProgram] = {}
        """By the command that starts them, and its folder."""
        self._printed_elsewhere: dict[str, str] = {}
        if connections.agent_log:
            stack.callback(self._write_log, connections.agent_log)

    def agent(self, planned: PlannedSuite) -> Agent:
        """The agent of a suite; those in Python are loaded by `start`. Raise `UsageError` if unusable."""
        suite, headers = planned.suite, planned.agent_headers
        agent = self._untraced(suite, self._connections.headers if headers is None else headers)
        if (program := self._plan_start(suite, planned.start_folder)) is not None:
            from ci_evals.agents.started.agent import StartedAgent  # noqa: PLC0415  # few suites need it

            agent = StartedAgent(agent, program)
        if self.receiver is None or not (self._connections.otlp or suite.trace == "otlp"):
            return agent
        whose = (suite.adapter, suite.base_url, suite.agent_id)
        return self.receiver.traced(agent, whose, tools_in(suite.adapter_options))

    def receive_spans(self) -> None:
        """Take the port for spans, before any agent is made; raise `UsageError` if it cannot be had."""
        connections = self._connections
        self.receiver = span_receiver(connections.otlp_host, connections.otlp_port)
        self._stack.push_async_callback(self.receiver.end)
        self.environ = self.receiver.environment(connections.environ)
        if connections.agent_in_process:
            self._stack.enter_context(_set_environment(self.environ))

    def _untraced(self, suite: Suite, headers: Mapping[str, str]) -> Agent:
        name, connections, redactor = suite.adapter, self._connections, self._redactor
        settings = agent_settings(suite, redactor, debug=connections.debug)
        plugins.check_built_in(name)
        kind = AGENT_KINDS.get(name)
        if kind is None:
            return self._code_agent(name, settings)
        if kind.embedded:
            return self._embedded_agent(name, kind, settings)
        url = settings.base_url or kind.address
        limiter = self.limiter(url, settings.api_key or "")
        settings = replace(settings, base_url=url, headers=headers)
        return kind.agent_class(settings.options)(settings, redactor=redactor, limiter=limiter)

    def _code_agent(self, name: str, settings: AgentSettings) -> Agent:
        from ci_evals.agents.code.awaited_agent import AwaitedAgent  # noqa: PLC0415  # most suites speak to a server

        host = None if self._connections.agent_in_process else self._python_host
        where = CodeEnvironment(self.environ, host)
        agent = kind_of_code(name).build(name, settings, self._redactor, where)
        limiter = self._code.setdefault(self._redactor.text(name), RateLimiter())
        return AwaitedAgent(agent, limiter)

    def _embedded_agent(self, name: str, kind: AgentKind, settings: AgentSettings) -> Agent:
        """Serve agents of a kind, once for all suites, and return one."""
        if name not in self._embedded:
            self._embedded[name] = self._stack.enter_context(kind.embedded_server())
        server = self._embedded[name]
        settings = replace(settings, api_key=server.key, base_url=server.base_url)
        return kind.agent_class(settings.options)(settings)

    def _plan_start(self, suite: Suite, folder: str | None) -> "AgentProgram | None":
        """Plan to start the program that serves a suite's agent, or to wait for it; None if it has none."""
        address = awaited_address(suite)
        if address is None or not (suite.start or suite.wait_for):
            return None
        from ci_evals.agents.started.program import AgentProgram  # noqa: PLC0415  # as above

        key = (suite.start, folder if suite.start else None)
        program = self._programs.get(key)
        if program is None:
            log = self._connections.agent_log
            program = AgentProgram(suite.start, self._redactor, log, folder=folder)
            self._programs[key] = program
        own = agent_settings(suite, self._redactor)
        program.serve(address, own.api_key, talks_at=own.base_url, timeout=suite.start_timeout)
        return program

    async def start_programs(self) -> None:
        """Start the programs that serve agents, and wait until they answer.

        Raise `AgentError` if one cannot be started or does not answer in time, or something else answers.
        """
        for program in self._programs.values():
            await program.check_free()
        for program in self._programs.values():
            self._stack.push_async_callback(program.end)
            await program.start(self.environ)
        for program in self._programs.values():
            await program.wait_until_up()

    async def ended_program(self) -> str:
        """Return how a program that serves an agent has ended, once one has; never if none does."""
        when = "in the middle of the run"
        watched = [asyncio.create_task(program.ended(when)) for program in self._programs.values()]
        try:
            if not watched:
                await asyncio.Event().wait()
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in watched:
                task.cancel()

    def base_url(self, suite: Suite) -> str:
        """The address of a suite's agent; empty for one that is code."""
        kind = AGENT_KINDS.get(suite.adapter)
        if kind and kind.embedded:
            server = self._embedded.get(suite.adapter)
            return server.base_url if server else ""
        return suite.base_url or (kind.address if kind else "")

    async def start(self) -> None:
        """Load agents in Python, if there are any, in a process; raise `UsageError` if one fails."""
        if self.receiver:
            await self.receiver.start()
        if self._host:
            await self._host.start()

    def limiter(self, url: str, key: str) -> RateLimiter:
        """One rate limiter for each server and key, whichever suites name them."""
        return self._limiters.setdefault((host_of(url), key.strip()), RateLimiter())

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """The current waits for each agent."""
        for (host, _), limiter in self._limiters.items():
            yield f"the agent at {host}", limiter.waiting()
        for name, limiter in self._code.items():
            yield f"the agent {name}", limiter.waiting()
        for program in self._programs.values():
            yield program.name, program.waiting

    def limiters(self) -> list[RateLimiter]:
        """The limiters of the agents, in the order in which they were built."""
        return [*self._limiters.values(), *self._code.values()]

    def log(self, who: str, printed: str) -> None:
        """Add to the log what an agent has printed elsewhere."""
        self._printed_elsewhere[who] = printed

    def notes(self) -> tuple[str, ...]:
        """Limits that agents have set to the rate until now."""
        notes = (limiter.note(f"the agent at {host}") for (host, _), limiter in self._limiters.items())
        strays = self.receiver.notes(self._redactor) if self.receiver else ()
        return (*(note for note in notes if note), *strays)

    def _python_host(self) -> "Host":
        from ci_evals.agents.python.hosting.host import Host  # noqa: PLC0415  # as above

        if self._host is None:
            self._host = Host(self.environ, self._redactor)
            self._stack.push_async_callback(self._host.end)
        return self._host

    def _write_log(self, path: Path) -> None:
        """Write what the programs of agents have printed, if there are any."""
        if not (self._host or self._programs):
            return
        printed = {program.name: program.printed() for program in self._programs.values()}
        if self._host:
            printed["agents in Python"] = self._redactor.text(self._host.printed())
        printed |= self._printed_elsewhere
        _write_printed(printed, path)


def _write_printed(printed: Mapping[str, str], path: Path) -> None:
    """Write what agents have printed, if they have, by their names: without workflow commands."""
    texts = {name: text for name, text in printed.items() if text.strip()}
    parts = []
    for name, text in texts.items():
        title = f"==> {name} <==\n" if len(texts) > 1 else ""
        parts.append(sanitize.log(title + text))
    with suppress(UsageError, OSError):  # the reports tell of a disk that is full
        if parts:
            files.write(path, "\n".join(parts) + "\n")
        else:
            path.unlink(missing_ok=True)  # an earlier run's


@contextmanager
def _set_environment(environ: Mapping[str, str]) -> Iterator[None]:
    """Set variables of OpenTelemetry for agents that run in this process."""
    before = dict(os.environ)
    os.environ.update({name: value for name, value in environ.items() if name.startswith("OTEL_")})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def agent_settings(suite: Suite, redactor: Redactor, *, debug: bool = False) -> AgentSettings:
    """The settings of a suite's agent, without headers."""
    return AgentSettings(
        agent_id=redactor.only_keys.text(suite.agent_id) if suite.agent_id else None,
        api_key=(suite.api_key.get_secret_value().strip() or None) if suite.api_key else None,
        base_url=suite.base_url,
        model=suite.model,
        options=suite.adapter_options or {},
        debug=debug,
    )
