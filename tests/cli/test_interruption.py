"""Signals during a run, in this process: what the command does on them is in `test_run.py`."""

import asyncio
import signal
import threading
import time

import pytest

from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext

SOON = 60
"""Seconds."""


@pytest.fixture(autouse=True)
def handlers():
    """Those of the tests come back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def later(number: signal.Signals) -> None:
    """Sends the signal to a thread that is not the main one, once that waits for nothing but its sockets."""

    def send() -> None:
        time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), number)

    threading.Thread(target=send).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_wakes_a_run_that_waits(number):
    """Also one that the system gives to another thread: nothing else would wake the loop for minutes."""
    interruption = Interruption(RunContext())

    async def run() -> bool:
        later(number)
        await interruption.stop.run_until_stopped(asyncio.sleep(2 * SOON))
        return interruption.stop.interrupted

    began = time.monotonic()
    assert interruption.play(run())
    assert time.monotonic() - began < SOON


def test_a_signal_cuts_off_what_can_be_canceled():
    """Such as a comment that GitHub does not answer."""
    interruption = Interruption(RunContext())

    async def work() -> None:
        later(signal.SIGTERM)
        await asyncio.sleep(2 * SOON)

    began = time.monotonic()
    assert interruption.run_cancellable(work()) is None
    assert time.monotonic() - began < SOON


def test_a_callback_that_finds_no_memory_ends_the_run():
    """Whatever it was to wake would wait until its timeout, or forever."""
    interruption = Interruption(RunContext())
    released = []
    interruption.stop.release = lambda: released.append(True)

    def lost() -> None:
        raise MemoryError

    async def run() -> None:
        asyncio.get_running_loop().call_soon(lost)
        await interruption.stop.run_until_stopped(asyncio.sleep(2 * SOON))

    began = time.monotonic()
    interruption.play(run())
    assert time.monotonic() - began < SOON
    assert (interruption.stop.outage, released) == (True, [True])
    assert "out of memory" in interruption.stop.reason


def test_a_connection_that_cannot_be_accepted_now_does_not_end_the_run(caplog):
    """Python's loop accepts it as soon as a file can be opened again."""
    interruption = Interruption(RunContext())

    async def run() -> None:
        context = {"message": "socket.accept() out of system resource", "socket": None}
        asyncio.get_running_loop().call_exception_handler(context | {"exception": OSError(24, "no more")})

    interruption.play(run())
    assert not interruption.stop.requested
    assert "out of system resource" in caplog.text


def test_other_errors_of_callbacks_are_reported_as_usual(caplog):
    interruption = Interruption(RunContext())

    def failing() -> None:
        raise ValueError("a callback of somebody's")

    async def run() -> None:
        asyncio.get_running_loop().call_soon(failing)
        await interruption.stop.run_until_stopped(asyncio.sleep(0.05))

    interruption.play(run())
    assert not interruption.stop.requested
    assert "a callback of somebody's" in caplog.text
