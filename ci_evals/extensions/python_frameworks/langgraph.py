"""A compiled graph of LangGraph whose state has `messages`."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.agents.code.plain_reply import NoAnswerError
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import Test
from ci_evals.extensions.python_frameworks.framework import (
    PAGE,
    FrameworkAgent,
    jsonable,
    waiting,
)
from ci_evals.support.json_text import JsonObject

_CHANNEL = "messages"
_INTERRUPT = "__interrupt__"
_AI = ("ai", "AIMessageChunk")


@dataclass
class _Session:
    graph: Any
    given: JsonObject
    opening: list[JsonObject]
    """Messages before the user's first one."""
    id: str = field(default_factory=lambda: f"ci-evals-{uuid4()}")

    @property
    def config(self) -> JsonObject:
        return {"configurable": {"thread_id": self.id}}


class LangGraphAgent(FrameworkAgent):
    """Runs the graph for each message, on a thread of its own for each conversation.

    A graph without a checkpointer gets one in memory, so that the thread keeps its state. New are the
    messages that the graph, or a graph that it calls, adds to those that it was called with.
    """

    framework = "LangGraph"

    def __init__(self, target: Any, name: str, settings: AgentSettings) -> None:
        super().__init__(target, name, settings)
        if _CHANNEL not in target.channels:
            state = ", ".join(channel for channel in target.channels if channel[:2] != "__") or "none"
            raise UsageError(
                f"{name}: the graph's state has no 'messages' (it has: {state}); put a function "
                f"reply(message, session) around the graph ({PAGE})"
            )

    async def _opened(self, test: Test) -> _Session:
        graph, given = self._target, JsonObject()
        if not graph.checkpointer:
            saver = import_module("langgraph.checkpoint.memory").InMemorySaver()
            graph = graph.copy({"checkpointer": saver})
        if self._makes_context or getattr(graph, "context_schema", None):
            given["context"] = await self._context(test)
        system = [{"role": "system", "content": test.system_prompt}] if test.system_prompt else []
        return _Session(graph, given, [*system, *test.history])

    async def send_message(self, session: _Session, text: str) -> dict[str, JsonValue]:
        """Run the graph until it ends or stops."""
        messages, session.opening = [*session.opening, {"role": "user", "content": text}], []
        # As objects: a state need not have a reducer that makes them of dicts.
        messages = import_module("langchain_core.messages").convert_to_messages(messages)
        new = _NewMessages()
        values = session.graph.astream(
            {_CHANNEL: messages}, session.config, stream_mode=["values"], subgraphs=True, **session.given
        )
        async with aclosing(values):
            async for namespace, _, state in values:
                if not isinstance(state, dict):
                    continue
                if not namespace and (asked := state.get(_INTERRUPT)):
                    values_asked = (jsonable(interrupt.value) for interrupt in asked)
                    raise waiting(values_asked, "the graph stopped at an interrupt,")
                new.see(tuple(namespace), state.get(_CHANNEL))
        if nodes := (await session.graph.aget_state(session.config)).next:
            raise waiting(nodes, "the graph stopped before its nodes")
        return self._read(new)

    async def read_state(self, session: _Session) -> JsonValue:
        """Return the values of the thread's state, without the messages."""
        values = (await session.graph.aget_state(session.config)).values
        return jsonable({name: value for name, value in values.items() if name != _CHANNEL})

    def _read(self, new: "_NewMessages") -> dict[str, JsonValue]:
        answers = [message for message in new.own if message.type in _AI]
        if not answers:
            raise NoAnswerError("has no text: the graph added no message of an AI")
        texts = map(_text, answers)
        usages = [m.usage_metadata or {} for m in new.everything if m.type in _AI]
        tokens = [(usage.get("input_tokens"), usage.get("output_tokens")) for usage in usages]
        return self._reply("\n\n".join(filter(str.strip, texts)), _calls(new.everything), tokens)


class _NewMessages:
    """The messages that graphs add, each once, in the order in which they appear."""

    def __init__(self) -> None:
        self._began: set[tuple[str, ...]] = set()
        self._old: set[str] = set()
        self._new: JsonObject = {}
        self._own: JsonObject = {}

    @property
    def everything(self) -> list[Any]:
        """All of them."""
        return list(self._new.values())

    @property
    def own(self) -> list[Any]:
        """Those that are in the state of the graph itself, not only of graphs that it calls."""
        return list(self._own.values())

    def see(self, namespace: tuple[str, ...], messages: Any) -> None:
        """Take the messages that a graph has after one of its steps; the first are what it began with."""
        if not isinstance(messages, list):
            return
        if not all(hasattr(message, "type") for message in messages):
            messages = import_module("langchain_core.messages").convert_to_messages(messages)
        keyed = {message.id or f"{namespace} {place}": message for place, message in enumerate(messages)}
        if namespace not in self._began:
            self._began.add(namespace)
            self._old |= keyed.keys() - self._new.keys()
            return
        for key, message in keyed.items():
            if key not in self._old:
                self._new.setdefault(key, message)
                if not namespace:
                    self._own[key] = message


def _text(message: Any) -> str:
    text = message.text
    return str(text() if callable(text) and not isinstance(text, str) else text)


def _calls(messages: list[Any]) -> Iterator[JsonObject]:
    results = {message.tool_call_id: message for message in messages if message.type == "tool"}
    for message in messages:
        for call in (*(getattr(message, "tool_calls", ())), *(getattr(message, "invalid_tool_calls", ()))):
            result = results.get(call["id"])
            yield {
                "id": call["id"],
                "name": call["name"] or "unknown",
                "arguments": call["args"],
                "result": None if result is None else result.content,
                "status": None if result is None else {"success": "ok", "error": "error"}.get(result.status),
                "agent": getattr(message, "name", None),
            }
