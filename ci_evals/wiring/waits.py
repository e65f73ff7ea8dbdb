"""Reports long waits for a service to the user."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.progress import Listener, StillWaiting

LONG_SECONDS = 10.0
MAX_INTERVAL_SECONDS = 60.0
"""Maximum time between reports on one service; it doubles with each."""
_CHECK_SECONDS = 1.0

Waits = Callable[[], Iterable[tuple[str, Waiting | None]]]
"""Returns the current wait for each service, by name."""


class Reminder:
    """Decides when a wait is reported again. Called once a second."""

    def __init__(self) -> None:
        self._now = 0.0
        self._last: dict[str, tuple[float, float]] = {}
        """Time of the last report on each service, and the time until the next one."""

    def due(self, waits: Iterable[tuple[str, Waiting | None]]) -> Iterable[StillWaiting]:
        """Yield the long waits that were not reported lately.

        Waits of several calls in a row count together: a model may hang on every attempt.
        """
        self._now += _CHECK_SECONDS
        longest: dict[str, Waiting] = {}
        for who, wait in waits:
            if wait and wait.seconds > longest.get(who, wait._replace(seconds=-1)).seconds:
                longest[who] = wait
        for who, wait in longest.items():
            last, interval = self._last.get(who, (-LONG_SECONDS, LONG_SECONDS))
            if wait.seconds >= LONG_SECONDS and self._now - last >= interval:
                self._last[who] = (self._now, min(2 * interval, MAX_INTERVAL_SECONDS))
                yield StillWaiting(who, wait.seconds, wait.reason)


@asynccontextmanager
async def report_waits(
    waits: Waits, listen: Listener, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Report long waits to the listener during the block."""

    async def check() -> None:
        reminder = Reminder()
        while True:
            await sleep(_CHECK_SECONDS)
            for event in reminder.due(waits()):
                listen(event)

    task = asyncio.create_task(check())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
