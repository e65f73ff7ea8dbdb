"""The option `start`: the program that serves the agent, started for a run, waited for, and ended with it.

The option `wait_for` alone waits for an agent that somebody else starts.
"""

import asyncio
import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_agent
from ci_evals.adapters.transport.addresses import proxy_for
from ci_evals.adapters.transport.http_client import new_client
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.agents.command.agent import KEY_VARIABLE
from ci_evals.domain.errors import AgentError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

LOG_BYTES = 500_000
"""The part of a program's output that is kept, from the end."""
START_TIMEOUT = 60.0
"""Seconds that an agent may take until it answers, unless its suite says otherwise."""
_END_SECONDS = 3.0
"""Time from SIGTERM to SIGKILL."""
_DEATH_SECONDS = 2.0
"""Time for a program to end after a connection to it broke."""
_POLL_SECONDS = 0.02
_BETWEEN_SECONDS = 0.2
_TRY_SECONDS = 10.0
"""The longest that one request may wait for its answer: a server may be lost before it is ready."""
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_LOOK_SECONDS = 2.0
"""The same before the program is started, where hardly anything answers."""


class AgentProgram:
    """A program and the addresses at which it answers once it is up. Without a command it is not ours."""

    def __init__(
        self,
        command: str | None,
        redactor: Redactor,
        log: Path | None = None,
        *,
        folder: str | None = None,
    ) -> None:
        """Start nothing yet. `command` is run by a shell, in `folder` or the current one.

        Messages say that its output is in `log`, if that is given.
        """
        self._command, self._redactor, self._log, self._folder = command, redactor, log, folder
        self._process: _ServerProcess | None = None
        self._addresses: dict[str, None] = {}
        self._others: dict[str, None] = {}
        """Further addresses of the agent, at which nothing may answer before it is started."""
        self._key: str | None = None
        self._timeout = 0.0
        self._awaited: tuple[str, float] | None = None
        """The address that is waited for, and since when."""

    @property
    def name(self) -> str:
        """The agent, in messages."""
        if self._command is None:
            return "the agent"
        return f"the agent started by {payload.shorten(self._redactor.text(self._command))!r}"

    def serve(
        self, address: str, key: str | None, *, talks_at: str | None = None, timeout: float | None = None
    ) -> None:
        """Add a URL or port at which it has to answer, and the agent's key, of which it gets the first.

        `talks_at` is the address at which it is talked to, if that is another one: on this machine it has to
        be free as well. It has the longest `timeout` that is given, in seconds.
        """
        self._timeout = max(self._timeout, timeout or 0.0)
        self._addresses[address] = None
        if talks_at and urlsplit(talks_at).hostname in _THIS_MACHINE:
            self._others[talks_at] = None
        self._key = self._key or key

    async def check_free(self) -> None:
        """Check that nothing answers yet; raise `AgentError`, since another agent would be tested."""
        for address in self._addresses | self._others if self._command else ():
            if await _is_taken(address):
                raise AgentError(
                    f"{_shown(address)} is in use: something answers there before {self.name}. Stop it, give "
                    "the agent another port, or remove start to test what runs there"
                )

    async def start(self, environ: Mapping[str, str]) -> None:
        """Start the program, if there is one; raise `AgentError` if that fails.

        It gets `environ` without what is meant for us alone.
        """
        if self._command is None:
            return
        # Python buffers what it prints into a pipe, and its last words would be lost.
        own = {"PYTHONUNBUFFERED": "1"} | environment_for_agent(environ)
        own |= {KEY_VARIABLE: self._key} if self._key else {}
        try:
            self._process = await _ServerProcess.start(
                _in_shell(self._command), own, max_unread=0, folder=self._folder, max_stderr=LOG_BYTES
            )
        except (OSError, ValueError) as error:
            reason = self._redactor.text(str(error))
            raise AgentError(f"{self.name} could not be started{self._where()}: {reason}") from error

    async def wait_until_up(self) -> None:
        """Wait until all addresses answer; raise `AgentError` if the program ends or the time is over."""
        begun, seconds = time.monotonic(), self._timeout or START_TIMEOUT
        for address in self._addresses:
            self._awaited = address, time.monotonic()
            answer = asyncio.create_task(_answer(address))
            when = f"before anything answered at {_shown(address)}"
            ended = asyncio.create_task(self.ended(f"{when}{self._where()}"))
            try:
                left = begun + seconds - time.monotonic()
                await asyncio.wait({answer, ended}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                # What it left in the background may answer while its own end is still being looked into.
                if ended.done() or (self._process and self._process.exited):
                    raise AgentError(await ended)
                if not answer.done():
                    raise AgentError(await self._late(address, seconds))
                answer.result()  # raises if nobody could be asked
            finally:
                self._awaited = None
                for task in (answer, ended):
                    task.cancel()
                await asyncio.gather(answer, ended, return_exceptions=True)

    @property
    def waiting(self) -> Waiting | None:
        """The current wait for it, if there is one."""
        if self._awaited is None:
            return None
        address, since = self._awaited
        reason = f"nothing answers at {_shown(address)} yet{self._elsewhere(address)}"
        return Waiting(time.monotonic() - since, reason)

    async def ended(self, when: str) -> str:
        """Return how the program has ended, once it has; never without a program."""
        if self._process is None:
            await asyncio.Event().wait()
            return ""
        await self._process.wait()
        code = await self._process.code()
        how = f"was ended by signal {-code}" if code and code < 0 else f"ended with exit code {code or 0}"
        hint = "" if code else "; it has to keep running in the foreground until the run ends"
        return f"{self.name} {how} {when}{hint}{self._last_words()}"

    async def lost(self) -> str:
        """Return how the program has ended, or its last words if it still runs; empty if it is not ours.

        A connection breaks a moment before the program that dies has ended.
        """
        if self._process is None:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DEATH_SECONDS):
                return await self.ended("in the middle of the run")
        words = self._last_words()
        return f"{self.name} still runs{words}" if words else ""

    def printed(self) -> str:
        """Return its output without secrets, only the end if it is long."""
        return self._process.printed(self._redactor, LOG_BYTES) if self._process else ""

    async def end(self) -> None:
        """End it and all that it has started. Never raises.

        Its whole group gets some time: a shell ends at once, the server that it runs has work to finish.
        """
        if self._process is None:
            return
        try:
            self._process.kill(signal.SIGTERM)
            deadline = time.monotonic() + _END_SECONDS
            while self._process.group_runs() and time.monotonic() < deadline:  # noqa: ASYNC110  # no event
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._process.kill()
            await self._process.end()

    async def _late(self, address: str, seconds: float) -> str:
        why = await _failure(address, _LOOK_SECONDS) or "it answers only now"
        why += self._elsewhere(address)
        return (
            f"{self.name} did not answer at {_shown(address)} within {seconds:g} s ({why}). Correct "
            f"baseUrl, name another address with wait-for, or raise startTimeout{self._last_words()}"
        )

    def _elsewhere(self, address: str) -> str:
        """Return that the program listens on other ports than that of an address, if it does."""
        ports = self._process.listening_ports() if self._process else ()
        if not ports or _port_of(address) in ports:
            return ""
        return f"; the program listens on {', '.join(map(str, ports))}"

    def _where(self) -> str:
        """Return the folder that the command ran in, unless that is the current one."""
        if self._folder is None:
            return ""
        folder = _from_here(self._folder)
        return "" if folder == "." else f", in the folder {self._redactor.text(folder)!r}"

    def _last_words(self) -> str:
        words = self._process.last_words(self._redactor) if self._process else ""
        output = f"its output, in {self._log.name}," if self._log else "its output"
        return f" ({output} ends: {words})" if words else ""


class _ServerProcess(ChildProcess):
    """A process whose output is one log."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The process wrote something."""
        del fd
        super().pipe_data_received(2, data)


def _in_shell(command: str) -> list[str]:
    if os.name == "nt":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/c", command]
    return ["/bin/sh", "-c", command]


def _from_here(folder: str) -> str:
    """Return a folder's path from the current one."""
    try:
        return os.path.relpath(folder)
    except ValueError:  # on another drive
        return folder


def _shown(address: str) -> str:
    """Return an address for messages: its query may hold a secret."""
    return f"port {address}" if address.isdecimal() else re.split("[?#]", address, maxsplit=1)[0]


def _port_of(address: str) -> int:
    """Return the port of a URL, or the port that is given instead; raise `ValueError` if it is none."""
    if address.isdecimal():
        return int(address)
    url = urlsplit(address)
    return url.port or (443 if url.scheme == "https" else 80)


async def _answer(address: str) -> None:
    """Wait until something answers."""
    while await _failure(address, _TRY_SECONDS) is not None:  # noqa: ASYNC110  # of another program
        await asyncio.sleep(_BETWEEN_SECONDS)


async def _is_taken(address: str) -> bool:
    """Return whether something listens; of another machine, whether it answers."""
    url = urlsplit(address)
    if address.isdecimal() or url.hostname not in _THIS_MACHINE:
        return await _failure(address, _LOOK_SECONDS) is None
    # A server that is slow to answer has its port all the same.
    with suppress(OSError, ValueError):  # TimeoutError is an OSError; ValueError: a port that is none
        async with asyncio.timeout(_LOOK_SECONDS):
            _, writer = await asyncio.open_connection(url.hostname, _port_of(address))
        writer.close()
        return True
    return False


async def _failure(address: str, seconds: float) -> str | None:
    """Return why nothing answers; None if something does: any answer to a request, a connection to a port."""
    try:
        if address.isdecimal():
            async with asyncio.timeout(seconds):
                _, writer = await asyncio.open_connection("localhost", int(address))
            writer.close()
            return None
        client = new_client(proxy=proxy_for(address), timeout=seconds)
        async with client, client.stream("GET", address):
            return None
    except TimeoutError:
        return f"no answer for {seconds:g} s"
    except (OSError, ValueError, httpx2.HTTPError) as error:  # ValueError: a host that cannot be one
        return payload.shorten(str(error)) or type(error).__name__
