"""Signals during a run, in this process; `test_run.py` tests the command."""

import asyncio
import signal
import threading
import time

import pytest

from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext

MANY_SECONDS = 60


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send_later(number: signal.Signals) -> None:
    """Sends the signal to a thread that is not the main one, once that waits for nothing but its sockets."""

    def send() -> None:
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), number)

    threading.Thread(target=send).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_interrupts_waiting_run_and_cancellable_work_at_once(number):
    """Also one that the system gives to another thread: nothing else would wake the loop for minutes."""
    interruption = Interruption(RunContext())

    async def run() -> bool:
        send_later(number)
        await interruption.stop.run_until_stopped(asyncio.sleep(2 * MANY_SECONDS))
        return interruption.stop.interrupted

    async def work() -> None:
        send_later(number)
        await asyncio.sleep(2 * MANY_SECONDS)

    began = time.monotonic()
    assert interruption.play(run())
    assert Interruption(RunContext()).run_cancellable(work()) is None
    assert time.monotonic() - began < MANY_SECONDS


def test_memory_error_in_callback_ends_run():
    """The coroutine that it was to wake would wait until its timeout, or forever."""
    interruption = Interruption(RunContext())
    released = []
    interruption.stop.release = lambda: released.append(True)

    def lost() -> None:
        raise MemoryError

    async def run() -> None:
        asyncio.get_running_loop().call_soon(lost)
        await interruption.stop.run_until_stopped(asyncio.sleep(2 * MANY_SECONDS))

    began = time.monotonic()
    interruption.play(run())
    assert time.monotonic() - began < MANY_SECONDS
    assert (interruption.stop.outage, released) == (True, [True])
    assert "out of memory" in interruption.stop.reason


def test_other_errors_in_event_loop_are_logged_and_do_not_end_run(caplog):
    """Python's loop accepts a connection as soon as a file can be opened again."""
    interruption = Interruption(RunContext())

    def failing() -> None:
        raise ValueError("a callback of somebody's")

    async def run() -> None:
        context = {"message": "socket.accept() out of system resource", "socket": None}
        loop = asyncio.get_running_loop()
        loop.call_exception_handler(context | {"exception": OSError(24, "no more")})
        loop.call_soon(failing)
        await interruption.stop.run_until_stopped(asyncio.sleep(0.05))

    interruption.play(run())
    assert not interruption.stop.requested
    assert "out of system resource" in caplog.text
    assert "a callback of somebody's" in caplog.text
