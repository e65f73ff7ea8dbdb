"""How fast one neighbour is asked: calls at a time that fall where it limits the rate, and climb again.

One pace is shared by all calls that the neighbour counts together: those to one server with one key. It
knows no bound at first but its user's. A refusal for the rate halves the calls at a time, once for all that
had been sent before, and everybody waits until the time that was told. Every full round of successes lets
one more go, or an eighth more where that is more, until there are as many as there were. Until then calls go
out evenly over the time that one takes: a rush after each wait would be refused where the same calls, spread,
are not. Whoever asked first goes first, also again after a refusal. Where minutes of waiting brought refusals
alone, nobody waits any more: each call is made once, until one goes well.
"""

import asyncio
import heapq
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Protocol, TypeVar

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
_ROUNDS_TO_DOUBLE = 8


class Setback(Exception):  # noqa: N818  # it is no error yet
    """A call failed, and others are to learn of it."""

    def __init__(
        self,
        failure: Exception,
        status: int | None = None,
        told: float | None = None,
        *,
        harmless: bool = True,
    ) -> None:
        """Says what it came to.

        Args:
            failure: What to raise where the call is not made again.
            status: What was answered; none where nothing was.
            told: Seconds that the server asks to wait.
            harmless: Whether it may be made again.
        """
        super().__init__(str(failure))
        self.failure, self.status, self.told, self.harmless = failure, status, told, harmless

    @property
    def limit(self) -> int | None:
        """The status by which a server that is well limits the rate; none if it was anything else."""
        if self.status is None or not retry.limits_rate(self.status, told_to_wait=self.told is not None):
            return None
        return self.status


class Pace:
    """The pace of calls to one neighbour. Serves one event loop after the other."""

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
        self._limit: int | None = None
        """Calls at a time since it fell; None while it has not, or is where it was."""
        self._top = 0
        """Where it was before it fell."""
        self._falls = self._successes = 0
        self._call_seconds = 0.0
        """What a call takes, as the last ones did."""
        self._not_before: float | None = None
        """When the next call may go out."""
        self._waited_in_vain = 0.0
        """Seconds for which all calls were held back since one went well."""
        self._refusals, self._statuses, self._waited, self._least = 0, set[int](), 0.0, 0

    @property
    def at_a_time(self) -> int | None:
        """How many calls may be under way; None for any number."""
        return self._most if self._limit is None else self._limit

    async def send(self, call: Callable[[int], Awaitable[A]]) -> A:
        """Makes a call when its turn comes, again after a `Setback` as long as the patience lasts.

        Waits are none of the call's own time.

        Args:
            call: Is given which attempt it is, from 1.

        Raises:
            Exception: the failure of the last setback, or what else the call raises.
        """
        line, ticket = self._line_here(), next(self._tickets)
        limited = broken = 0
        while True:
            await self._enter(line, ticket)
            falls, sent = self._falls, self._clock()
            try:
                answer = await call(1 + limited + broken)
            except Setback as setback:
                if (status := setback.limit) is not None:
                    self._refused(status, setback.told, falls, limited, line.under_way)
                    limited, wait = limited + 1, 0.0
                else:
                    wait = retry.wait_seconds(broken, setback.told, self._luck())
                    broken += 1
                spent = limited > self._patience.limited or broken > self._patience.broken
                if spent or self._is_shut or not setback.harmless:
                    raise setback.failure from setback.failure.__cause__
            else:
                self._succeeded(answer, falls, sent)
                return answer
            finally:
                line.under_way -= 1
                self._beckon(line)
            if wait:
                await self._sleep(wait)

    def note(self, who: str) -> str | None:
        """What a person should know of limits that were met; None if there were none.

        Args:
            who: Who limited the rate, to begin the sentence with.
        """
        if not self._refusals:
            return None
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        statuses = ", ".join(map(str, sorted(self._statuses)))
        return (
            f"{who} limited the rate {times} ({statuses}): calls waited {self._waited:.0f} s in all, "
            f"at least {self._least} at a time"
        )

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
        heapq.heappush(line.waiting, place)
        try:
            while True:
                if line.waiting[0] is place:
                    if self._not_before is not None:
                        await self._rest(self._not_before)
                        continue
                    if self._has_room(line):
                        break
                place.called = line.loop.create_future()
                await place.called
            self._depart(line)
        finally:
            line.waiting.remove(place)
            heapq.heapify(line.waiting)
            self._beckon(line)
            if limited:
                self._waited += self._clock() - began

    @property
    def _is_shut(self) -> bool:
        """Whether the server refuses everybody, and no wait has helped."""
        return self._waited_in_vain >= self._patience.limited_seconds

    def _has_room(self, line: "_Line") -> bool:
        most = self.at_a_time
        return most is None or line.under_way < most

    def _depart(self, line: "_Line") -> None:
        line.under_way += 1
        if self._limit is not None:
            self._not_before = self._clock() + self._call_seconds / self._limit

    async def _rest(self, until: float) -> None:
        seconds = until - self._clock()
        if seconds > 0:
            await self._sleep(seconds)
        if self._not_before == until:  # else it was told meanwhile to wait longer
            self._not_before = None

    def _beckon(self, line: "_Line") -> None:
        """Wakes who is first in line, to see whether it is time."""
        if line.waiting and (called := line.waiting[0].called) and not called.done():
            called.set_result(None)

    def _refused(self, status: int, told: float | None, sent_after: int, resend: int, under_way: int) -> None:
        self._refusals += 1
        self._statuses.add(status)
        is_news = sent_after == self._falls
        if (told or is_news) and not self._is_shut:
            self._rest_for(retry.wait_seconds(resend, told, self._luck()))
        if is_news:  # else it was sent before the last fall, which was for it too
            self._falls += 1
            self._top = max(self._top, under_way)
            self._limit = max(1, under_way // 2)
            self._least = min(self._least or self._limit, self._limit)
            self._successes = 0

    def _succeeded(self, answer: Answer, sent_after: int, sent: float) -> None:
        self._waited_in_vain = 0.0
        told = used_up(answer.headers, datetime.now(UTC))
        # Who tells of a longer time has to refuse a call: some tell with every answer that nothing is left.
        if told and told <= retry.MAX_WAIT_SECONDS:
            self._rest_for(told)
        seconds = self._clock() - sent
        self._call_seconds += (seconds - self._call_seconds) * (_WEIGHT if self._call_seconds else 1)
        if self._limit is None or sent_after != self._falls:
            return
        self._successes += 1
        if self._successes >= self._limit:
            self._successes = 0
            self._limit += max(1, self._limit // _ROUNDS_TO_DOUBLE)
            if self._limit >= self._top:
                self._limit, self._top = None, 0

    def _rest_for(self, seconds: float) -> None:
        now = self._clock()
        begun = max(self._not_before or now, now)
        self._not_before = max(begun, now + seconds)
        self._waited_in_vain += self._not_before - begun


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
