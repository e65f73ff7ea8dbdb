"""Signals: a run ends in order, its reports are written, and nothing around it takes long."""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

from ci_evals.cli.github import actions
from ci_evals.cli.process import supervision
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import Exit, exhausted
from ci_evals.stop import Stop

PATIENCE_SECONDS = 6.0
"""The time that a run may take to end once told to. GitHub sends a second signal after 7.5 seconds, and
kills after ten."""

_OBJECTS_BETWEEN_SEARCHES = 10_000
"""Objects made before Python looks for garbage in circles. A run makes hardly any: to look after every
700 takes a twelfth of its processor time, and not to takes a megabyte of memory."""

T = TypeVar("T")


class Interruption:
    """Signals from the start of a run until its last report is written, and what follows from them.

    The first one ends the run in order. A second one ends the program: at a terminal at once, elsewhere only
    where the first one's work takes too long. When every trial has been played, they change no result any
    more: the outcome stands, its reports are written in full, and only `run_cancellable` cuts its work off.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.signaled = self.finished = self.signaled_late = False
        self.stop = Stop()
        self._since = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancellable: asyncio.Task[Any] | None = None
        for number in supervision.ENDING:
            if number != getattr(signal, "SIGHUP", None) or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def play(self, run: Coroutine[Any, Any, T]) -> T:
        """Run until it ends; the run watches `stop`."""
        gc.freeze()  # what was imported stays, and need not be looked through again and again
        gc.enable()
        gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES)
        try:
            with _same_folder():
                return self._context.wait(self._played(run))
        except SystemExit as error:  # nothing of ours raises it here
            raise RuntimeError("code in this process tried to end the run by sys.exit()") from error
        finally:
            supervision.end_strays()

    def run_cancellable(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run work before or after the run; None if a signal came, since GitHub kills soon."""
        if self.signaled or self.signaled_late:
            work.close()
            return None
        try:
            return self._context.wait(self._cut_off(work))
        except asyncio.CancelledError:
            return None
        finally:
            self._loop = self._cancellable = None

    async def _played(self, run: Coroutine[Any, Any, T]) -> T:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_lost_callback)
        with _awake(self._loop):
            if self.signaled:
                self.stop.interrupt()
            try:
                return await run
            finally:
                self.finished = True
                await _cancel_leftovers()
                self._loop.set_exception_handler(None)

    def _on_lost_callback(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the run if a callback found no memory: what it was to wake would wait until its timeout.

        A socket that could not be accepted is no callback: asyncio tries again.
        """
        error = context.get("exception")
        if error is not None and "socket" not in context and exhausted(error):
            self.stop.record_failure(error, cut_off=True)
        else:
            loop.default_exception_handler(context)

    async def _cut_off(self, work: Coroutine[Any, Any, T]) -> T:
        self._loop, self._cancellable = asyncio.get_running_loop(), asyncio.current_task()
        with _awake(self._loop):
            if self.signaled or self.signaled_late:
                work.close()
                raise asyncio.CancelledError
            return await work

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.finished:
            self.signaled_late = True
        elif not self.signaled:
            self.signaled, self._since = True, time.monotonic()
        elif sys.stderr.isatty() or time.monotonic() - self._since > PATIENCE_SECONDS:
            actions.write_invalid(self._context)
            supervision.send_exit_code(Exit.INTERRUPTED)
            os._exit(Exit.INTERRUPTED)  # as process 1 no default of the system would end it
        if self._loop and self._cancellable:
            self._loop.call_soon_threadsafe(self._cancellable.cancel)
        elif self._loop and not self.finished:
            self._loop.call_soon_threadsafe(self.stop.interrupt)


async def _cancel_leftovers() -> None:
    """End tasks that code in this process has left behind: later work shares the event loop with them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _same_folder() -> Iterator[None]:
    """Go back to the current folder: code in this process may leave it, and reports belong in this one."""
    try:
        folder = os.getcwd()  # noqa: PTH109  # as it is
    except OSError:  # it is gone
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            os.chdir(folder)


@contextmanager
def _awake(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let a signal wake the loop.

    Python runs a handler between two of its own instructions. A signal that comes just before the loop begins
    to wait for its sockets would go unheard until one of them had something to tell.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        try:
            loop.add_reader(reader, reader.recv, 4096)
        except NotImplementedError:  # Windows, whose loop sees to it by itself
            yield
            return
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(reader)
