"""Child processes: input and output by lines, and termination with all descendants."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self, cast

from ci_evals.adapters.processes.descendants import MARK, kill_marked, new_mark
from ci_evals.adapters.processes.listening import listening_ports
from ci_evals.support.payload import MAX_EXCERPT
from ci_evals.support.redaction import Redactor
from ci_evals.threads import in_thread

GRACE_SECONDS = 2.0
"""Time from the end of a program's standard input to SIGTERM."""
LAST_GRACE_SECONDS = 1.0
MAX_STDERR = 64_000
_HIDDEN_START = 16_000
"""Characters that are not shown of a cut standard error, since half a secret would not be recognized. No
secret is as long."""

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has only the one
_LINE_BYTES = 64
"""Memory of a line besides its text."""
_SETTLING_SECONDS = 0.5
"""Time for the last output of a program to arrive after its end."""


class ChildProcess(asyncio.SubprocessProtocol):
    """A process and its group. Created by `start`."""

    def __init__(self, max_unread: int, max_stderr: int, mark: str) -> None:
        self._max_unread = max_unread
        self._max_stderr = max_stderr
        self._mark = mark
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._unread = 0
        self._silent = False
        self._changed = asyncio.Event()
        self._exited = asyncio.Event()
        self._done = asyncio.Event()
        self._ended = False
        self._transport: asyncio.SubprocessTransport
        self.stderr = b""
        """The end of its standard error."""
        self._stderr_is_cut = False
        self.too_long = False
        """True if it was killed for too much unread output."""

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        max_unread: int,
        folder: str | None = None,
        *,
        max_stderr: int = MAX_STDERR,
    ) -> Self:
        """Start a program, in `folder` or the current one; raise `OSError` or `ValueError` if that fails.

        It is killed if it writes more than `max_unread` bytes that nobody reads. The last `max_stderr` bytes
        of its standard error are kept.
        """
        loop = asyncio.get_running_loop()
        mark = new_mark()
        _, process = await loop.subprocess_exec(
            lambda: cls(max_unread, max_stderr, mark),
            *arguments,
            env={**environ, MARK: mark},
            cwd=folder,
            start_new_session=True,
        )
        return process

    def write(self, line: bytes) -> None:
        """Send a line, which is lost if the program has ended."""
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
        if pipe and not pipe.is_closing():
            pipe.write(line)

    def end_input(self) -> None:
        """End its standard input after all that was written."""
        if pipe := self._transport.get_pipe_transport(0):
            pipe.close()

    def unread(self) -> bytes | None:
        """Return the next line if it has come already, without consuming it."""
        return self._lines[0] if self._lines else None

    async def line(self) -> bytes | None:
        """Return the next line that is not blank; None at the end."""
        while not self._lines and not self._silent:
            self._changed.clear()
            await self._changed.wait()
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._unread -= len(line) + _LINE_BYTES
        return line

    def printed(self, redactor: Redactor, size: int) -> str:
        """Return the last `size` bytes of its standard error, without secrets."""
        text = redactor.text(self.stderr[-size:].decode(errors="replace"))
        is_cut = self._stderr_is_cut or len(self.stderr) > size
        return text[_HIDDEN_START:] if is_cut else text

    def last_words(self, redactor: Redactor) -> str:
        """Return the end of its standard error on one short line, without secrets."""
        line = " ".join(self.printed(redactor, 2 * MAX_STDERR).split())
        return line if len(line) <= MAX_EXCERPT else f"…{line[-MAX_EXCERPT:]}"

    @property
    def exited(self) -> bool:
        """True if it has exited; what it has started may still run."""
        return self._exited.is_set()

    async def wait(self) -> None:
        """Wait until it has exited."""
        await self._exited.wait()

    async def code(self) -> int | None:
        """Return the exit code after the output has ended, negative for a signal; None if it still runs."""
        await _soon(self._done, _SETTLING_SECONDS)
        return self._transport.get_returncode()

    def listening_ports(self) -> tuple[int, ...]:
        """Return the TCP ports on which it and its descendants listen, as far as the system shows them."""
        return listening_ports(self._mark)

    def kill(self, number: int = _KILL) -> None:
        """Send a signal to the process and its group."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), number)
            else:
                self._transport.kill()

    def group_runs(self) -> bool:
        """Return whether a process of its group is left."""
        if not hasattr(os, "killpg"):
            return not self._exited.is_set()
        try:
            os.killpg(self._transport.get_pid(), 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # of another user
            return True
        return True

    async def end(self) -> bytes | None:
        """End it and all its descendants: end of input, then SIGTERM, then SIGKILL. Never raises.

        Return the first unread line, including what it wrote after its input had ended.
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
            self.kill()  # also if it has ended: its children may still be there
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
        """The process has started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The process wrote something."""
        if fd == 2:
            self.stderr += data
            if len(self.stderr) > 2 * self._max_stderr:
                self.stderr, self._stderr_is_cut = self.stderr[-self._max_stderr :], True
        elif not self._silent:
            self._read(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A pipe was closed."""
        del exc
        if fd == 1:
            self._fall_silent()

    def process_exited(self) -> None:
        """The process has ended; its last output may still be on its way."""
        self._exited.set()
        self._loop.call_later(_SETTLING_SECONDS, self._fall_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """The process and all its pipes have ended."""
        del exc
        self._done.set()
        self._fall_silent()

    def _read(self, data: bytes) -> None:
        self._rest += data
        if b"\n" in data:
            *lines, self._rest = self._rest.split(b"\n")
            new = [bytes(line) for line in lines if line.strip()]
            self._lines.extend(new)
            self._unread += sum(map(len, new)) + _LINE_BYTES * len(new)
            self._changed.set()
        if len(self._rest) + self._unread > self._max_unread:
            self.too_long = True
            self._lines.clear()
            self._fall_silent()
            self.kill()

    def _fall_silent(self) -> None:
        if self._rest.strip() and not self.too_long:
            self._lines.append(bytes(self._rest))  # a last line needs no end
        self._rest.clear()
        self._silent = True
        self._changed.set()


async def _soon(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
