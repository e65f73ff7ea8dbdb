"""A word to the user whenever the run waits long for one neighbour: for whom, how long, and why."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from ci_evals.adapters.transport.pace import Waiting
from ci_evals.domain.progress import Listener, StillWaiting

FIRST_SECONDS = 10.0
"""A wait of so many seconds is told, then one twice as long, and so on: a few lines for each neighbour."""
_LOOK_SECONDS = 1.0

Waits = Callable[[], Iterable[tuple[str, Waiting | None]]]
"""Neighbours by their names, and how long each is waited for now."""


class Reminder:
    """Decides when a wait is worth another word."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def due(self, waits: Iterable[tuple[str, Waiting | None]]) -> Iterable[StillWaiting]:
        """Tell of the waits that have grown long enough."""
        longest: dict[str, Waiting] = {}
        for who, wait in waits:
            if wait and wait.seconds > longest.get(who, wait._replace(seconds=-1)).seconds:
                longest[who] = wait
        for who, wait in longest.items():
            if wait.seconds >= self._next.get(who, FIRST_SECONDS):
                self._next[who] = 2 * wait.seconds
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
