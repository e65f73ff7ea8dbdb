"""A word to the user whenever the run waits long for one neighbour: for whom, how long, and why."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.domain.progress import Listener, StillWaiting

LONG_SECONDS = 10.0
"""A wait of so many seconds is worth a line."""
MOST_BETWEEN_SECONDS = 60.0
"""From one line on a neighbour to the next: twice as long each time, and at most this."""
_LOOK_SECONDS = 1.0

Waits = Callable[[], Iterable[tuple[str, Waiting | None]]]
"""Neighbours by their names, and how long each is waited for now."""


class Reminder:
    """Decides when a wait is worth another line. It is asked once a second."""

    def __init__(self) -> None:
        self._now = 0.0
        self._last: dict[str, tuple[float, float]] = {}
        """By neighbour: when the last line was due, and the time until the next one may be."""

    def due(self, waits: Iterable[tuple[str, Waiting | None]]) -> Iterable[StillWaiting]:
        """Yield the long waits of neighbours that no line has named lately.

        Waits of several calls in a row count together: a model may hang on every attempt.
        """
        self._now += _LOOK_SECONDS
        longest: dict[str, Waiting] = {}
        for who, wait in waits:
            if wait and wait.seconds > longest.get(who, wait._replace(seconds=-1)).seconds:
                longest[who] = wait
        for who, wait in longest.items():
            last, between = self._last.get(who, (-LONG_SECONDS, LONG_SECONDS))
            if wait.seconds >= LONG_SECONDS and self._now - last >= between:
                self._last[who] = (self._now, min(2 * between, MOST_BETWEEN_SECONDS))
                yield StillWaiting(who, wait.seconds, wait.reason)


@asynccontextmanager
async def telling(
    waits: Waits, listen: Listener, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Tell the listener of long waits, as long as the block lasts."""

    async def look() -> None:
        reminder = Reminder()
        while True:
            await sleep(_LOOK_SECONDS)
            for event in reminder.due(waits()):
                listen(event)

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
