"""An `Agent` of pydantic-ai."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import NoneType
from typing import Any
from uuid import uuid4

from pydantic import JsonValue, TypeAdapter, ValidationError

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.extensions.python_frameworks.framework import (
    PAGE,
    FrameworkAgent,
    all_words,
    waiting,
)

_STATUSES = {"success": "ok", "retried": "error", "failed": "error", "denied": "error"}


@dataclass
class _Session:
    given: dict[str, object]
    history: list[Any] = field(default_factory=list)
    id: str = field(default_factory=lambda: f"ci-evals-{uuid4()}")


class PydanticAiAgent(FrameworkAgent):
    """Runs the agent once for each message, with the messages of the runs before as its history."""

    framework = "pydantic-ai"
    takes_model = True

    def __init__(self, target: Any, name: str, settings: AgentSettings) -> None:
        super().__init__(target, name, settings)
        self._deps: TypeAdapter[Any] | None = None
        kind = getattr(target, "deps_type", NoneType)
        if self._makes_context or kind in (NoneType, object, None):
            return
        try:
            self._deps = TypeAdapter(kind)
        except Exception:  # noqa: BLE001  # a schema of foreign types may fail in any way
            raise UsageError(
                f"{name}: its deps_type {getattr(kind, '__name__', kind)} cannot be made from a test's "
                f"userInfo; name a function of yours that makes them: adapterOptions.context ({PAGE})"
            ) from None

    async def _opened(self, test: Test) -> _Session:
        given: dict[str, object] = {}
        if self._model:
            given["model"] = self._model
        if test.system_prompt:
            given["instructions"] = test.system_prompt
        if self._makes_context:
            given["deps"] = await self._context(test)
        if self._deps:
            try:
                given["deps"] = self._deps.validate_python(await self._context(test))
            except ValidationError as error:
                fault = error.errors(include_url=False)[0]
                where = ".".join(("userInfo", *map(str, fault["loc"])))
                raise AgentError(f"{self._name}: its deps are made from {where}: {fault['msg']}") from None
        return _Session(given, list(_messages(test.history)))

    async def send_message(self, session: _Session, text: str) -> dict[str, JsonValue]:
        """Run the agent."""
        result = await self._target.run(text, message_history=session.history or None, **session.given)
        session.history = result.all_messages()
        if type(result.output).__name__ == "DeferredToolRequests":
            asked = [*result.output.approvals, *result.output.calls]
            raise waiting((part.tool_name for part in asked), "the run waits for the outcome of the tools")
        messages = result.new_messages()
        output_tool = getattr(result, "_output_tool_name", None)
        calls = [call for call in _calls(messages) if call["name"] != output_tool]
        return self._reply(all_words(_texts(messages), result.output), calls, _tokens(messages))


def _messages(history: list[dict[str, object]]) -> Iterator[Any]:
    """Yield the messages before a test as pydantic-ai has them."""
    kinds: Any = import_module("pydantic_ai.messages")
    for message in history:
        if message["role"] == "user":
            yield kinds.ModelRequest(parts=[kinds.UserPromptPart(content=message["content"])])
        else:
            yield kinds.ModelResponse(parts=[kinds.TextPart(content=message["content"])])


def _texts(messages: list[Any]) -> Iterator[str]:
    """Yield the words of each answer of a model."""
    for message in messages:
        if message.kind == "response":
            yield "".join(part.content for part in message.parts if part.part_kind == "text")


def _calls(messages: list[Any]) -> Iterator[dict[str, object]]:
    parts = [part for message in messages for part in message.parts if getattr(part, "tool_name", None)]
    returns = {part.tool_call_id: part for part in parts if not part.part_kind.endswith("tool-call")}
    for part in parts:
        if part.part_kind.endswith("tool-call"):
            returned = returns.get(part.tool_call_id)
            outcome = "retried" if returned and returned.part_kind == "retry-prompt" else None
            outcome = outcome or getattr(returned, "outcome", None)
            yield {
                "id": part.tool_call_id,
                "name": part.tool_name,
                "arguments": {} if part.args is None else part.args,
                "result": getattr(returned, "content", None),
                "status": _STATUSES.get(str(outcome)),
            }


def _tokens(messages: list[Any]) -> Iterator[tuple[object, object]]:
    for message in messages:
        if message.kind == "response":
            usage = getattr(message, "usage", None)
            yield getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
