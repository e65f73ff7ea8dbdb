"""The side of the run: one process for all of its agents that are code, started again where it dies.

Whatever their code does to its process (it exits, crashes, hangs, closes or floods its streams, starts
others), it ends conversations at the most. What it prints is kept for a log, its last words for an error.
"""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from pydantic import JsonValue, ValidationError

from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_agent
from ci_evals.adapters.trace_context import trace_headers
from ci_evals.agents.code.foreign_code import CodeTimeoutError
from ci_evals.agents.python.agent import CLOSING_SECONDS
from ci_evals.agents.python.hosting import wire
from ci_evals.agents.python.hosting.wire import Message
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, CiEvalsError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.domain.world import STEP_SECONDS
from ci_evals.ports import id_of
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_PROGRAM = ("-P", "-u", "-m", "ci_evals.agents.python.hosting")
"""`-P`: no file in the current folder is taken for a module that we import; `-u`: last words arrive."""

_LATE_SECONDS = 2.0
"""The delay after its timeout that an answer may have: the process keeps it itself, unless it is blocked."""
_LOADING_SECONDS = 600.0
"""The longest that loading an agent may take: a module may load a large model."""
_MOST_UNREAD = 4 * wire.MOST_BYTES
_LOG_BYTES = 500_000
"""The part of the output of all processes of a run that is kept, from the end."""


class Host:
    """The process of the agents of a run that are code."""

    def __init__(
        self, environ: Mapping[str, str], redactor: Redactor, *, loading_seconds: float = _LOADING_SECONDS
    ) -> None:
        """Start nothing yet. The process gets `environ` without what is meant for us alone."""
        self._loading_seconds = loading_seconds
        self.redactor = redactor
        self._environ = environment_for_agent(environ)
        self._loads: list[Message] = []
        self._current: _Worker | None = None
        self._starting = asyncio.Lock()
        self._printed = b""

    def agent(self, name: str, settings: AgentSettings) -> "HostedAgent":
        """The agent of that name, `python:module:attribute` or a plug-in's; it is loaded by `start`."""
        load = {"do": "load", "name": name, "settings": asdict(settings), "folder": str(Path.cwd())}
        self._loads.append({**load, "path": list(sys.path)})
        return HostedAgent(self, name, len(self._loads) - 1)

    async def start(self) -> None:
        """Start the process and load all agents; raise `UsageError` if one cannot be loaded."""
        try:
            await self.worker()
        except AgentError as error:
            raise UsageError(str(error)) from error

    async def worker(self) -> "_Worker":
        """The process, with all agents loaded; a new one if the last one is gone.

        Raise `UsageError` if an agent cannot be loaded, `AgentError` if the process cannot be started, or
        dies.
        """
        async with self._starting:
            if self._current and not self._current.lost:
                return self._current
            await self.end()
            try:
                process = await ChildProcess.start(
                    [sys.executable, *_PROGRAM], self._environ, _MOST_UNREAD, max_stderr=_LOG_BYTES
                )
            except (OSError, ValueError) as error:
                raise AgentError(f"the agent's process could not be started: {error}") from error
            worker = self._current = _Worker(process, self.redactor)
            try:
                for load in self._loads:
                    await self._load(worker, load)
            except BaseException:
                await self.end()
                raise
            return worker

    def printed(self) -> str:
        """The output of the agents, only its end if it is long. It may hold secrets."""
        current = self._current.process.stderr if self._current else b""
        return (self._printed + current)[-_LOG_BYTES:].decode(errors="replace")

    async def _load(self, worker: "_Worker", load: Message) -> None:
        name, seconds = f"adapter {load['name']!r}", self._loading_seconds
        try:
            await worker.ask(load, name, "while it loaded", seconds)
        except CodeTimeoutError:
            raise AgentError(f"{name} did not load within {seconds:g} s") from None

    async def end(self) -> None:
        """End the process and all that it has started; never raises."""
        if worker := self._current:
            await worker.end()
            self._printed, self._current = (self._printed + worker.process.stderr)[-_LOG_BYTES:], None


@dataclass
class _Session:
    """A conversation, in the process that it was begun in."""

    worker: "_Worker"
    number: int
    id: str | None = None


class HostedAgent:
    """An agent that is code, in the process of a `Host`. Implements the port `Agent`."""

    def __init__(self, host: Host, name: str, index: int) -> None:
        self.name = name
        self._host = host
        self._index = index

    async def open_session(self, test: Test) -> _Session:
        """Begin a conversation."""
        try:
            worker = await self._host.worker()
        except UsageError as error:  # it could be loaded when the run began
            raise AgentError(f"{error} (when the agent's process was started again)") from error
        session = _Session(worker, worker.new_number())
        message = {"do": "open", "agent": self._index, "session": session.number}
        message["test"] = test.model_dump(mode="json", by_alias=True)
        value = await self._ask(worker, message, "while a session was opened", DEFAULT_TIMEOUT_SECONDS)
        session.id = id_of(value)
        return session

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send `text`, and read the code's answer."""
        message = {"do": "send", "session": session.number, "text": payload.clean(text), "timeout": timeout}
        message["trace"] = dict(trace_headers())
        value = await self._ask(session.worker, message, "in the middle of a reply", timeout)
        try:
            return Reply.model_validate(value)
        except ValidationError:
            raise AgentError(f"the answer of {self.name} is not a reply") from None

    async def read_state(self, session: _Session) -> JsonValue:
        """Return the state that the code reports."""
        message = {"do": "state", "session": session.number}
        return await self._ask(session.worker, message, "while it reported its state", STEP_SECONDS)

    async def close(self, session: _Session) -> None:
        """Let the code close its session. Its errors do not matter any more."""
        with suppress(CiEvalsError):
            message = {"do": "close", "session": session.number}
            await session.worker.ask(message, self.name, "at its end", CLOSING_SECONDS)

    async def _ask(self, worker: "_Worker", message: Message, when: str, seconds: float) -> JsonValue:
        try:
            return await worker.ask(message, self.name, when, seconds)
        except UsageError as error:  # the code made it up: it was loaded
            raise AgentError(f"{self.name}: {error}") from None


class _Worker:
    """One process, its questions and the tasks that wait for the answers."""

    def __init__(self, process: ChildProcess, redactor: Redactor) -> None:
        self.process = process
        self.lost: str | None = None
        """The reason why it answers no more; None while it does."""
        self._redactor = redactor
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[JsonValue]] = {}
        self._reading = asyncio.create_task(self._read())

    def new_number(self) -> int:
        return next(self._numbers)

    async def ask(self, message: Message, name: str, when: str, seconds: float | None = None) -> JsonValue:
        """The answer to a message; `when` is a clause to go after "its process ended".

        The process itself keeps the limit of `seconds`, if it can.
        """
        if self.lost:
            raise AgentError(f"{name}: {self.lost} since the last message")
        number = self.new_number()
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.process.write(wire.encode({"id": number, **message}))
        try:
            async with asyncio.timeout(seconds and seconds + _LATE_SECONDS):
                value: JsonValue = await answer
                return value
        except TimeoutError:
            self._lose(f"the agent's process was stopped because it did not answer within {seconds:g} s")
            raise CodeTimeoutError(f"{name} did not answer within {seconds:g} s") from None
        except _LostError as error:
            reason, words = error.args
            raise AgentError(f"{name}: {reason} {when}{words}") from None
        except asyncio.CancelledError:
            self.process.write(wire.encode({"do": "cancel", "of": number}))
            raise
        finally:
            self._waiting.pop(number, None)

    async def end(self) -> None:
        self.lost = self.lost or "the agent's process was stopped"
        await self.process.end()
        self._reading.cancel()

    async def _read(self) -> None:
        """Hand each answer to the task that waits for it, until there will be no more."""
        while line := await self.process.line():
            try:
                message = wire.decode(line)
            except ValueError:
                self._lose("the agent's process was stopped because it wrote into the pipe of its answers,")
                return
            if message.get("event") == "blocked":
                self._lose(
                    "the agent's process was stopped because an async function blocked the event loop of all "
                    "(time.sleep, requests),"
                )
                return
            number = message.get("id")
            waiting = self._waiting.get(number) if isinstance(number, int) else None
            if waiting is None or waiting.done():
                continue  # of a question that was given up
            if "error" in message:
                waiting.set_exception(wire.to_error(message["error"], self._redactor))
            else:
                waiting.set_result(message.get("value"))
        code = await self.process.code()
        if code is None:
            self._lose("the agent's process closed its pipe")
        else:
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            self._lose(f"the agent's process ended ({how})")

    def _lose(self, reason: str) -> None:
        """Give up the process, and fail all questions."""
        if self.lost:
            return
        self.lost = reason
        self.process.kill()
        words = self.process.last_words(self._redactor)
        words = f"; its last output: {words}" if words else ""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_LostError(reason, words))


class _LostError(Exception):
    """The process is gone: why, and its last words."""
