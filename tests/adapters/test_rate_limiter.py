"""The rate limiter: order, limits, waits and retries, with a clock that moves only while calls wait."""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from math import ceil
from typing import Any

import httpx2
import pytest
import world
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Slowdown
from ci_evals.adapters.transport.retry import RetryBudget


@dataclass(frozen=True)
class Answer:
    headers: httpx2.Headers = field(default_factory=httpx2.Headers)


class Failed(Exception):  # noqa: N818  # what happened, not what it is
    """The failure of a call."""


def limited(value: float | None = None) -> RetryableError:
    return RetryableError(Failed("limited"), 429, value)


def sharing(processes: int, **settings: Any) -> Iterator[RateLimiter]:
    """The limiters of processes that share a service, in turn."""
    limiters = [RateLimiter(**settings) for _ in range(processes)]

    def pass_on(own: RateLimiter, slowdown: Slowdown) -> None:
        for other in limiters:
            if other is not own:
                other.on_remote_slowdown(slowdown)

    if processes > 1:
        for limiter in limiters:
            limiter.share(processes, partial(pass_on, limiter))
    return cycle(limiters)


def run_clients(loop: "_Loop", limiters: Iterator[RateLimiter], attempt: Any, clients: int, calls: int):
    """Let clients call at the same time, each by one limiter and one call after the other."""

    async def client() -> None:
        limiter = next(limiters)
        for _ in range(calls):
            await limiter.send(attempt)

    loop.run(*(client() for _ in range(clients)))


BROKEN = RetryableError(Failed("broken"), 500)


class PendingCalls:
    """Calls that end when a test ends them, in the order in which they went out."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter, self.sent = limiter, list[str]()
        self.calls: list[asyncio.Task[Answer]] = []
        self._open: dict[str, asyncio.Future[Answer]] = {}

    async def start(self, count: int) -> "PendingCalls":
        """Make calls, named by letters."""
        for number in range(count):
            self.call(chr(ord("a") + number))
        await let_tasks_run()
        return self

    def call(self, name: str) -> None:
        async def attempt(_: int) -> Answer:
            self.sent.append(name)
            self._open[name] = asyncio.get_running_loop().create_future()
            try:
                return await self._open[name]
            finally:
                del self._open[name]

        self.calls.append(asyncio.create_task(self.limiter.send(attempt)))

    @property
    def under_way(self) -> list[str]:
        return list(self._open)

    async def ends(self, *names: str, failure: RetryableError | None = None) -> None:
        """End calls, with a failure or without, and let the limiter go on."""
        for name in names:
            if failure:
                self._open[name].set_exception(failure)
            else:
                self._open[name].set_result(Answer())
        await let_tasks_run()

    async def finish(self) -> None:
        """End all other calls without a failure."""
        while self.under_way:
            await self.ends(*self.under_way)
        await asyncio.gather(*self.calls)


async def let_tasks_run() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


async def test_only_configured_maximum_limits_calls_before_first_refusal():
    wire = await PendingCalls(world.limiter()).start(26)
    assert len(wire.under_way) == 26
    await wire.finish()
    assert (wire.limiter.at_a_time, wire.limiter.note("it")) == (None, None)
    wire = await PendingCalls(world.limiter(most=2)).start(4)
    assert wire.under_way == ["a", "b"]
    await wire.ends("b")
    assert wire.under_way == ["a", "c"]
    await wire.finish()
    assert wire.sent == ["a", "b", "c", "d"]


async def test_rare_rate_limit_refusals_delay_only_the_refused_calls():
    time = ManualClock()
    wire = await PendingCalls(time.limiter()).start(26)
    await wire.ends("a", failure=limited())
    await wire.ends("b", failure=limited(7))
    assert (wire.limiter.at_a_time, time.sleepers) == (None, [0.25, pytest.approx(7.35)])
    wire.call("more")
    await let_tasks_run()
    assert len(wire.under_way) == 25
    await time.passes(1)
    assert wire.sent[26:] == ["more", "a"]
    await time.passes(7)
    assert wire.sent[28:] == ["b"]
    await wire.finish()
    assert wire.limiter.note("it") == "it limited the rate 2 times (429): calls waited 8 s in total"
    # Even if so few calls are under way that one of them is more than a tenth.
    wire = PendingCalls(world.limiter())
    for _ in range(24):
        await wire.start(1)
        await wire.finish()
    await wire.start(3)
    await wire.ends("a", "b", "c", failure=limited())
    assert wire.limiter.at_a_time is None
    await wire.ends("a", failure=limited())
    assert wire.limiter.at_a_time == 2
    await wire.finish()


async def test_refusals_lower_the_limit_by_one_and_requested_waits_halve_it():
    """But at most by half until calls that were sent later have ended."""
    wire = await PendingCalls(world.limiter()).start(8)
    await wire.ends("a", "b", "c", failure=limited())
    assert wire.limiter.at_a_time == 5
    await wire.ends("d", "e", "f", "g", failure=limited())
    assert wire.limiter.at_a_time == 4
    await wire.ends("a", failure=limited())
    assert wire.limiter.at_a_time == 3
    await wire.finish()
    note = wire.limiter.note("the agent")
    assert note == "the agent limited the rate 8 times (429): calls waited 2 s in total, at least 3 at a time"
    wire = await PendingCalls(world.limiter()).start(8)
    await wire.ends("a", "b", "c", failure=limited(1))
    assert wire.limiter.at_a_time == 4
    await wire.ends("d", "e", "f", "g", "h")
    assert wire.under_way == ["a", "b", "c"]
    await wire.ends("a", failure=limited(1))
    assert wire.limiter.at_a_time == 2
    await wire.finish()
    # An overloaded agent may have received the message; fewer of the next ones go out at once.
    wire = await PendingCalls(world.limiter()).start(8)
    await wire.ends("a", failure=RetryableError(Failed("overloaded"), 529, repeatable=False))
    with pytest.raises(Failed, match="overloaded"):
        await wire.calls.pop(0)
    assert (wire.limiter.at_a_time, wire.sent.count("a")) == (7, 1)
    await wire.finish()


async def test_eight_successes_raise_concurrency_limit_by_one():
    wire = await PendingCalls(world.limiter()).start(6)
    await wire.ends("f", failure=limited(1))
    assert wire.limiter.at_a_time == 3
    for number in range(40):
        wire.call(f"more {number}")
    await let_tasks_run()
    seen = []
    while len(wire.under_way) < 10:
        seen.append(len(wire.under_way))
        await wire.ends(wire.under_way[0])
    assert seen == [5, 4, *[3] * 6, *[4] * 8, *[5] * 8]
    await wire.finish()
    assert wire.limiter.at_a_time is None


async def test_all_calls_wait_twice_as_long_each_time_or_for_the_longest_requested_wait():
    time = ManualClock()
    wire = await PendingCalls(time.limiter()).start(2)
    await wire.ends("a", "b", failure=limited())
    assert (wire.limiter.at_a_time, time.sleepers) == (1, [0.25, 0.25])
    waits = []
    for _ in range(4):
        await time.passes(time.sleepers[0])
        await wire.ends(*wire.under_way, failure=limited())
        waits.append(time.sleepers)
    assert waits == [[0.5], [1], [2], [4]]
    await time.passes(4)
    await wire.ends("a")
    await time.passes(1)
    await wire.finish()
    # Later calls wait too; and the refused one goes out first, since it was made first.
    time = ManualClock()
    wire = await PendingCalls(time.limiter()).start(2)
    await wire.ends("a", failure=limited(7))
    assert time.sleepers == [pytest.approx(7.35)]
    wire.call("c")
    await wire.ends("b")
    assert wire.sent == ["a", "b"]
    await time.passes(7)
    assert wire.sent == ["a", "b"]
    await time.passes(1)
    assert wire.sent == ["a", "b", "a"]
    await wire.finish()
    assert wire.sent == ["a", "b", "a", "c"]
    note = wire.limiter.note("it")
    assert note == "it limited the rate once (429): calls waited 15 s in total, at least 1 at a time"
    time = ManualClock()
    wire = await PendingCalls(time.limiter()).start(3)
    await wire.ends("a", failure=limited(10))
    await wire.ends("b", failure=limited(20))
    await wire.ends("c", failure=limited(1))
    await time.passes(11)
    assert len(wire.sent) == 3
    await time.passes(10)
    assert wire.sent[3:] == ["a"]
    await wire.finish()


async def test_calls_under_a_lowered_limit_are_spread_evenly():
    """Four at a time that take two seconds each: one every half second, no burst after the wait."""
    time = ManualClock()
    wire = await PendingCalls(time.limiter()).start(8)
    await time.passes(2)
    await wire.ends("a", failure=limited(1))
    await wire.ends("b", "c", "d", "e", "f", "g", "h")
    for number in range(4):
        wire.call(f"more {number}")
    await let_tasks_run()
    seen = []
    for _ in range(6):
        await time.passes(0.5)
        seen.append(len(wire.under_way))
    assert seen == [0, 0, 2, 3, 4, 4]
    while not all(call.done() for call in wire.calls):
        await wire.ends(*wire.under_way)
        await time.passes(1)


async def test_rate_limits_and_server_errors_have_separate_retry_budgets():
    waits: list[float] = []
    limiter = world.limiter(waits, RetryBudget(broken=2, limited=3))
    left = [limited(5), BROKEN, limited(5), BROKEN, limited(5), limited(5)]
    attempts = []

    async def attempt(number: int) -> Answer:
        attempts.append(number)
        raise left.pop(0)

    with pytest.raises(Failed, match="limited"):
        await limiter.send(attempt)
    assert attempts == [1, 2, 3, 4, 5, 6]
    assert [wait for wait in waits if wait] == [5.25, 0.25, 5.25, 2, 5.25]
    left, attempts = [BROKEN] * 3, []
    with pytest.raises(Failed, match="broken"):
        await limiter.send(attempt)
    assert attempts == [1, 2, 3]

    async def bug(_: int) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await limiter.send(bug)


async def test_cancelled_calls_release_the_queue():
    time = ManualClock()
    wire = await PendingCalls(time.limiter(max_concurrent=2)).start(8)
    for name in "cdb":  # first in line, then the next first, then one under way
        wire.calls[ord(name) - ord("a")].cancel()
        await let_tasks_run()
    assert wire.under_way == ["a", "e"]
    await wire.ends("a", failure=limited(9))
    await wire.ends("e")
    wire.calls[0].cancel()
    await let_tasks_run()
    await time.passes(10)
    assert wire.under_way == ["f"]
    while wire.under_way:
        await wire.ends(*wire.under_way)
        await time.passes(1)
    assert [call.cancelled() for call in wire.calls] == [True, True, True, True, False, False, False, False]


def test_limiter_can_be_used_in_several_event_loops():
    limiter = world.limiter(most=2)

    async def interrupted():
        wire = PendingCalls(limiter)
        await wire.start(5)
        await wire.ends("a", failure=limited(3))

    async def complete():
        wire = PendingCalls(limiter)
        await wire.start(5)
        await wire.finish()
        return wire.sent

    asyncio.run(interrupted())
    assert [len(asyncio.run(complete())) for _ in range(2)] == [5, 5]


LAST = Answer(httpx2.Headers({"RateLimit-Remaining": "0", "RateLimit-Reset": "9"}))
FATES = [*[Answer()] * 3, LAST, limited(), limited(5), BROKEN, asyncio.CancelledError()]


@given(st.lists(st.sampled_from(FATES), max_size=60), st.integers(1, 12), st.sampled_from([None, 1, 3]))
def test_rate_limiter_loses_no_call_and_never_exceeds_its_maximum(fates, parallel, most):
    limiter = world.limiter(most=most, budget=RetryBudget(broken=1, limited=2))
    left, under_way = iter(fates), 0

    async def attempt(_):
        nonlocal under_way
        under_way += 1
        assert limiter.at_a_time is None or most is None or under_way <= most
        try:
            await asyncio.sleep(0)
            fate = next(left, Answer())
            if isinstance(fate, BaseException):
                raise fate
            return fate
        finally:
            under_way -= 1

    async def all_calls():
        calls = (limiter.send(attempt) for _ in range(parallel * 3))
        async with asyncio.timeout(300):
            return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(all_calls())
    assert under_way == 0
    assert all(isinstance(one, Answer | Failed | asyncio.CancelledError) for one in outcomes)


@pytest.mark.parametrize("processes", [1, 4])
@pytest.mark.parametrize("seconds", [0.05, 0.5])
@pytest.mark.parametrize("says", ["exactly", "in whole seconds", "nothing"])
def test_hundred_clients_of_rate_limited_server_lose_no_call_and_little_time(says, seconds, processes):
    served = refused = 0
    loop = _Loop()
    level, at, chance = 50.0, loop.time(), random.Random(1)
    limiters = sharing(processes, clock=loop.time, jitter=chance.random)

    async def attempt(_: int) -> Answer:
        nonlocal level, at, served, refused
        await asyncio.sleep(seconds * 0.1)
        level, at = min(50.0, level + (loop.time() - at) * 50), loop.time()
        if level < 1:
            refused += 1
            lack = (1 - level) / 50
            raise limited({"exactly": lack, "in whole seconds": ceil(lack)}.get(says))
        level -= 1
        served += 1
        await asyncio.sleep(seconds * chance.uniform(0.4, 1.4))
        return Answer()

    began = loop.time()
    run_clients(loop, limiters, attempt, clients=100, calls=15)
    assert served == 1500
    assert loop.time() - began < (1500 - 50) / 50 * (1.3 if processes == 1 else 1.7)
    assert refused < (300 if processes == 1 else 500)


@pytest.mark.parametrize("processes", [1, 4])
@pytest.mark.parametrize("says", [True, False])
def test_fifty_calls_at_five_per_minute_finish_within_eleven_minutes(says, processes):
    loop, chance, minute, left = _Loop(), random.Random(1), -1, 0
    limiters = sharing(processes, clock=loop.time, jitter=chance.random)

    async def attempt(_: int) -> Answer:
        nonlocal minute, left
        await asyncio.sleep(0.1)
        now, second = divmod(loop.time(), 60)
        if now != minute:
            minute, left = now, 5
        if not left:
            raise limited(ceil(60 - second) if says else None)
        left -= 1
        return Answer()

    run_clients(loop, limiters, attempt, clients=50, calls=1)
    assert loop.time() < 11 * 60


def test_refusal_in_one_process_limits_all_processes():
    loop = _Loop()
    limiters = sharing(2, clock=loop.time)
    one, other = next(limiters), next(limiters)
    under_way = 0

    async def attempt(number: int) -> Answer:
        nonlocal under_way
        under_way += 1
        await asyncio.sleep(1)
        under_way -= 1
        if number == 1:
            raise limited(9)
        return Answer()

    async def crowd() -> None:
        refused = [asyncio.create_task(one.send(attempt)) for _ in range(8)]
        others = [asyncio.create_task(other.send(lambda _: attempt(2))) for _ in range(8)]
        await asyncio.gather(*others)
        limits = (one.at_a_time, other.at_a_time)
        assert None not in limits
        assert sum(limits) <= 16 // 2
        began = loop.time()
        await other.send(lambda _: attempt(2))
        assert loop.time() - began > 9
        assert under_way <= 16 // 2
        await asyncio.gather(*refused)

    loop.run(crowd())


def test_rate_limiter_that_joins_later_adopts_shared_limit_and_pause():
    loop = _Loop()
    limiters = sharing(2, clock=loop.time)
    one, late = next(limiters), RateLimiter(clock=loop.time)
    under_way, most, began_at = 0, 0, list[float]()

    async def refused(number: int) -> Answer:
        await asyncio.sleep(1)
        if number == 1:
            raise limited(9)
        return Answer()

    async def attempt(_: int) -> Answer:
        nonlocal under_way, most
        began_at.append(loop.time())
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return Answer()

    async def crowd() -> None:
        calls = [asyncio.create_task(one.send(refused)) for _ in range(8)]
        await asyncio.sleep(2)
        late.share(2, lambda _: None)
        late.join(one.reduction, one.pause)
        assert late.at_a_time == one.at_a_time == 3
        await asyncio.gather(*calls, *(late.send(attempt) for _ in range(8)))

    loop.run(crowd())
    assert min(began_at) >= 1 + 9
    assert most <= 3 + 1  # each eight successes let one more go


@pytest.mark.parametrize("processes", [1, 4])
@pytest.mark.parametrize("value", [None, 1, 60, 10 * 365 * 86400])
def test_calls_fail_together_after_minutes_of_constant_refusals(value, processes):
    """Fifty at a time: calls fail after the minutes that all have waited together, not one by one."""
    loop, ended, well = _Loop(), list[float](), False
    limiters = sharing(processes, clock=loop.time, jitter=lambda: 0.5)

    async def attempt(_: int) -> Answer:
        await asyncio.sleep(0.2)
        if well:
            return Answer()
        raise limited(value)

    async def conversations() -> None:
        limiter = next(limiters)
        for _ in range(10):
            with pytest.raises(Failed):
                await limiter.send(attempt)
            ended.append(loop.time())

    async def later() -> None:
        nonlocal well
        await asyncio.gather(*(conversations() for _ in range(50)))
        well = True
        limiter = next(limiters)
        await limiter.send(attempt)
        well, began = False, loop.time()
        with pytest.raises(Failed):  # after the whole budget again
            await limiter.send(attempt)
        assert loop.time() - began > 60

    loop.run(later())
    assert len(ended) == 500
    assert ended[99] < 11 * 60
    assert ended[-1] < 15 * 60


def test_rare_refusals_hardly_delay_a_hundred_clients():
    loop, chance = _Loop(), random.Random(1)
    limiters = sharing(1, clock=loop.time, jitter=chance.random)

    async def attempt(_: int) -> Answer:
        if chance.random() < 0.05:
            await asyncio.sleep(0.01)
            raise limited()
        await asyncio.sleep(0.25)
        return Answer()

    run_clients(loop, limiters, attempt, clients=100, calls=40)
    assert loop.time() < 40 * 0.25 * 1.25


def test_rate_limiter_throughput_tolerates_late_timers():
    """If each wait lasts 30 ms too long, more calls go out after it."""

    def seconds(late: float) -> float:
        loop, sent = _Loop(), 0

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds + late)

        limiters = sharing(1, clock=loop.time, sleep=sleep, jitter=lambda: 0.5)

        async def attempt(_: int) -> Answer:
            nonlocal sent
            sent += 1
            await asyncio.sleep(0.2)
            if 200 < sent <= 250:
                raise limited(0.1)
            return Answer()

        run_clients(loop, limiters, attempt, clients=100, calls=10)
        return loop.time()

    assert seconds(late=0.03) < seconds(late=0.0) * 1.2


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self._now = 0.0
        self._sleeping: list[tuple[float, float, asyncio.Future[None]]] = []

    def limiter(self, **options: Any) -> RateLimiter:
        return RateLimiter(sleep=self._sleep, clock=lambda: self._now, jitter=lambda: 0.5, **options)

    @property
    def sleepers(self) -> list[float]:
        """The seconds of each wait that still lasts."""
        return [seconds for _, seconds, future in self._sleeping if not future.done()]

    async def passes(self, seconds: float) -> None:
        end = self._now + seconds
        while due := [one for one in self._sleeping if one[0] <= end and not one[2].done()]:
            until, _, future = min(due, key=lambda one: one[0])
            self._now = max(self._now, until)
            future.set_result(None)
            await let_tasks_run()
        self._now = end
        await let_tasks_run()

    async def _sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleeping.append((self._now + seconds, seconds, future))
        await future


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose timers take no time."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = selectors.SelectSelector()
        select = selector.select
        self._look: Callable[[], Any] = lambda: select(0)
        selector.select = self._pass  # type: ignore[method-assign]
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def run(self, *work: Coroutine[Any, Any, None]) -> None:
        async def all_work() -> None:
            await asyncio.gather(*work)

        try:
            self.run_until_complete(all_work())
        finally:
            self.close()

    def _pass(self, timeout: float | None = None) -> Any:
        self._now += timeout or 0.0
        return self._look()
