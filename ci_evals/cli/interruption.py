"""SIGINT and SIGTERM: a run ends in order, its reports are written, and nothing after it holds the job up."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from ci_evals.domain.errors import Exit
from ci_evals.runner import Stop

T = TypeVar("T")


class Interruption:
    """Signals from the start of a run until its last report is written, and what follows from them.

    The first one ends the run in order, a second one ends the program. When every trial has been played, they
    change no result any more: the outcome stands, its reports are written in full, and only what is done
    `afterwards` is cut off.
    """

    def __init__(self) -> None:
        self.came = self.over = self.late = False
        self.stop = Stop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def play(self, run: Coroutine[Any, Any, T]) -> T:
        """What the run gives, which watches `stop`."""
        return asyncio.run(self._played(run))

    def afterwards(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives; None where a signal came: GitHub kills a cancelled job in ten seconds."""
        if self.came or self.late:
            work.close()
            return None
        try:
            return asyncio.run(self._cut_off(work))
        except asyncio.CancelledError:
            return None
        finally:
            self._task = None

    async def _played(self, run: Coroutine[Any, Any, T]) -> T:
        self._loop = asyncio.get_running_loop()
        if self.came:
            self.stop.interrupt()
        try:
            return await run
        finally:
            self.over = True

    async def _cut_off(self, work: Coroutine[Any, Any, T]) -> T:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.late:
            work.close()
            raise asyncio.CancelledError
        return await work

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if self.over:
            self.late = True
            if self._loop and self._task:
                self._loop.call_soon_threadsafe(self._task.cancel)
            return
        if self.came:
            os._exit(Exit.INTERRUPTED)  # as process 1 no default of the system would end it
        self.came = True
        if self._loop:
            self._loop.call_soon_threadsafe(self.stop.interrupt)
