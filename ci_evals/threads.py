"""Threads on a machine that may have no memory for one: each begins soon, or an error says that it did not.

`threading.Thread.start`, and all that starts threads by it, waits for the new thread to say that it runs. One
that finds no memory for its first step never does, and is waited for for ever.
"""

import _thread
import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from ci_evals.domain.errors import exhausted

P = ParamSpec("P")
T = TypeVar("T")

_BEGIN_SECONDS = 5.0
"""The longest that a thread may take to begin."""
_SOON = 0.01


def begin(function: Callable[[], object]) -> None:
    """Call a function in a thread that does not hold up the end of the program.

    Raises:
        RuntimeError: "can't start new thread": there is no memory for one, or the system allows no more.
    """
    beginning, turn = _thread.allocate_lock(), _thread.allocate_lock()
    beginning.acquire()

    def work() -> None:
        if turn.acquire(blocking=False):  # else it was given up
            beginning.release()
            function()

    _thread.start_new_thread(work, ())
    if not beginning.acquire(timeout=_BEGIN_SECONDS) and turn.acquire(blocking=False):
        raise RuntimeError("can't start new thread")


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function in a thread; on a machine that can start none, here, where the loop waits for it.

    Raises:
        MemoryError: the thread ended without enough memory to report what the function returned.
    """
    work = partial(copy_context().run, function, *args, **options)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    turn, running = _thread.allocate_lock(), _thread.allocate_lock()
    running.acquire()

    def call() -> None:
        try:
            if turn.acquire(blocking=False):
                _settle(loop, done, work)
        finally:
            running.release()

    try:
        _thread.start_new_thread(call, ())
    except RuntimeError as error:
        if not exhausted(error):
            raise
        return work()
    try:
        while not done.done():
            await asyncio.wait([done], timeout=_BEGIN_SECONDS)
            if turn.acquire(blocking=False):
                return work()
            if not done.done() and running.acquire(blocking=False):
                await asyncio.sleep(0)  # the thread may have just sent its result
                if not done.done():
                    raise MemoryError
        return done.result()
    finally:
        done.cancel()


def _settle(loop: asyncio.AbstractEventLoop, done: "asyncio.Future[Any]", work: Callable[[], Any]) -> None:
    """Do the work, and send the loop its result as soon as there is memory to."""
    try:
        tell = partial(done.set_result, work())
    except BaseException as error:  # noqa: BLE001  # raised again where it is awaited
        tell = partial(done.set_exception, error)

    def unless_done() -> None:
        if not done.done():
            tell()

    with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
        while True:
            try:
                loop.call_soon_threadsafe(unless_done)
            except MemoryError:
                time.sleep(_SOON)
            else:
                return
