"""The request to end a run, and concurrent work that heeds it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ci_evals.domain.errors import exhausted

T = TypeVar("T")


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
        self._cutting = False
        self._under_way: set[asyncio.Task[Any]] = set()

    @property
    def requested(self) -> bool:
        """Return whether no further trial is to be started."""
        return self.interrupted or self.reason is not None

    def interrupt(self) -> None:
        """End the run now: conversations and judgments under way are cut off."""
        self.interrupted = True
        self._cut()

    def request(
        self, reason: str, *, outage: bool = False, failed_fast: bool = False, cut_off: bool = False
    ) -> None:
        """Begin no more trials, for a reason; those under way end by themselves, or are cut off."""
        if self.reason is None:
            self.reason, self.outage, self.failed_fast = reason, outage, failed_fast
        if cut_off:
            self._cut()

    def _cut(self) -> None:
        self._cutting = True
        for task in self._under_way:
            task.cancel()

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

    def record_failure(self, error: Exception) -> None:
        """End the run over an error: the machine's resources ran out, or it is a bug of ours."""
        if why := exhausted(error):
            self.release()
            self.request(f"on this machine {why}", outage=True)
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
    ) -> None:
        """Do `work` for each item in turn, some at a time, until the end is requested.

        `admit` is asked before each item, and may take its time; if it refuses, no more are begun. A bug of
        ours in `work` ends the run in order.
        """
        waiting = iter(items)

        async def worker() -> None:
            for item in waiting:
                if self.requested or (admit and not await admit()) or self.requested:
                    return
                await work(item)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(parallel, len(items))):
                group.create_task(self.stop_on_error(worker()))

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
