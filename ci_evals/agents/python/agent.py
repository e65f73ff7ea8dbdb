"""Agents that are Python code in this process: objects with the methods of the port, and functions.

An exception of their code is the agent's failure, never a bug of ours. Timeouts and the clock are ours.
"""

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.hand_over import tools_in, with_tools
from ci_evals.adapters.trace_context import trace_headers
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code import plain_reply
from ci_evals.agents.code.foreign_code import (
    CodeCaller,
    CodeError,
    CodeTimeoutError,
    ForeignError,
    ForeignMessage,
    message_of,
    own_error,
    positional_parameters,
    takes,
)
from ci_evals.agents.code.plain_reply import PlainAnswer, is_data, to_plain, to_state
from ci_evals.agents.python.span_context import attached
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.domain.world import STEP_SECONDS
from ci_evals.ports import id_of
from ci_evals.support.documentation import see
from ci_evals.support.redaction import Redactor

CLOSING_SECONDS = 3.0
"""The longest that code may take to close a session: an interrupted run has six for everything."""


@dataclass
class CodeSession:
    """One conversation: the code's own session, and the thread in which the code is called."""

    inner: Any
    caller: CodeCaller
    thread: Thread
    closed: bool = False

    @property
    def id(self) -> str | None:
        """The id of the code's own session, if it has one."""
        return id_of(self.inner)


class CodeAgent(ABC):
    """The common part of all agents that are code. Implements the port `Agent`."""

    takes_history = False
    """True if the code can be given the messages before a test."""
    how_to_take_history = f"use an adapter that can ({see('adapters')})"

    def __init__(
        self,
        name: str,
        settings: AgentSettings,
        *,
        redactor: Redactor | None = None,
        apart: bool = False,
    ) -> None:
        """Call nothing yet. `apart` is explained at `CodeCaller`."""
        self.name = name
        self.settings = settings
        self._redactor = redactor or Redactor()
        self._apart = apart
        self._escalation_tools = tools_in(settings.options)

    async def open_session(self, test: Test) -> Any:
        """Begin a conversation. The code gets a copy of the test: changes to it change no other."""
        if test.history and not self.takes_history:
            raise AgentError(
                f"{self.name} cannot be given the messages before the test; {self.how_to_take_history}, or "
                "remove the 'assistant' lines of its turns"
            )
        caller = CodeCaller(apart=self._apart)
        try:
            opened = self._opened(caller, test.model_copy(deep=True))
            inner = await self._within(DEFAULT_TIMEOUT_SECONDS, opened, "open a session")
        except BaseException:
            caller.end()
            raise
        return CodeSession(inner, caller, Thread.of(test.history))

    async def send_message(self, session: CodeSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send `text` and read the code's answer."""
        started = time.perf_counter()
        session.thread.ask(text)
        try:
            with attached(trace_headers()):
                answer = await self._within(timeout, self._plain_answer(session, text, timeout), "answer")
            reply = self._read(answer, time.perf_counter() - started, session.thread)
        except ValueError as error:
            message = ForeignMessage(f"the answer of {self.name} ", str(error))
            raise CodeError(message, self._redactor) from None
        session.thread.take(reply.agent, plain_reply.messages_of(answer.value))
        return reply

    async def read_state(self, session: CodeSession) -> JsonValue:
        """Return the state that the code reports, as clean JSON; raise `AgentError` if it reports none."""
        try:
            state: JsonValue = await self._within(STEP_SECONDS, self._state(session), "report its state")
        except ValueError as error:
            message = ForeignMessage(f"the state of {self.name} ", str(error))
            raise CodeError(message, self._redactor) from None
        return state

    async def _state(self, session: CodeSession) -> JsonValue:
        """Return the code's state as clean JSON."""
        del session
        raise AgentError("the agent reports no state")

    async def close(self, session: CodeSession) -> None:
        """Let the code close its session, if it wants to. Its exceptions do not matter any more."""
        if session.closed:
            return
        session.closed = True
        try:
            with suppress(ForeignError, TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._closed(session)
        finally:
            session.caller.end()

    @abstractmethod
    async def _opened(self, caller: CodeCaller, test: Test) -> Any:
        """Open the code's own session."""

    @abstractmethod
    async def _answer(self, session: CodeSession, text: str, timeout: float) -> Any:  # noqa: ASYNC109  # told to the code, kept by the caller
        """Return the code's answer as it is."""

    @abstractmethod
    async def _closed(self, session: CodeSession) -> None:
        """Let the code free what it holds."""

    async def _plain_answer(self, session: CodeSession, text: str, timeout: float) -> PlainAnswer:  # noqa: ASYNC109  # as above
        """The code's answer as data. An answer that is an object is code too, and called as such."""
        answer = await self._answer(session, text, timeout)
        return to_plain(answer) if is_data(answer) else await session.caller.call(to_plain, answer)

    def _read(self, answer: PlainAnswer, seconds: float, thread: Thread) -> Reply:
        """Read the code's answer, or raise `ValueError` with a clause to go after "the answer of AGENT"."""
        if answer.is_reply:
            reply = Reply.model_validate(answer.value)
        else:
            reply = plain_reply.read(answer.value, seconds, thread, keep_raw=self.settings.debug)
        return with_tools(reply, self._escalation_tools, reported=reply.handed_over is not None)

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
            if isinstance(error.__cause__, plain_reply.NoAnswerError):
                raise error.__cause__ from None
            message = message_of(error).around(f"{self.name} raised ")
            raise CodeError(message, self._redactor) from error.__cause__


class ObjectAgent(CodeAgent):
    """An object with `open_session(test)`, `send_message(session, text)` and, if it likes, `close(session)`.

    Each may be a coroutine or not. `open_session` may do without the test, `send_message` may take `timeout`.
    One that begins with `test.history` says so by `takes_history = True`.
    """

    how_to_take_history = "begin with test.history in open_session(test), and set takes_history = True"

    def __init__(self, target: Any, name: str, settings: AgentSettings, **how: Any) -> None:
        super().__init__(name, settings, **how)
        self._target = target
        self.takes_history = bool(getattr(target, "takes_history", False))
        self._wants_test = takes(target.open_session, None)
        self._wants_timeout = takes(target.send_message, None, "", timeout=1.0)
        if not self._wants_test:
            callable_as(target.open_session, "open_session(test)", name)
        if not self._wants_timeout:
            callable_as(target.send_message, "send_message(session, text)", name, None, "")

    async def _opened(self, caller: CodeCaller, test: Test) -> Any:
        arguments = (test,) if self._wants_test else ()
        return await caller.call(self._target.open_session, *arguments)

    async def _answer(self, session: CodeSession, text: str, timeout: float) -> Any:  # noqa: ASYNC109  # as above
        options = {"timeout": timeout} if self._wants_timeout else {}
        return await session.caller.call(self._target.send_message, session.inner, text, **options)

    async def _state(self, session: CodeSession) -> JsonValue:
        read = getattr(self._target, "read_state", None)
        if not callable(read):
            return await super()._state(session)
        state = await session.caller.call(read, session.inner)
        plain: JsonValue = to_state(state) if is_data(state) else await session.caller.call(to_state, state)
        return plain

    async def _closed(self, session: CodeSession) -> None:
        await call_close(self._target, session.caller, session.inner)


@dataclass
class Conversation:
    """The conversation that a function is called in: its second argument, `session`."""

    user_info: dict[str, JsonValue]
    """The test's `userInfo`."""
    system_prompt: str | None
    """The test's `systemPrompt`."""
    agent_id: str | None
    model: str | None
    base_url: str | None
    api_key: str | None = field(repr=False)
    options: Mapping[str, JsonValue]
    """The suite's `adapterOptions`."""
    history: list[dict[str, str]] = field(default_factory=list)
    """The messages before this one, `{"role": "user" or "assistant", "content": text}`, oldest first."""
    trace_headers: dict[str, str] = field(default_factory=dict)
    """The headers `traceparent` and `baggage` for requests to other services, if spans are received."""
    state: dict[str, object] = field(default_factory=dict)
    """Values that the function keeps for the next message of this conversation."""


@dataclass
class _FunctionSession:
    """A conversation as the function may see and change it, and its true history."""

    conversation: Conversation
    history: list[dict[str, str]] = field(default_factory=list)


class FunctionAgent(CodeAgent):
    """A function that takes a message and returns the reply."""

    how_to_take_history = "let it take a second argument, session, and read session.history"

    def __init__(self, function: Callable[..., Any], name: str, settings: AgentSettings, **how: Any) -> None:
        super().__init__(name, settings, **how)
        self._function = function
        self._wants_session = self.takes_history = _wants_session(function)
        arguments = ("", None) if self._wants_session else ("",)
        callable_as(function, "reply(message) or reply(message, session)", name, *arguments)

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Call the function, and add message and reply to the history."""
        reply = await super().send_message(session, text, timeout=timeout)
        session.inner.history.append({"role": "user", "content": text})
        session.inner.history.append({"role": "assistant", "content": reply.agent})
        return reply

    async def _opened(self, caller: CodeCaller, test: Test) -> Any:
        del caller  # nothing of the function's is called yet
        settings = self.settings
        return _FunctionSession(
            Conversation(
                user_info=test.user_info,
                system_prompt=test.system_prompt,
                agent_id=settings.agent_id,
                model=settings.model,
                base_url=settings.base_url,
                api_key=settings.api_key,
                options=deepcopy(dict(settings.options)),
            ),
            test.history,
        )

    async def _answer(self, session: Any, text: str, timeout: float) -> Any:  # noqa: ASYNC109, ARG002  # as it is called
        inner: _FunctionSession = session.inner
        if not self._wants_session:
            return await session.caller.call(self._function, text)
        inner.conversation.history = [dict(message) for message in inner.history]
        inner.conversation.trace_headers = dict(trace_headers())
        return await session.caller.call(self._function, text, inner.conversation)

    async def _closed(self, session: Any) -> None:
        pass


async def call_close(target: Any, caller: CodeCaller, session: Any) -> None:
    """Call an object's `close`, if it has one, with the session that it has given, if it takes one."""
    if callable(close := getattr(target, "close", None)):
        arguments = (session,) if takes(close, None) else ()
        await caller.call(close, *arguments)


def callable_as(function: Any, form: str, name: str, *args: Any) -> None:
    """Raise `UsageError` unless the function can be called with these arguments, which `form` shows."""
    if not callable(function) or not takes(function, *args):
        taken = " has no such method"
        if callable(function):
            called = getattr(function, "__name__", type(function).__name__)
            taken = f": {called} takes {inspect.signature(function)}"
        raise UsageError(f"{name}{taken}, but is called as {form} ({see('writing-an-adapter')})")


def _wants_session(function: Callable[..., Any]) -> bool:
    """Return whether the function takes a second argument: one without a default, or one called `session`."""
    second = positional_parameters(function)[1:2]
    return any(parameter.default is parameter.empty or parameter.name == "session" for parameter in second)
