"""A program as a child: its environment, lines in, lines out, and an end that leaves nothing of it behind."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self, cast

from ci_evals.adapters.transport.descendants import MARK, kill_marked, new_mark
from ci_evals.support.redaction import Redactor
from ci_evals.threads import in_thread

GRACE_SECONDS = 2.0
"""How long a program may go on when its standard input has ended, before it is told to end."""
LAST_GRACE_SECONDS = 1.0
"""How long it may go on then."""
MAX_COMPLAINT = 64_000
"""Bytes of a program's standard error that are kept, from its end."""
_TORN = 16_000
"""Characters at the beginning of what was kept that are not told, if more was there: half a secret has lost
its other half, and nobody would know it. No secret is as long, however it is written."""

_OURS = ("INPUT_", "CI_EVALS_", "ACTIONS_RUNTIME_")
_FILE_COMMANDS = frozenset(
    {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE"}
)
"""Files that the runner obeys: who knows them can say that a step has passed."""
_HELD_BACK = ("ACTIONS_ID_TOKEN_",)
_HELD_BACK_NAMES = frozenset({"GITHUB_TOKEN", "LLM_API_KEY"})

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the one
_LINE_BYTES = 64
"""Of memory, for a line beside its own."""
_SETTLING_SECONDS = 0.5
"""How long what a program wrote last may take to arrive when it has ended."""


def handed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what is meant for us alone, keys that others may use too among it."""
    return {
        name: value
        for name, value in for_code(environ).items()
        if not name.startswith(_HELD_BACK) and name not in _HELD_BACK_NAMES
    }


def for_code(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what nobody else can use: our own options, and the runner's doors."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OURS) and name not in _FILE_COMMANDS
    }


class Process(asyncio.SubprocessProtocol):
    """One process and its group. Made by `started`."""

    def __init__(self, most: int, kept: int, mark: str) -> None:
        self._most = most
        self._kept = kept
        self._mark = mark
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._unread = 0
        """Bytes that the lines take."""
        self._silent = False
        self._news = asyncio.Event()
        self._exited = asyncio.Event()
        self._done = asyncio.Event()
        self._ended = False
        self._transport: asyncio.SubprocessTransport
        self._complaint = b""
        self._complains_at_length = False
        self.too_long = False
        """Whether it wrote more than it may; it was killed then."""

    @classmethod
    async def started(
        cls,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        most: int,
        folder: str | None = None,
        *,
        kept: int = MAX_COMPLAINT,
    ) -> Self:
        """Starts a program, in `folder` or here; no more than `most` bytes of what it says may lie unread.

        Of its standard error `kept` bytes are kept, from the end.

        Raises:
            OSError: it cannot be started.
            ValueError: an argument cannot be passed to a program.
        """
        loop = asyncio.get_running_loop()
        mark = new_mark()
        _, process = await loop.subprocess_exec(
            lambda: cls(most, kept, mark),
            *arguments,
            env={**environ, MARK: mark},
            cwd=folder,
            start_new_session=True,
        )
        return process

    def write(self, line: bytes) -> None:
        """Sends a line, which is lost where the program has ended."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe and not pipe.is_closing():
            pipe.write(line)

    def end_input(self) -> None:
        """Ends its standard input, once all that was written is sent."""
        if pipe := self._transport.get_pipe_transport(0):
            pipe.close()

    def unread(self) -> bytes | None:
        """A line that has come already, if there is one; it stays."""
        return self._lines[0] if self._lines else None

    async def line(self) -> bytes | None:
        """The next line that is not blank; None where none will come."""
        while not self._lines and not self._silent:
            self._news.clear()
            await self._news.wait()
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._unread -= len(line) + _LINE_BYTES
        return line

    def complaint(self, redactor: Redactor) -> str:
        """The end of what it wrote to its standard error, on one line and without secrets."""
        said = redactor.text(self._complaint[-2 * MAX_COMPLAINT :].decode(errors="replace"))
        torn = self._complains_at_length or len(self._complaint) > 2 * MAX_COMPLAINT
        return " ".join((said[_TORN:] if torn else said).split())

    def complained(self) -> bytes:
        """The end of what it wrote to its standard error, as it is."""
        return self._complaint

    async def code(self) -> int | None:
        """The exit code of a process that is silent, negative for a signal; None where it still runs."""
        await _soon(self._done, _SETTLING_SECONDS)
        return self._transport.get_returncode()

    def kill(self, number: int = _KILL) -> None:
        """Sends a signal to the process and all of its group."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), number)
            else:
                self._transport.kill()

    async def end(self) -> bytes | None:
        """End it: its input first, then gently, then not. All that it started goes with it; never raises.

        Returns:
            The first line that nobody has read; what it writes after its input has ended counts too.
        """
        if self._ended:
            return None
        self._ended = True
        try:
            self.end_input()
            await _soon(self._exited, GRACE_SECONDS)
            if not self._exited.is_set():
                self.kill(signal.SIGTERM)
                await _soon(self._exited, LAST_GRACE_SECONDS)
        finally:
            self.kill()  # also where it has ended: what it started may still be there
            await in_thread(kill_marked, self._mark)
            if self._exited.is_set():  # what it wrote last is still read
                await _soon(self._done, _SETTLING_SECONDS)
            self._transport.close()
            await _soon(self._done, LAST_GRACE_SECONDS)
        unread = self.unread()
        self._silent = True
        self._lines.clear()
        return unread

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has been started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It wrote something."""
        if fd == 2:
            self._complaint += data
            if len(self._complaint) > 2 * self._kept:
                self._complaint, self._complains_at_length = self._complaint[-self._kept :], True
        elif not self._silent:
            self._read(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It closed a pipe, or somebody did."""
        del exc
        if fd == 1:
            self._fall_silent()

    def process_exited(self) -> None:
        """It has ended; what it wrote before may still be on its way."""
        self._exited.set()
        self._loop.call_later(_SETTLING_SECONDS, self._fall_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, and all of its pipes with it."""
        del exc
        self._done.set()
        self._fall_silent()

    def _read(self, data: bytes) -> None:
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            said = [bytes(line) for line in lines if line.strip()]
            self._lines.extend(said)
            self._unread += sum(map(len, said)) + _LINE_BYTES * len(said)
            self._news.set()
        if len(self._rest) + self._unread > self._most:
            self.too_long = True
            self._lines.clear()
            self._fall_silent()
            self.kill()

    def _fall_silent(self) -> None:
        if self._rest.strip() and not self.too_long:
            self._lines.append(bytes(self._rest))  # a last line needs no end
        self._rest.clear()
        self._silent = True
        self._news.set()


async def _soon(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
