"""Sends calls to one service, retries those that failed, and slows down if the service limits the rate.

All calls that a service counts together share a limiter: those to one server with one key. At first nothing
limits them but the user's own limit. Refusals reduce the number of concurrent calls (`reduction`).

- A refused call waits and is repeated. If the server names a wait, all calls wait. They wait too, longer each
  time, if every one is refused.
- While calls are reduced, they are spread evenly over the time that one takes, since a burst after each wait
  would be refused again.
- Calls go out in the order in which they were made, retries included.
- If minutes of waiting brought nothing but refusals for one kind of call, that kind is no longer retried.
- Several processes can share the limits of a service (`share`): each heeds the refusals of all.
"""

import asyncio
import math
import random
import time
from bisect import insort
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple, TypeVar

from ci_evals.adapters.transport import retry
from ci_evals.adapters.transport.reduction import Reduction
from ci_evals.adapters.transport.refusals import Headers, used_up
from ci_evals.adapters.transport.retry import RetryBudget

try:
    import resource
except ImportError:  # Windows, where sockets do not count as open files
    resource = None  # type: ignore[assignment]

A = TypeVar("A")

MAX_SHARE = 1024

_MAX_LATE_SECONDS = 0.5
"""Delay of a call in this program that does not delay the calls after it."""


def fair_share() -> int:
    """Return the maximum number of connections to one service: a quarter of the files that may be open."""
    if resource is None:
        return MAX_SHARE
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_SHARE if most < 0 else max(1, min(most // 4, MAX_SHARE))


class Waiting(NamedTuple):
    """A wait for a service that still lasts."""

    seconds: float
    reason: str


class Slowdown(NamedTuple):
    """A limit that a service has set in one process, for the others that share its limits."""

    kind: str
    status: int | None
    """None if an answer said that nothing is left."""
    requested_wait: float | None
    sent_after: int
    """Reductions before the refused call was sent."""
    pause: float
    """Seconds for which all calls wait."""


@dataclass(eq=False)
class RetryableError(Exception):
    """A call failed in a way that the limiter has to know of."""

    failure: Exception
    """Raised if the call is not repeated."""
    status: int | None = None
    """None if there was no answer."""
    requested_wait: float | None = None
    """Seconds that the server asks to wait."""
    _: KW_ONLY
    repeatable: bool = True
    final: Exception | None = None
    """Raised in place of the failure once the service is no longer waited for."""

    @property
    def limits_rate(self) -> bool:
        """True if the server works and only limits the rate."""
        wait_requested = self.requested_wait is not None
        return self.status is not None and retry.limits_rate(self.status, wait_requested=wait_requested)


class RateLimiter:
    """Limits and retries the calls to one service. Serves one event loop after the other."""

    def __init__(
        self,
        *,
        max_concurrent: int | None = None,
        budget: RetryBudget | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._max_concurrent, self._budget = max_concurrent, budget or RetryBudget()
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._tickets = count()
        self._queue: _Queue | None = None
        self._reduction = Reduction()
        self._not_before: float | None = None
        """The time at which the next call may go out."""
        self._kinds: dict[str, _Kind] = {}
        self._seconds_left = self._budget.total_seconds
        self._refusals, self._statuses, self._waited_seconds, self._fewest = 0, set[int](), 0.0, 0
        self._broadcast: Callable[[Slowdown], None] = lambda _: None

    @property
    def at_a_time(self) -> int | None:
        """The current maximum of concurrent calls; None for any number.

        A limit below one, of a process among several, is kept by the time between calls.
        """
        limit = self._reduction.limit
        return self._max_concurrent if limit is None else max(1, int(limit))

    @property
    def reduction(self) -> Reduction:
        """How far calls are reduced now."""
        return replace(self._reduction)

    @property
    def pause(self) -> float:
        """Seconds for which all calls still wait."""
        return max(0.0, (self._not_before or 0.0) - self._clock())

    def share(self, processes: int, broadcast: Callable[[Slowdown], None]) -> None:
        """Share the service's limits with other processes, to which `broadcast` passes them on."""
        self._reduction.part, self._broadcast = 1 / processes, broadcast
        if self._max_concurrent:
            self._max_concurrent = max(1, self._max_concurrent // processes)

    def join(self, reduction: Reduction, pause: float) -> None:
        """Begin as far reduced as another process that shares the limits, after a pause of all calls."""
        self._reduction = replace(reduction)
        self._pause(pause)

    def on_remote_slowdown(self, slowdown: Slowdown) -> None:
        """Heed a limit that the service has set in another process."""
        if slowdown.status is not None:
            self._count_refusal(slowdown, slowdown.sent_after)
        self._pause(slowdown.pause)
        if kind := self._kinds.get(slowdown.kind):
            kind.count_wait(slowdown.pause, self._clock())

    async def send(self, call: Callable[[int], Awaitable[A]], kind: str = "") -> A:
        """Make a call when its turn comes, and retry it after a `RetryableError` within the retry budget.

        The call takes the number of the attempt, from 1. Calls of one `kind` are refused or answered alike,
        such as those to one path. Raises the last failure.
        """
        known, ticket = self._kinds.setdefault(kind, _Kind(kind)), next(self._tickets)
        known.pending[ticket] = self._clock()
        try:
            return await self._attempts(call, known, ticket)
        finally:
            del known.pending[ticket]

    def waiting(self) -> Waiting | None:
        """Return the longest current wait for an answer of this service; None if nothing is pending."""
        now = self._clock()
        waits = (kind.waiting(now) for kind in self._kinds.values())
        return max((wait for wait in waits if wait), key=lambda wait: wait.seconds, default=None)

    def note(self, who: str) -> str | None:
        """Return a sentence on the limits that `who` set, beginning with it; None if it set none."""
        if not self._refusals:
            return None
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        statuses = ", ".join(map(str, sorted(self._statuses)))
        if self._reduction.part < 1:  # the other processes have waited too, for longer or shorter
            return f"{who} limited the rate {times} ({statuses})"
        waited = f"calls waited {self._waited_seconds:.0f} s in total"
        fewest = f", at least {self._fewest} at a time" if self._fewest else ""
        return f"{who} limited the rate {times} ({statuses}): {waited}{fewest}"

    async def _attempts(self, call: Callable[[int], Awaitable[A]], kind: "_Kind", ticket: int) -> A:
        loop = asyncio.get_running_loop()
        if self._queue is None or self._queue.loop is not loop:
            self._queue = _Queue(loop)
        queue = self._queue
        limited = broken = 0
        while True:
            await self._wait_for_turn(queue, ticket)
            sent_after, sent_at = self._reduction.steps, self._clock()
            try:
                answer = await call(1 + limited + broken)
            except RetryableError as error:
                step = limited if error.limits_rate else retry.BROKEN_STEP * broken
                limited, broken = limited + error.limits_rate, broken + (not error.limits_rate)
                within = limited <= self._budget.limited and broken <= self._budget.broken
                wait = self._after_failure(error, kind, step, sent_after, within=within)
            else:
                kind.count_success(self._clock())
                self._heed(getattr(answer, "headers", None))
                self._reduction.count_success(self._clock() - sent_at)
                return answer
            finally:
                queue.under_way -= 1
                queue.wake_first()
            if wait:
                await self._sleep(wait)

    def _after_failure(
        self, error: RetryableError, kind: "_Kind", step: int, sent_after: int, *, within: bool
    ) -> float:
        """Return the seconds that a failed call waits besides a pause of all; raise if it is not repeated."""
        jitter, max_jitter = self._jitter(), self._budget.max_jitter
        wait = retry.wait_seconds(step, error.requested_wait, jitter, max_jitter=max_jitter)
        affordable = max(wait, error.requested_wait or 0.0) <= self._seconds_left
        may_repeat = affordable and error.repeatable and within
        all_wait = error.limits_rate and self._count_refusal(error, sent_after) and affordable
        if may_repeat or all_wait:
            self._seconds_left -= wait
        if error.limits_rate:
            kind.refused_with = error.status
            all_wait = all_wait and not self._is_spent(kind)
            pause = wait if all_wait else 0.0
            self._broadcast(Slowdown(kind.name, error.status, error.requested_wait, sent_after, pause))
            kind.count_wait(wait, self._clock())
            if all_wait:
                self._pause(wait)
                wait = 0.0
            self._waited_seconds += wait
        if self._is_spent(kind):
            raise (error.final or error.failure) from error.failure.__cause__
        if not may_repeat:
            raise error.failure from error.failure.__cause__
        return wait

    async def _wait_for_turn(self, queue: "_Queue", ticket: int) -> None:
        """Wait for the turn of a call, and count it as under way."""
        is_limited = self._reduction.limit is not None or self._not_before is not None
        if not queue.waiting and not is_limited and self._has_room(queue):
            queue.under_way += 1
            return
        began_at, woken = self._clock(), asyncio.Event()
        due: float | None = None
        insort(queue.waiting, (ticket, woken))
        try:
            while True:
                is_first = queue.waiting[0][0] == ticket
                if is_first and self._not_before is not None:
                    due = await self._sleep_until(self._not_before)
                elif is_first and self._has_room(queue):
                    break
                else:
                    due = None
                    woken.clear()
                    await woken.wait()
            queue.under_way += 1
            if self._reduction.limit is not None:
                now = self._clock()
                late = 0.0 if due is None else min(max(now - due, 0.0), _MAX_LATE_SECONDS)
                self._not_before = now - late + self._reduction.call_seconds / self._reduction.limit
        finally:
            queue.waiting.remove((ticket, woken))
            queue.wake_first()
            if is_limited:
                self._waited_seconds += self._clock() - began_at

    async def _sleep_until(self, due: float) -> float:
        seconds = due - self._clock()
        if seconds > 0:
            await self._sleep(seconds)
        if self._not_before == due:  # otherwise a longer wait was requested meanwhile
            self._not_before = None
        return due

    def _has_room(self, queue: "_Queue") -> bool:
        limit = self.at_a_time
        return limit is None or queue.under_way < limit

    def _is_spent(self, kind: "_Kind") -> bool:
        """Return whether no wait within the budget has helped against refusals of every call of a kind."""
        return kind.wait_seconds >= self._budget.limited_seconds

    def _count_refusal(self, refusal: RetryableError | Slowdown, sent_after: int) -> bool:
        """Count a refusal of this or another process. Return whether all calls have to wait."""
        self._refusals += 1
        self._statuses.add(refusal.status or 0)
        under_way = self._queue.under_way if self._queue else 0
        all_wait = self._reduction.count_refusal(refusal.requested_wait, sent_after, under_way)
        if self._reduction.limit is not None:
            self._fewest = min(self._fewest or self._reduction.peak, int(self._reduction.limit))
        return all_wait

    def _heed(self, headers: Headers | None) -> None:
        """Hold all calls back if an answer says that it was the last one for now."""
        wait = used_up(headers, datetime.now(UTC)) if headers else None
        # A longer wait takes a refusal: some servers say with every answer that nothing is left.
        if wait and wait <= min(retry.MAX_WAIT_SECONDS, self._seconds_left):
            self._seconds_left -= self._pause(wait)
            self._broadcast(Slowdown("", None, None, self._reduction.steps, wait))

    def _pause(self, seconds: float) -> float:
        """Hold all calls back. Return by how many seconds more than so far."""
        now = self._clock()
        start = max(self._not_before or now, now)
        self._not_before = max(start, now + seconds)
        return self._not_before - start


@dataclass
class _Kind:
    """The calls of one kind."""

    name: str = ""
    pending: dict[int, float] = field(default_factory=dict)
    """Start times of calls without a final answer, by ticket."""
    wait_seconds: float = 0.0
    """Time spent waiting since the last success; simultaneous waits count once."""
    waits_until: float = 0.0
    answered_at: float | None = None
    refused_with: int | None = None

    def count_wait(self, seconds: float, now: float) -> None:
        until = max(self.waits_until, now + seconds)
        self.wait_seconds += until - max(self.waits_until, now)
        self.waits_until = until

    def count_success(self, now: float) -> None:
        self.wait_seconds, self.waits_until, self.answered_at, self.refused_with = 0.0, now, now, None

    def waiting(self, now: float) -> Waiting | None:
        """Return the current wait: since the first pending call or the last answer."""
        if not self.pending:
            return None
        since = max(min(self.pending.values()), self.answered_at or -math.inf)
        reason = f"rate limited ({self.refused_with})" if self.refused_with else "no answer yet"
        return Waiting(now - since, reason)


@dataclass
class _Queue:
    """The calls that wait in one event loop, and the number under way there."""

    loop: asyncio.AbstractEventLoop
    waiting: list[tuple[int, asyncio.Event]] = field(default_factory=list)
    """The tickets of the calls, in their order, and what wakes each."""
    under_way: int = 0

    def wake_first(self) -> None:
        """Wake the first call to check for its turn."""
        if self.waiting:
            self.waiting[0][1].set()
