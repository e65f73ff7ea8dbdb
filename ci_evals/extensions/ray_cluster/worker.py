"""A worker: plays trials of a run in a process elsewhere, and tells the run what becomes of them."""

import asyncio
import os
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from ci_evals.adapters.processes.environments import OF_THE_MACHINE
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Slowdown
from ci_evals.domain.errors import CiEvalsError, exhausted
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import ModelAnswered, StillWaiting, TurnPlayed
from ci_evals.extensions.ray_cluster.messages import (
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
from ci_evals.runner import LocalPlayer
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.players import BuiltPlayers, build_players
from ci_evals.wiring.waits import report_waits

_SILENCE_SECONDS = 5.0
"""The longest time without news, so that the run knows that the worker is alive."""


class TrialWorker:
    """Plays trials side by side in one event loop. Implements the port `Worker`."""

    def __init__(self) -> None:
        self._news: list[News] = []
        self._filled = asyncio.Event()
        self._stack, self._stop = AsyncExitStack(), Stop()
        self._player: LocalPlayer | None = None
        self._players: BuiltPlayers | None = None
        self._redactor = Redactor()
        self._printed = ""
        self._tasks = set[asyncio.Task[None]]()

    async def order(self, orders: Sequence[Order]) -> None:
        """Carry out orders, or begin to."""
        for order in orders:
            match order:
                case SetUp():
                    self._begin(self._set_up(order))
                case Play(trial):
                    self._begin(self._play(trial))
                case End():
                    self._end(order)
                case Heed(service, slowdown):
                    if self._players is not None:
                        self._players.limiters()[service].on_remote_slowdown(slowdown)
                case Join(service, reduction, pause):
                    if self._players is not None:
                        self._players.limiters()[service].join(reduction, pause)
                case Leave():
                    self._begin(self._leave())
                case _:
                    assert_never(order)

    async def news(self) -> Sequence[News]:
        """Return the news since the last call, as soon as there are any; after some seconds none."""
        try:
            async with asyncio.timeout(_SILENCE_SECONDS):
                await self._filled.wait()
        except TimeoutError:
            return ()
        self._filled.clear()
        news, self._news = self._news, []
        return news

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self._filled.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _set_up(self, setup: SetUp) -> None:
        os.environ.update(_environment(setup.environ))
        self._redactor = Redactor(setup.keys, setup.values)
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ci-evals-"))
        log = Path(folder, "agent.log")
        self._stack.callback(self._read_log, log)  # written by then, and not yet gone with its folder
        connections = replace(setup.connections, environ=os.environ, agent_log=log)
        try:
            building = build_players(setup.plan, connections, self._redactor)
            players = await self._stack.enter_async_context(building)
        except CiEvalsError as error:
            self._tell(CannotPlay(self._redactor.text(str(error))))
            return
        except Exception as error:  # noqa: BLE001  # the run says that it is a bug
            self._tell(CannotPlay(self._redactor.text(f"{type(error).__name__}: {error}")))
            return
        for number, limiter in enumerate(players.limiters()):
            limiter.share(setup.workers, partial(self._tell_slowdown, number, limiter))
        await self._stack.enter_async_context(report_waits(players.waits, self._hear))
        self._players, self._stop.on_request = players, self._tell_stop
        self._player = LocalPlayer(
            setup.plan,
            players.participants,
            setup.options,
            self._redactor,
            self._hear,
            self._stop,
        )
        self._tell(Ready())

    def _hear(self, event: object) -> None:
        if isinstance(event, TurnPlayed | ModelAnswered | StillWaiting):
            self._tell(event)

    def _tell_slowdown(self, service: int, limiter: RateLimiter, slowdown: Slowdown) -> None:
        self._tell(Limited(service, slowdown, limiter.reduction))

    def _tell_stop(self) -> None:
        if self._stop.reason is not None:
            self._tell(Stopped(self._redactor.text(self._stop.reason), self._stop.outage))

    async def _play(self, trial: Trial) -> None:
        if self._player is None:
            return
        try:
            grade = await self._player.converse(trial)
            self._tell(ConversationEnded(trial))
            result = await grade()
        except Exception as error:  # noqa: BLE001  # the run ends over it, in order
            why = exhausted(error)
            text = why or f"{type(error).__name__}: {error}"
            self._tell(Failed(trial, self._redactor.text(text), exhausted=why is not None))
        else:
            self._tell(Graded(trial, result.packed()))

    def _end(self, order: End) -> None:
        self._stop.on_request = lambda: None  # the run knows
        if order.interrupted:
            self._stop.interrupt()
        elif order.reason is not None:
            self._stop.request(order.reason, cut_off=order.cut_off)

    async def _leave(self) -> None:
        await self._stack.aclose()
        self._tell(Left(self._printed))

    def _read_log(self, log: Path) -> None:
        if log.exists():
            self._printed = log.read_text(errors="replace")


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the run's variables, without those that each machine has of its own."""
    return {
        name: value
        for name, value in environ.items()
        if name not in OF_THE_MACHINE and not name.startswith("RAY_")
    }
