"""How fast one neighbour is asked: calls at a time that fall where it limits the rate, and climb again.

One limiter is shared by all calls that the neighbour counts together: those to one server with one key. It
knows no bound at first but its user's. Up to a tenth of refusals are strays: some servers refuse at random,
so only the refused call waits. Beyond that the server is over its limit, and each refused call takes one
from the calls at a time. Where a time is told, half as many go, and everybody waits until then; everybody
waits as well, longer each time, where all are refused. Every eight successes let one more go, until there
are as many as there were. Until then calls go out evenly over the time that one takes: a rush after each
wait would be refused where the same calls, spread, are not. Whoever asked first goes first, also again
after a refusal. Where minutes of waiting brought nothing but refusals of one kind of call, nobody waits for
that kind any more, whatever goes well with others: the run has waited for this neighbour, and ends.
"""

import asyncio
import heapq
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple, Protocol, TypeVar

import httpx2

from ci_evals.adapters.transport import retry
from ci_evals.adapters.transport.rate_limits import used_up
from ci_evals.adapters.transport.retry import PATIENT, Patience


class Answer(Protocol):
    """What a call brings back."""

    @property
    def headers(self) -> httpx2.Headers:
        """In which a server may tell of its limits."""


A = TypeVar("A", bound=Answer)

_WEIGHT = 0.2
"""Of the last call in what calls take."""
_STRAY = 0.1
"""Refused calls up to this share of those at a time tell nothing of the others."""
_BEFORE = 3.0
"""So many more do not, where a server has answered well for long."""
_MENDS = 1 / 8
"""Of a refusal, by a success: where one in nine calls is refused, their number stays what it is."""
_LATE_SECONDS = 0.5
"""What calls may be late, since this program was busy, without others going out later for it."""


class Waiting(NamedTuple):
    """A wait for a neighbour that goes on."""

    seconds: float
    reason: str


class RetryableError(Exception):  # it is no error yet
    """A call failed, and others are to learn of it."""

    def __init__(
        self,
        failure: Exception,
        status: int | None = None,
        told: float | None = None,
        *,
        harmless: bool = True,
        last: Exception | None = None,
    ) -> None:
        """Says what it came to.

        Args:
            failure: What to raise where the call is not made again.
            status: What was answered; none where nothing was.
            told: Seconds that the server asks to wait.
            harmless: Whether it may be made again.
            last: What to raise in place of the failure once no more is waited for this neighbour.
        """
        super().__init__(str(failure))
        self.last = last or failure
        self.failure, self.status, self.told, self.harmless = failure, status, told, harmless

    @property
    def limit(self) -> int | None:
        """The status by which a server that is well limits the rate; none if it was anything else."""
        if self.status is None or not retry.limits_rate(self.status, told_to_wait=self.told is not None):
            return None
        return self.status


class RateLimiter:
    """The limiter of calls to one neighbour. Serves one event loop after the other."""

    def __init__(
        self,
        *,
        most: int | None = None,
        patience: Patience = PATIENT,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Opens nothing.

        Args:
            most: Calls at a time; without it as many as are asked for.
            patience: How often a call is made again.
            sleep: Waits so many seconds.
            clock: Seconds.
            luck: A random number from 0 to 1.
        """
        self._most, self._patience, self._sleep, self._clock, self._luck = most, patience, sleep, clock, luck
        self._tickets = count()
        self._line: _Line | None = None
        self._limit: float | None = None
        """Calls at a time since it fell; None while it has not, or is where it was."""
        self._top = 0
        """Where it was before it fell."""
        self._falls, self._half = 0, 1.0
        """How often it began to fall among calls that were sent after the last time, and how far it may."""
        self._strain = 0.0
        """Refusals that no successes have made up for; below 0 by some that would not matter."""
        self._call_seconds = 0.0
        """What a call takes, as the last ones did."""
        self._not_before: float | None = None
        """When the next call may go out."""
        self._kinds: dict[str, _Kind] = {}
        self._refusals, self._statuses, self._waited, self._least = 0, set[int](), 0.0, 0

    @property
    def at_a_time(self) -> int | None:
        """How many calls may be under way; None for any number."""
        return self._most if self._limit is None else int(self._limit)

    async def send(self, call: Callable[[int], Awaitable[A]], kind: str = "") -> A:
        """Makes a call when its turn comes, again after a `RetryableError` as long as the patience lasts.

        Waits are none of the call's own time.

        Args:
            call: Is given which attempt it is, from 1.
            kind: Which calls are refused or answered alike, as those to one path: what goes well with one
                kind says nothing of another.

        Raises:
            Exception: the failure of the last such error, or what else the call raises.
        """
        known, ticket = self._kinds.setdefault(kind, _Kind()), next(self._tickets)
        known.pending[ticket] = self._clock()
        try:
            return await self._sent(call, known, ticket)
        finally:
            del known.pending[ticket]

    async def _sent(self, call: Callable[[int], Awaitable[A]], kind: "_Kind", ticket: int) -> A:
        line = self._line_here()
        limited = broken = 0
        while True:
            await self._enter(line, ticket)
            falls, sent = self._falls, self._clock()
            try:
                answer = await call(1 + limited + broken)
            except RetryableError as failure:
                if (status := failure.limit) is not None:
                    kind.refused = status
                    wait = retry.wait_seconds(limited, failure.told, self._luck())
                    if self._refused(status, failure.told, falls, line.under_way) and not self._is_shut(kind):
                        kind.in_vain += self._rest_for(wait)
                        wait = 0.0
                    else:
                        kind.wait(wait, self._clock())
                    limited += 1
                    self._waited += wait
                else:
                    wait = retry.wait_seconds(retry.BROKEN_STEP * broken, failure.told, self._luck())
                    broken += 1
                spent = limited > self._patience.limited or broken > self._patience.broken
                if self._is_shut(kind):
                    raise failure.last from failure.failure.__cause__
                if spent or not failure.harmless:
                    raise failure.failure from failure.failure.__cause__
            else:
                kind.succeeded(self._clock())
                self._succeeded(answer, sent)
                return answer
            finally:
                line.under_way -= 1
                self._beckon(line)
            if wait:
                await self._sleep(wait)

    def waiting(self) -> Waiting | None:
        """The longest wait for an answer of this neighbour that goes on now; None if nothing is asked."""
        now = self._clock()
        waits = (kind.waiting(now) for kind in self._kinds.values())
        return max((wait for wait in waits if wait), key=lambda wait: wait.seconds, default=None)

    def note(self, who: str) -> str | None:
        """What a person should know of limits that were met; None if there were none.

        Args:
            who: Who limited the rate, to begin the sentence with.
        """
        if not self._refusals:
            return None
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        statuses = ", ".join(map(str, sorted(self._statuses)))
        waited = f"calls waited {self._waited:.0f} s in all"
        fewest = f", at least {self._least} at a time" if self._least else ""
        return f"{who} limited the rate {times} ({statuses}): {waited}{fewest}"

    def _line_here(self) -> "_Line":
        loop = asyncio.get_running_loop()
        if self._line is None or self._line.loop is not loop:
            self._line = _Line(loop, [])
        return self._line

    async def _enter(self, line: "_Line", ticket: int) -> None:
        """Waits for the call's turn, and takes its place."""
        limited = self._limit is not None or self._not_before is not None
        if not line.waiting and not limited and self._has_room(line):
            line.under_way += 1
            return
        began, place = self._clock(), _Place(ticket)
        due: float | None = None
        heapq.heappush(line.waiting, place)
        try:
            while True:
                if line.waiting[0] is place:
                    if self._not_before is not None:
                        due = await self._rest(self._not_before)
                        continue
                    if self._has_room(line):
                        break
                due, place.called = None, line.loop.create_future()
                await place.called
            self._depart(line, due)
        finally:
            line.waiting.remove(place)
            heapq.heapify(line.waiting)
            self._beckon(line)
            if limited:
                self._waited += self._clock() - began

    def _is_shut(self, kind: "_Kind") -> bool:
        """Whether the server refuses every call of a kind, and no wait has helped."""
        return kind.in_vain >= self._patience.limited_seconds

    def _has_room(self, line: "_Line") -> bool:
        most = self.at_a_time
        return most is None or line.under_way < most

    def _depart(self, line: "_Line", due: float | None) -> None:
        line.under_way += 1
        if self._limit is not None:
            late = 0.0 if due is None else min(max(self._clock() - due, 0.0), _LATE_SECONDS)
            self._not_before = self._clock() - late + self._call_seconds / self._limit

    async def _rest(self, until: float) -> float:
        """Waits until that time, and gives it back: it may be later by then."""
        seconds = until - self._clock()
        if seconds > 0:
            await self._sleep(seconds)
        if self._not_before == until:  # else it was told meanwhile to wait longer
            self._not_before = None
        return until

    def _beckon(self, line: "_Line") -> None:
        """Wakes who is first in line, to see whether it is time."""
        if line.waiting and (called := line.waiting[0].called) and not called.done():
            called.set_result(None)

    def _refused(self, status: int, told: float | None, sent_after: int, under_way: int) -> bool:
        """Lets fewer go, unless it is a stray refusal. Whether everybody is to wait for it."""
        self._refusals += 1
        self._statuses.add(status)
        limit = self._limit or under_way
        self._strain = min(self._strain + 1, limit)
        if self._strain <= _STRAY * limit:
            return False
        is_news = sent_after == self._falls  # else it was sent before the last fall, which was for it too
        if is_news:
            self._falls += 1
            self._half = max(1.0, limit / 2)
        self._top = max(self._top, under_way)
        self._limit = max(self._half, limit / 2 if told and is_news else limit - 1)
        self._least = min(self._least or self._top, int(self._limit))
        return bool(told) or (is_news and self._strain >= self._limit)

    def _succeeded(self, answer: Answer, sent: float) -> None:
        told = used_up(answer.headers, datetime.now(UTC))
        # Who tells of a longer time has to refuse a call: some tell with every answer that nothing is left.
        if told and told <= retry.MAX_WAIT_SECONDS:
            self._rest_for(told)
        seconds = self._clock() - sent
        self._call_seconds += (seconds - self._call_seconds) * (_WEIGHT if self._call_seconds else 1)
        self._strain = max(self._strain - _MENDS, -_BEFORE if self._limit is None else 0.0)
        if self._limit is not None:
            self._limit += _MENDS
            if self._limit >= self._top:
                self._limit, self._top = None, 0

    def _rest_for(self, seconds: float) -> float:
        """Holds everybody back. By how many seconds more than until now."""
        now = self._clock()
        begun = max(self._not_before or now, now)
        self._not_before = max(begun, now + seconds)
        return self._not_before - begun


@dataclass
class _Kind:
    """Calls of one kind."""

    pending: dict[int, float] = field(default_factory=dict)
    """Those that wait for their answer, or for being made again, and since when."""
    in_vain: float = 0.0
    """Seconds of waiting after refusals since one went well; waits at the same time count once."""
    until: float = 0.0
    """The end of the last wait of a call by itself."""
    answered: float | None = None
    """When one last went well."""
    refused: int | None = None
    """The status of the last refusal since then."""

    def wait(self, seconds: float, now: float) -> None:
        """Counts the wait of a call by itself."""
        until = max(self.until, now + seconds)
        self.in_vain += until - max(self.until, now)
        self.until = until

    def succeeded(self, now: float) -> None:
        """Counts a call that went well."""
        self.in_vain, self.until, self.answered, self.refused = 0.0, now, now, None

    def waiting(self, now: float) -> Waiting | None:
        """The wait that goes on now: since the first call that has no answer, or the last answer."""
        if not self.pending:
            return None
        since = max(min(self.pending.values()), self.answered or -math.inf)
        reason = "no answer yet" if self.refused is None else f"rate limited ({self.refused})"
        return Waiting(now - since, reason)


@dataclass
class _Line:
    """Who is waiting in one event loop, and how many are under way there."""

    loop: asyncio.AbstractEventLoop
    waiting: list["_Place"]
    under_way: int = 0


@dataclass(order=True)
class _Place:
    ticket: int
    called: "asyncio.Future[None] | None" = None
