"""The request to end a run, and concurrent work that heeds it."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from heapq import heappop, heappush
from typing import Any, TypeVar

from ci_evals.domain.errors import exhausted

T = TypeVar("T")


def _cancel_after(task: asyncio.Task[None], seconds: float) -> None:
    task.get_loop().call_later(seconds, task.cancel)


class _LockedQueue:
    """Indexes of items in their order, but of those with the same lock one at a time."""

    def __init__(self, locks: Sequence[str | None]) -> None:
        """Take the lock of each item; None locks nothing."""
        self._locks = locks
        self._left = len(locks)
        self._waiting: dict[str | None, deque[int]] = defaultdict(deque)
        for index, lock in enumerate(locks):
            self._waiting[lock].append(index)
        # The first index of each lock that is free, as a heap.
        self._free = sorted(indexes[0] for indexes in self._waiting.values())
        self._released = asyncio.Event()

    async def take(self) -> int | None:
        """Return the next index whose lock is free, when there is one; None if nothing is left."""
        while self._left:
            if self._free:
                index = heappop(self._free)
                self._left -= 1
                self._waiting[self._locks[index]].popleft()
                if self._locks[index] is None:
                    self._free_next(None)
                return index
            self._released.clear()
            await self._released.wait()
        return None

    def release(self, index: int) -> None:
        """Free the lock of an index."""
        if self._locks[index] is not None:
            self._free_next(self._locks[index])
        self._released.set()

    def _free_next(self, lock: str | None) -> None:
        if self._waiting[lock]:
            heappush(self._free, self._waiting[lock][0])


class Stop:
    """A request to end the run, from outside (a signal) or by the run itself (a refused key, a limit)."""

    def __init__(self) -> None:
        self.interrupted = False
        """True if the request came from outside."""
        self.reason: str | None = None
        """The reason for which the run ended itself."""
        self.outage = False
        """True if an agent or a model cannot be used, so that the next trials would have failed too."""
        self.failed_fast = False
        """True if a trial failed, after which no more were wanted."""
        self.bug: Exception | None = None
        """The bug of ours that ended it: what had finished is still worth reporting."""
        self.release: Callable[[], None] = lambda: None
        """Frees what is kept in reserve, for when the machine's resources run out."""
        self.on_request: Callable[[], None] = lambda: None
        """Called after each request, for work that is done elsewhere."""
        self._cutting = False
        self._under_way: set[asyncio.Task[Any]] = set()
        self._finishing: dict[asyncio.Task[None], float] = {}

    @property
    def requested(self) -> bool:
        """Return whether no further trial is to be started."""
        return self.interrupted or self.reason is not None

    def interrupt(self) -> None:
        """End the run now: conversations and judgments under way are cut off."""
        self.interrupted = True
        self._cut()
        self.on_request()

    def request(
        self, reason: str, *, outage: bool = False, failed_fast: bool = False, cut_off: bool = False
    ) -> None:
        """Begin no more trials, for a reason; those under way end by themselves, or are cut off."""
        if self.reason is None:
            self.reason, self.outage, self.failed_fast = reason, outage, failed_fast
        if cut_off:
            self._cut()
        self.on_request()

    @property
    def cutting(self) -> bool:
        """Return whether what is under way is cut off."""
        return self._cutting

    def _cut(self) -> None:
        self._cutting = True
        for task in self._under_way:
            task.cancel()
        for last, seconds in self._finishing.items():
            _cancel_after(last, seconds)

    async def stop_on_error(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work`; an exception that no error of ours explains ends the run in order."""
        try:
            await work
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except Exception as bug:  # noqa: BLE001  # finished trials are paid for and must be reported
            self.record_failure(bug)
        except BaseException as error:  # noqa: BLE001  # such as SystemExit, by code of somebody else
            message = f"code in this process raised {type(error).__name__}"
            self.bug = self.bug or RuntimeError(message)
            self.request(f"a bug in ci-evals: {message}")

    def record_failure(self, error: Exception, *, cut_off: bool = False) -> None:
        """End the run over an error: the machine's resources ran out, or it is a bug of ours.

        With `cut_off`, trials under way do not end by themselves if resources ran out.
        """
        if why := exhausted(error):
            self.release()
            self.request(f"on this machine {why}", outage=True, cut_off=cut_off)
            return
        self.bug = self.bug or error
        self.request(f"a bug in ci-evals: {type(error).__name__}: {error}")

    async def for_each(
        self,
        items: Sequence[T],
        work: Callable[[T], Awaitable[None]],
        *,
        parallel: int,
        admit: Callable[[], Awaitable[bool]] | None = None,
        lock_of: Callable[[T], str | None] = lambda _: None,
    ) -> None:
        """Do `work` for each item in turn, some at a time, until the end is requested.

        `admit` is asked before each item, and may take its time; if it refuses, no more are begun. Of items
        with the same lock one is worked on at a time, and later ones go before the others. A bug of ours in
        `work` ends the run in order.
        """
        queue = _LockedQueue([lock_of(item) for item in items])

        async def worker() -> None:
            while (index := await queue.take()) is not None:
                try:
                    if self.requested or (admit and not await admit()) or self.requested:
                        return
                    await work(items[index])
                finally:
                    queue.release(index)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(parallel, len(items))):
                group.create_task(self.stop_on_error(worker()))

    async def finish(self, work: Coroutine[Any, Any, None], seconds: float) -> None:
        """Do `work`, which the end of the run cuts off only after so many seconds more."""
        task = asyncio.create_task(work)
        self._finishing[task] = seconds
        if self._cutting:
            _cancel_after(task, seconds)
        try:
            await task
        except asyncio.CancelledError:
            if not self._cutting:
                raise
        finally:
            del self._finishing[task]

    async def run_until_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of `work`, or None if it is cut off."""
        if self._cutting:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._under_way.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._cutting:
                raise
            return None
        finally:
            self._under_way.discard(task)
