"""The side of the agents: their code is imported, called and read here, and plain JSON leaves.

What the code prints goes to standard error, whatever it writes to; messages use copies of the pipes that the
process was started with. Where the run is gone, so is this process, and all that it has started.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from ci_evals.adapters.processes.descendants import MARK, kill_marked
from ci_evals.adapters.trace_context import TraceContext, carried
from ci_evals.agents.code.foreign_code import (
    CodeError,
    CodeTimeoutError,
    ForeignMessage,
    shared_loop_answers,
    shares_loop,
)
from ci_evals.agents.python import loading
from ci_evals.agents.python.agent import CodeAgent
from ci_evals.agents.python.hosting import wire
from ci_evals.agents.python.hosting.wire import Message
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.ports import id_of
from ci_evals.support.redaction import Redactor

_MARK = os.environ.get(MARK)
_CHUNK = 1 << 16
_LAST_SECONDS = 5.0
"""The longest that code may take for its end (`atexit`, threads) once the run has closed the pipe."""
_BLOCKED_SECONDS = 5.0
"""The longest that the shared event loop may be blocked after a turn has timed out."""


def main() -> None:
    """Serve the agents of a run until it closes the pipe."""
    reader, writer = os.dup(0), os.dup(1)  # copies are not inherited by programs that an agent starts
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    asyncio.run(_Child(writer).serve(reader))
    _end_started()  # the run does so too, unless it was killed


class _Child:
    def __init__(self, writer: int) -> None:
        self._writer = writer
        self._agents: list[CodeAgent] = []
        self._sessions: dict[int, tuple[CodeAgent, Any]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._do: dict[str, Callable[[Message], Awaitable[Any]]] = {
            "load": self._load,
            "open": self._open,
            "send": self._send,
            "state": self._state,
            "close": self._close,
        }

    async def serve(self, reader: int) -> None:
        """Answer questions, many at a time, until there will be no more."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()

        def listen() -> None:
            rest = b""
            while data := _read(reader):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(self._take, line)
            loop.call_soon_threadsafe(over.set)
            time.sleep(_LAST_SECONDS)
            _end_all()

        threading.Thread(target=listen, daemon=True, name="ci-evals").start()
        await over.wait()

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if message["do"] == "cancel":
            if task := self._tasks.get(message["of"]):
                task.cancel()
            return
        number = message["id"]
        task = asyncio.get_running_loop().create_task(self._answer(message))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, message: Message) -> None:
        answer: Message = {"id": message["id"]}
        try:
            value = await self._do[message["do"]](message)
            try:
                line = wire.encode(answer | {"value": value})
            except ValueError as error:  # a number of thousands of digits
                before = f"the answer of {self._name(message)} contains a value that is not JSON: "
                raise CodeError(ForeignMessage(before, str(error)), Redactor()) from None
            if len(line) > wire.MOST_BYTES:
                raise AgentError(f"the answer of {self._name(message)} is too large")  # noqa: TRY301
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  # nothing that code does ends this process but itself
            line = wire.encode(answer | {"error": wire.of_error(error, self._name(message))})
            if isinstance(error, CodeTimeoutError) and shares_loop() and not self._watching:
                self._watching = asyncio.create_task(self._watch())
        self._write(line)

    async def _watch(self) -> None:
        """Report a function that goes on blocking the event loop of all."""
        if not await shared_loop_answers(_BLOCKED_SECONDS):
            self._write(wire.encode({"event": "blocked"}))
        self._watching = None

    def _name(self, message: Message) -> str:
        if "session" in message and message["session"] in self._sessions:
            return self._sessions[message["session"]][0].name
        return str(message.get("name", "the agent"))

    def _write(self, line: bytes) -> None:
        with suppress(OSError):  # the run is gone, or the code has closed the pipe: then so is this process
            while line:
                line = line[os.write(self._writer, line) :]

    async def _load(self, message: Message) -> None:
        settings, name = AgentSettings(**message["settings"]), message["name"]
        sys.path[:] = message["path"]
        self._agents.append(loading.load(name, settings, Path(message["folder"])))

    async def _open(self, message: Message) -> str | None:
        agent = self._agents[message["agent"]]
        session = await agent.open_session(Test.model_validate(message["test"]))
        self._sessions[message["session"]] = agent, session
        return id_of(session)

    async def _send(self, message: Message) -> Any:
        agent, session = self._sessions[message["session"]]
        with carried(TraceContext(message["trace"])):
            reply = await agent.send_message(session, message["text"], timeout=message["timeout"])
        return reply.model_dump(mode="json")

    async def _state(self, message: Message) -> Any:
        agent, session = self._sessions[message["session"]]
        return await agent.read_state(session)

    async def _close(self, message: Message) -> None:
        if message["session"] in self._sessions:
            agent, session = self._sessions.pop(message["session"])
            await agent.close(session)


def _read(reader: int) -> bytes:
    with suppress(OSError):
        return os.read(reader, _CHUNK)
    return b""


def _end_started() -> None:
    if _MARK:
        kill_marked(_MARK)


def _end_all() -> NoReturn:
    """End what is left of this process and of all that it has started."""
    _end_started()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
