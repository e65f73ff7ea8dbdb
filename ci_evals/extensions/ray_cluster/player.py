"""Plays trials by workers of a cluster; a worker that is lost loses only what it had under way."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, assert_never

from ci_evals.adapters.processes.environments import environment_for_worker
from ci_evals.adapters.transport.rate_limiter import Slowdown
from ci_evals.adapters.transport.reduction import Reduction
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import Listener, ModelAnswered, StillWaiting, TurnPlayed
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.ray_cluster.cluster import Cluster, RemoteWorker, WorkerLostError
from ci_evals.extensions.ray_cluster.messages import (
    AboutWorker,
    CannotPlay,
    ConversationEnded,
    End,
    Failed,
    Graded,
    Heed,
    Join,
    Leave,
    Left,
    Limited,
    News,
    Order,
    Play,
    Ready,
    SetUp,
    Stopped,
)
from ci_evals.extensions.ray_cluster.worker import TrialWorker
from ci_evals.job.job import Job
from ci_evals.runner import GradeTrial, interruption
from ci_evals.stop import Stop
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.players import BuiltPlayers
from ci_evals.wiring.waits import LONG_SECONDS

JOIN_SECONDS = 15.0
"""The time that the run waits for further workers once one is ready. Later ones join it."""
SILENCE_SECONDS = 60.0
"""The time without any news after which a worker is taken for lost. It has some every few seconds."""
MOST_LOSSES = 3
"""A trial is not played again once so many workers have been lost while it was under way: it may be why."""
_CUT_OFF_SECONDS = 3.0
"""The time for workers to hand over what they had when they were told to end: reports are still to come."""
_LEAVE_SECONDS = 5.0


class WorkerBugError(RuntimeError):
    """A bug of ours in a worker."""


@dataclass
class _UnderWay:
    """A trial that is played by a worker."""

    trial: Trial
    began: float
    talked: asyncio.Event
    """Set when its conversation has ended."""
    result: "asyncio.Future[TrialResult]"
    talking: bool = False
    """True while it holds a slot for a conversation."""
    losses: int = 0


@dataclass(eq=False)
class _Link:
    """A worker as the run sees it."""

    number: int
    worker: RemoteWorker
    orders: list[Order] = field(default_factory=list)
    """Not yet sent."""
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    """Set if there are orders to send."""
    under_way: dict[Trial, _UnderWay] = field(default_factory=dict)
    ready: bool = False
    leaving: bool = False
    """True if it was told that no more trials come."""
    left: bool = False

    def give(self, order: Order) -> None:
        """Send an order as soon as possible."""
        self.orders.append(order)
        self.waiting.set()


class ClusterPlayer:
    """Plays trials by workers. Implements `TrialPlayer`. `start` comes first, `close` last."""

    def __init__(self, cluster: Cluster, setup: SetUp, players: BuiltPlayers, stop: Stop) -> None:
        """`players` are those of this process, whose rate limiters heed what workers meet."""
        self.listen: Listener = lambda _: None
        """Hears of what workers do."""
        self._cluster, self._setup, self._players, self._stop = cluster, setup, players, stop
        self._talking = asyncio.Semaphore(setup.options.parallel)
        self._links: list[_Link] = []
        self._numbers = count(1)
        self._starting = 0
        self._tasks = set[asyncio.Task[None]]()
        self._changed = asyncio.Event()
        """Set when a worker is ready, is lost or has left, and when the run is to end."""
        self._losses, self._losses_in_row, self._replayed = 0, 0, 0
        self._reductions: dict[int, Reduction] = {}
        """By the service's number: how far the worker that last met its limit had reduced its calls."""
        self._failure: str | None = None
        """The reason why the last worker could not be started."""
        self._waits_told: dict[str, float] = {}

    async def start(self) -> None:
        """Start the workers, and wait until they can play trials.

        Raises:
            UsageError: none can.
        """
        self._stop.on_request = self._pass_on_stop
        for number, limiter in enumerate(self._players.limiters()):
            limiter.share(self._setup.workers, partial(self._pass_on_slowdown, number, None))
        for _ in range(self._setup.workers):
            self._start_worker()
        await self._wait_for(lambda: bool(self._ready) or not (self._starting or self._links))
        with suppress(TimeoutError):
            async with asyncio.timeout(JOIN_SECONDS):
                await self._wait_for(lambda: len(self._ready) == self._starting + len(self._links))
        if not self._ready and not self._stop.requested:
            raise UsageError(
                f"`cluster={self._cluster.name}`: {self._failure or 'no worker could be started'}"
            )

    async def close(self) -> None:
        """End all workers, and keep what their agents have printed."""
        self._stop.on_request = lambda: None
        for link in self._links:
            link.leaving = True
            link.give(Leave())
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._wait_for(lambda: not self._links)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def notes(self) -> tuple[str, ...]:
        """Return a sentence about workers that were lost."""
        if not self._losses:
            return ()
        workers = "1 worker was" if self._losses == 1 else f"{self._losses} workers were"
        trials = "1 trial" if self._replayed == 1 else f"{self._replayed} trials"
        return (f"cluster: {workers} lost; {trials} under way there started over on another worker",)

    async def converse(self, trial: Trial) -> GradeTrial:
        """Have a worker play the trial; another one from the start if the first is lost."""
        result = asyncio.get_running_loop().create_future()
        playing = _UnderWay(trial, time.perf_counter(), asyncio.Event(), result)
        self._begin(self._place(playing))
        await playing.talked.wait()
        if self._setup.plan.lock_of(trial) is not None:
            await asyncio.wait([result])  # until then it may have to start over, under the same lock
        return lambda: result

    async def _place(self, playing: _UnderWay) -> None:
        """Give the trial to the worker with the fewest under way, once there is one."""
        await self._talking.acquire()
        playing.talking = True
        await self._wait_for(lambda: bool(self._ready) or self._stop.requested)
        if self._stop.requested:
            self._give_up(playing)
            return
        link = min(self._ready, key=lambda link: len(link.under_way))
        link.under_way[playing.trial] = playing
        link.give(Play(playing.trial))

    @property
    def _ready(self) -> list[_Link]:
        return [link for link in self._links if link.ready]

    def _start_worker(self) -> None:
        self._starting += 1
        self._begin(self._run_worker())

    async def _run_worker(self) -> None:
        """Start a worker, and listen to it until it leaves or is lost."""
        try:
            worker = await self._cluster.start(TrialWorker)
            link = _Link(next(self._numbers), worker)
            self._links.append(link)
        except WorkerLostError as error:
            self._failure = str(error)
            return
        finally:
            self._starting -= 1
            self._check_workers()
        link.give(self._setup)
        posting = asyncio.create_task(self._stop.stop_on_error(_post(link)))
        try:
            while not link.left:
                async with asyncio.timeout(SILENCE_SECONDS):
                    news = await worker.news()
                for one in news:
                    self._hear(link, one)
        except (WorkerLostError, TimeoutError):
            self._count_loss(link)
        finally:
            posting.cancel()
            worker.end()
            self._links.remove(link)
            for playing in link.under_way.values():
                self._start_over(playing)
            self._check_workers()

    def _hear(self, link: _Link, news: News) -> None:
        match news:
            case TurnPlayed() | ModelAnswered():
                self.listen(news)
            case ConversationEnded(trial):
                self._end_talk(link.under_way[trial])
            case Graded(trial, result):
                self._losses_in_row = 0
                self._end(link.under_way.pop(trial), result)
            case Failed(trial, error, exhausted):
                playing = link.under_way.pop(trial)
                if exhausted:
                    self._stop.request(f"on a machine of the cluster {error}", outage=True)
                    self._give_up(playing)
                else:
                    self._end(playing, WorkerBugError(f"in a worker of the cluster: {error}"))
            case _:
                self._hear_of_worker(link, news)

    def _hear_of_worker(self, link: _Link, news: AboutWorker) -> None:
        match news:
            case Ready():
                limiters = self._players.limiters()
                for service, reduction in self._reductions.items():
                    link.give(Join(service, reduction, limiters[service].pause))
                link.ready = True
                self._changed.set()
            case CannotPlay(reason):
                self._failure, link.left = reason, True
            case StillWaiting():
                self._tell_wait(news)
            case Stopped(reason, outage):
                self._stop.request(reason, outage=outage)
            case Limited(service, slowdown, reduction):
                self._reductions[service] = reduction
                self._players.limiters()[service].on_remote_slowdown(slowdown)
                self._pass_on_slowdown(service, link, slowdown)
            case Left(printed):
                link.left = True
                self._players.agents.log(f"worker {link.number}", printed)
            case _:
                assert_never(news)

    def _end_talk(self, playing: _UnderWay) -> None:
        """Free the slot of a conversation that has ended or was cut off."""
        if playing.talking:
            playing.talking = False
            self._talking.release()
        playing.talked.set()

    def _end(self, playing: _UnderWay, result: TrialResult | Exception) -> None:
        if not playing.result.done():
            if isinstance(result, Exception):
                playing.result.set_exception(result)
            else:
                playing.result.set_result(result)
        self._end_talk(playing)

    def _give_up(self, playing: _UnderWay) -> None:
        """End a trial without what its worker had of it: it is played when the run is resumed."""
        seconds = time.perf_counter() - playing.began
        self._end(
            playing,
            TrialResult(
                index=playing.trial.index,
                status=EndState.INTERRUPTED,
                error=interruption(self._stop),
                duration_seconds=seconds,
            ),
        )

    def _start_over(self, playing: _UnderWay) -> None:
        """Have another worker play a trial whose worker was lost."""
        playing.losses += 1
        if playing.losses >= MOST_LOSSES:
            test = self._setup.plan.test_of(playing.trial).name
            self._stop.request(
                f"{playing.losses} workers of the cluster were lost while they played the test {test!r}",
                outage=True,
            )
        if self._stop.requested:
            self._give_up(playing)
            return
        if playing.talking:
            playing.talking = False
            self._talking.release()
        self._replayed += 1
        self._begin(self._place(playing))

    def _count_loss(self, link: _Link) -> None:
        """Replace a lost worker, unless workers do nothing but get lost."""
        if link.leaving or self._stop.cutting:
            return
        self._losses += 1
        self._losses_in_row += 1
        if self._losses_in_row > MOST_LOSSES * self._setup.workers:
            self._stop.request(
                f"{self._losses_in_row} workers of the cluster in a row were lost, and no trial was finished",
                outage=True,
            )
        elif not self._stop.requested:
            self._start_worker()

    def _check_workers(self) -> None:
        """End the run if nobody is left to play it."""
        if not (self._links or self._starting) and self._losses:
            why = f": {self._failure}" if self._failure else ""
            self._stop.request(f"the cluster has no workers left{why}", outage=True)
        self._changed.set()

    def _pass_on_stop(self) -> None:
        """Tell all workers that the run is to end."""
        stop = self._stop
        for link in self._links:
            link.give(End(stop.interrupted, stop.reason, stop.cutting))
        if stop.cutting:
            self._begin(self._cut_off())
        self._changed.set()

    async def _cut_off(self) -> None:
        """End what workers have not handed over in time: reports are yet to be written."""
        await asyncio.sleep(_CUT_OFF_SECONDS)
        for link in self._links:
            for playing in link.under_way.values():
                self._give_up(playing)

    def _pass_on_slowdown(self, service: int, source: _Link | None, slowdown: Slowdown) -> None:
        for link in self._links:
            if link is not source:
                link.give(Heed(service, slowdown))

    def _tell_wait(self, event: StillWaiting) -> None:
        """Tell of a wait, which all workers may have, once."""
        now = time.monotonic()
        if now - self._waits_told.get(event.neighbor, -LONG_SECONDS) >= LONG_SECONDS:
            self._waits_told[event.neighbor] = now
            self.listen(event)

    async def _wait_for(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._stop.stop_on_error(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def played_on(
    cluster: Cluster, job: Job, connections: Connections, players: BuiltPlayers, stop: Stop
) -> AsyncIterator[ClusterPlayer]:
    """Play trials of the job on a cluster: yields a player whose workers are ready, and ends them.

    Raises:
        UsageError: no worker can play it.
    """
    setup = SetUp(
        plan=job.plan,
        # The environment comes by itself, and the file for agents' output is here.
        connections=replace(connections, environ={}, agent_log=None),
        options=job.options,
        keys=job.redactor.keys,
        values=job.redactor.values,
        environ=environment_for_worker(connections.environ),
        workers=max(1, min(cluster.processors(), job.options.parallel, len(job.plan.trials))),
    )
    player = ClusterPlayer(cluster, setup, players, stop)
    try:
        await player.start()
        yield player
    finally:
        await player.close()


async def _post(link: _Link) -> None:
    """Send the orders of a worker, all that have come together at once."""
    with suppress(WorkerLostError):  # who listens to it learns that too
        while True:
            await link.waiting.wait()
            link.waiting.clear()
            orders, link.orders = link.orders, []
            await link.worker.order(orders)
