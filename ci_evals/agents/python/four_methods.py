"""Objects with the four methods of the `AgentAdapter` of `@aui.io/evals`: an agent and two models in one.

`spawn_session(agent_id, api_key, label, model)` and `send_message(session_key, message, user_info, timeout)`
are the agent, `call_judge(prompt, model)` and `generate_user_message(prompt, model)` the models. Arguments go
by place; a method may leave out those at its end.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from ci_evals.adapters.models.answer_formats import with_schema
from ci_evals.agents.aui import wire as aui_wire
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code.foreign_code import CodeCaller, ForeignError, message_of, takes
from ci_evals.agents.code.plain_reply import PlainAnswer
from ci_evals.agents.python.agent import CodeAgent, CodeSession, call_close, callable_as
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

_AUI_KEYS = frozenset({"executed_workflows", "executedWorkflows", "trace_info", "traceInfo"})
"""An answer with one of these is in the words of AUI's API, any other in our own."""

ANSWER_SECONDS = 120.0
"""The longest that a model may take for one answer."""


class FourMethodAgent(CodeAgent):
    """The agent of such an object."""

    def __init__(self, target: Any, name: str, settings: AgentSettings, **how: Any) -> None:
        super().__init__(name, settings, **how)
        self._target = target
        self._numbers = count(1)
        self._spawn = _accepted(target.spawn_session, 4)
        self._send = _accepted(target.send_message, 4)
        spawn_form = "spawn_session(agent_id, api_key, label, model)"
        callable_as(target.spawn_session, spawn_form, name, *[None] * self._spawn)
        send_form = "send_message(session_key, message, user_info, timeout)"
        callable_as(target.send_message, send_form, name, *[None] * max(2, self._send))

    async def _opened(self, caller: CodeCaller, test: Test) -> Any:
        label = f"{test.name} #{next(self._numbers)}"
        given = (self.settings.agent_id or "", self.settings.api_key or "", label, self.settings.model)
        key = await caller.call(self._target.spawn_session, *given[: self._spawn])
        return key, test.user_info

    async def _answer(self, session: CodeSession, text: str, timeout: float) -> Any:  # noqa: ASYNC109  # told to the code, kept by the caller
        key, user_info = session.inner
        given = (key, text, user_info, timeout)
        return await session.caller.call(self._target.send_message, *given[: self._send])

    async def _closed(self, session: CodeSession) -> None:
        await call_close(self._target, session.caller, session.inner[0])

    def _read(self, answer: PlainAnswer, seconds: float, thread: Thread) -> Reply:
        value = answer.value
        if isinstance(value, dict) and not answer.is_reply and not _AUI_KEYS.isdisjoint(value):
            return aui_wire.read_reply(value, seconds, self._redactor, keep_raw=self.settings.debug)
        return super()._read(answer, seconds, thread)


class MethodLLM:
    """A model behind one method, `method(prompt, model)`, which gives a text. Implements the port `LLM`."""

    def __init__(
        self,
        method: Callable[..., Any],
        name: str,
        model: str | None = None,
        *,
        redactor: Redactor | None = None,
        timeout: float = ANSWER_SECONDS,
    ) -> None:
        """Call nothing yet. `model` is the one that the suite names; else results show `name`."""
        self.model = model or name
        self._method = method
        self._name = name
        self._redactor = redactor or Redactor()
        self._timeout = timeout
        self._arguments = _accepted(method, 2)
        self._named_model = model
        callable_as(
            method, f"{name.rpartition('.')[2]}(prompt, model)", name, *[None] * max(1, self._arguments)
        )

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask with system and text in one; a schema is added to the text."""
        prompt = with_schema(prompt)
        question = "\n\n".join(part for part in (prompt.system, prompt.text) if part)
        caller = CodeCaller()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await caller.call(self._method, *(question, self._named_model)[: self._arguments])
        except TimeoutError:
            raise LLMError(f"{self._name} did not answer within {self._timeout:g} s") from None
        except ForeignError as error:
            if isinstance(error.__cause__, LLMError):
                raise error.__cause__ from None
            message = message_of(error).around(f"{self._name} raised ")
            raise LLMError(message.shown(self._redactor)) from error.__cause__
        finally:
            caller.end()
        if not isinstance(answer, str):
            raise LLMAnswerError(f"{self._name} returned {type(answer).__name__}, which is not a string")
        if not answer.strip():
            raise LLMAnswerError(f"{self._name} returned an empty text")
        return Completion(answer)


def _accepted(method: Any, most: int) -> int:
    """The number of positional arguments, at most `most`, that the method takes; 0 if it takes none."""
    if not callable(method):
        return 0
    return next((number for number in range(most, 0, -1) if takes(method, *[None] * number)), 0)
