"""Commands of ci-evals that the server starts, and their end with all that they have started."""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ci_evals.cli.process.supervision import ENDING_SECONDS

_MODULE = "ci_evals.extensions.mcp_server.one_command"
_END_SECONDS = 2 * ENDING_SECONDS
"""Time that a command has to end. It ends its agents, and keeps what it has."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


class Children:
    """Starts commands, and knows those that are still ending."""

    def __init__(self) -> None:
        self._running: set[asyncio.subprocess.Process] = set()
        self._ending: set[asyncio.Task[None]] = set()

    async def call(
        self,
        command: str,
        arguments: Sequence[str],
        options: Mapping[str, Any],
        most_trials: int | None = None,
    ) -> Ended:
        """Carry out a command. It is ended if nobody waits for it any longer."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            _MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # what ends the server must not cut it off
        )
        self._running.add(process)
        try:
            given = pickle.dumps((os.getpid(), command, [*arguments], {**options}, most_trials))
            stdout, stderr = await process.communicate(given)
        finally:
            self._end(process)
        return Ended(process.returncode or 0, *(data.decode(errors="replace") for data in (stdout, stderr)))

    def _end(self, process: asyncio.subprocess.Process) -> None:
        """Tell a command to end, unless it has, in a task that no cancellation of a call reaches."""
        if process not in self._running:
            return
        self._running.discard(process)
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        ending = asyncio.get_running_loop().create_task(_end(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def end_all(self) -> None:
        """End all commands, and wait until they have ended."""
        for process in tuple(self._running):
            self._end(process)
        await asyncio.gather(*self._ending, return_exceptions=True)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait until a command that was told to end has ended, and kill it if it does not."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _END_SECONDS)
        return
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    await process.wait()
