"""An agent that is code in this process: any object with the methods of the port, in a looser form.

What its code raises is the agent's failure, never a bug of ours. Timeouts are ours to keep, and where the
code does not tell how long it took, so is the clock.
"""

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from types import NoneType
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python

from ci_evals.adapters.code import plain_reply
from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.foreign_code import (
    CodeError,
    CodeTimeoutError,
    ForeignError,
    Lane,
    Words,
    own_error,
    takes,
    text_of,
    words_of,
)
from ci_evals.adapters.transport import payload
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor

CLOSING_SECONDS = 3.0
"""The longest that code may take to close a session: an interrupted run has six for everything."""


@dataclass
class CodeSession:
    """One conversation: what the code calls its session, and where the code is called."""

    inner: Any
    lane: Lane
    closed: bool = False


class CodeAgent(ABC):
    """What all agents that are code have in common. Implements the port `Agent`."""

    def __init__(
        self,
        name: str,
        about: About,
        *,
        redactor: Redactor | None = None,
        clock: Callable[[], float] = time.perf_counter,
        open_timeout: float = DEFAULT_TIMEOUT_SECONDS,
        apart: bool = False,
    ) -> None:
        """Calls nothing yet.

        Args:
            name: What errors call the agent.
            about: What the suite says of it.
            redactor: Knows the run's secrets, for what is told of errors.
            clock: Seconds, for latencies.
            open_timeout: Seconds that opening a session may take; a message has its turn's timeout.
            apart: Whether its coroutines run in another event loop than ours: see `Lane`.
        """
        self.name = name
        self.about = about
        self._redactor = redactor or Redactor()
        self._clock = clock
        self._open_timeout = open_timeout
        self._apart = apart

    async def open_session(self, test: Test) -> Any:
        """Begins a conversation. The code gets a copy of the test: what it changes there changes no other."""
        lane = Lane(apart=self._apart)
        try:
            inner = await self._within(
                self._open_timeout, self._opened(lane, test.model_copy(deep=True)), "open a session"
            )
        except BaseException:
            lane.end()
            raise
        return CodeSession(inner, lane)

    async def send_message(self, session: CodeSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Says `text` and reads what the code gives back."""
        started = self._clock()
        try:
            answer = await self._within(timeout, self._plain_answer(session, text, timeout), "answer")
            return self._read(answer, self._clock() - started)
        except ValueError as error:
            words = Words(f"the answer of {self.name} ", str(error))
            raise CodeError(words, self._redactor) from None

    async def close(self, session: CodeSession) -> None:
        """Lets the code close its session, if it wants to. What it raises is of no account any more."""
        if session.closed:
            return
        session.closed = True
        try:
            with suppress(ForeignError, TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._closed(session)
        finally:
            session.lane.end()

    @abstractmethod
    async def _opened(self, lane: Lane, test: Test) -> Any:
        """What the code calls its session."""

    @abstractmethod
    async def _answer(self, session: CodeSession, text: str, timeout: float) -> Any:  # noqa: ASYNC109  # told to the code, kept by the caller
        """What the code answers, as it is."""

    @abstractmethod
    async def _closed(self, session: CodeSession) -> None:
        """Lets the code free what it holds."""

    async def _plain_answer(self, session: CodeSession, text: str, timeout: float) -> "Plain":  # noqa: ASYNC109  # as above
        """What the code answers, as data. An answer that is an object is code too, and called as such."""
        answer = await self._answer(session, text, timeout)
        return plain(answer) if _is_data(answer) else await session.lane.call(plain, answer)

    def _read(self, answer: "Plain", seconds: float) -> Reply:
        """The reply in what the code answered.

        Raises:
            ValueError: there is none, with a clause to go after "the answer of AGENT".
        """
        if answer.is_reply:
            return Reply.model_validate(answer.value)
        return plain_reply.read(answer.value, seconds, keep_raw=self.about.debug)

    async def _within(self, seconds: float, work: Any, doing: str) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise CodeTimeoutError(f"{self.name} did not {doing} within {seconds:g} s") from None
        except ForeignError as error:
            # No variable holds an exception here: in its own traceback it would live on, with all it holds.
            if isinstance(error.__cause__, AgentError):
                raise own_error(error.__cause__) from None
            if isinstance(error.__cause__, NoAnswerError):
                raise error.__cause__ from None
            words = words_of(error).around(f"{self.name} raised ")
            raise CodeError(words, self._redactor) from error.__cause__


class ObjectAgent(CodeAgent):
    """An object with `open_session(test)`, `send_message(session, text)` and, if it likes, `close(session)`.

    Each may be a coroutine or not. `open_session` may do without the test, `send_message` may take `timeout`.
    """

    def __init__(self, target: Any, name: str, about: About, **how: Any) -> None:
        """Looks at the methods and calls none.

        Raises:
            UsageError: one of them cannot be called as it will be.
        """
        super().__init__(name, about, **how)
        self._target = target
        self._wants_test = takes(target.open_session, None)
        self._wants_timeout = takes(target.send_message, None, "", timeout=1.0)
        if not self._wants_test:
            callable_as(target.open_session, "open_session(test)", name)
        if not self._wants_timeout:
            callable_as(target.send_message, "send_message(session, text)", name, None, "")

    async def _opened(self, lane: Lane, test: Test) -> Any:
        return await lane.call(self._target.open_session, *((test,) if self._wants_test else ()))

    async def _answer(self, session: CodeSession, text: str, timeout: float) -> Any:  # noqa: ASYNC109  # as above
        options = {"timeout": timeout} if self._wants_timeout else {}
        return await session.lane.call(self._target.send_message, session.inner, text, **options)

    async def _closed(self, session: CodeSession) -> None:
        if callable(close := getattr(self._target, "close", None)):
            await session.lane.call(close, *((session.inner,) if takes(close, None) else ()))


def callable_as(function: Any, form: str, name: str, *args: Any) -> None:
    """Nothing, where the function can be called with these arguments.

    Raises:
        UsageError: it cannot; `form` is how it should look.
    """
    if not callable(function) or not takes(function, *args):
        taken = _parameters(function)
        raise UsageError(f"{name}{taken}, but is called as {form}; see docs/writing-an-adapter.md")


def _parameters(function: Any) -> str:
    """What the function takes, to go after the name of its agent."""
    called = getattr(function, "__name__", type(function).__name__)
    return f": {called} takes {inspect.signature(function)}" if callable(function) else " has no such method"


class NoAnswerError(ValueError):
    """What code gave is no answer; with a clause to go after "the answer of AGENT"."""


class Plain(NamedTuple):
    """What code gave as an answer, as clean JSON."""

    value: JsonValue
    is_reply: bool = False
    """Whether it was a `Reply`, and has the keys of one."""


_DEEP = 8
"""Levels of an answer that are looked through for objects."""


def _is_data(answer: Any, levels: int = _DEEP) -> bool:
    """Whether an answer is known to be of Python's own types, so that reading it calls no code of anybody."""
    kind = type(answer)
    if kind in (str, int, float, bool, NoneType):
        return True
    if not levels or kind not in (dict, list, tuple):
        return False
    items = [*answer, *answer.values()] if kind is dict else answer
    return all(_is_data(item, levels - 1) for item in items)


def plain(answer: Any) -> Plain:
    """What code gave as an answer, as data. It may be code itself, and do anything while it is read.

    Raises:
        NoAnswerError: it is none.
    """
    if isinstance(answer, Reply):
        return Plain(plain_json(answer.model_dump()), is_reply=True)
    return Plain(plain_json(answer))


def plain_json(answer: Any) -> JsonValue:
    """What code gave as an answer, as clean JSON: a text, a mapping, a dataclass or a pydantic model.

    Raises:
        NoAnswerError: it is none of these, or holds what JSON cannot.
    """
    match answer:
        case str():
            return payload.clean(str.__str__(answer))
        case None:
            raise NoAnswerError("is None: it must return a text, or an object with a 'text'")
        case Mapping() | BaseModel():
            pass
        case _ if not is_dataclass(answer) or isinstance(answer, type):
            raise NoAnswerError(
                f"is of the type {type(answer).__name__}, which is neither a text nor an object"
            )
    try:
        value = to_jsonable_python(dict(answer) if isinstance(answer, Mapping) else answer, by_alias=True)
    except Exception as error:  # noqa: BLE001  # an object of foreign code may raise anything
        raise NoAnswerError(f"holds what is no JSON: {text_of(error)}") from None
    return payload.clean(value)
