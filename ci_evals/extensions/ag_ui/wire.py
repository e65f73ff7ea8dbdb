"""Messages of AG-UI, the Agent User Interaction Protocol: what a run is given, and what its events say. Pure.

Versions before 1.0 have the same events. Events of unknown types are skipped: they may belong to a newer 1.x.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.transport.streams import Event
from ci_evals.agents import chat_thread
from ci_evals.agents.chat_thread import Seen, Thread
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import ToolCall
from ci_evals.extensions.ag_ui.json_patch import Patcher, PatchError
from ci_evals.extensions.ag_ui.run import NO_STATE, AgentState, Message, OpenCall, Run
from ci_evals.support import payload
from ci_evals.support.json_text import written
from ci_evals.support.redaction import Redactor

_LAST = frozenset({"RUN_FINISHED", "RUN_ERROR"})
_MAJOR_VERSIONS = frozenset({"0", "1"})


def is_last(event: Event) -> bool:
    """Return whether an event ends a run."""
    return payload.name(payload.member(event.value, "type")) in _LAST


def read(events: Sequence[Event], sent: Sequence[Message], state: AgentState, redactor: Redactor) -> Run:
    """Read the events of a run for the messages `sent`, and bring the state up to date.

    Raises:
        AgentError: they are none of AG-UI, of another version of it, or of a run that was cancelled.
    """
    reader = _Reader(sent, state, redactor)
    for event in events:
        reader.read(event)
    return reader.run()


def tool_message(call: ToolCall, result: JsonValue, message_id: str) -> Message:
    """Return the message with the result of a call that the agent leaves to its client."""
    content = result if isinstance(result, str) else written(result)
    return {"id": message_id, "role": "tool", "toolCallId": call.id, "content": content}


class _Reader:
    def __init__(self, sent: Sequence[Message], state: AgentState, redactor: Redactor) -> None:
        self._state, self._redactor = state, redactor
        self._patcher = Patcher(payload.clean(state.value))
        self._sent = [*sent]
        self._messages = [*sent]
        self._new: dict[str, Message] = {}
        """The messages of this run by id, in order."""
        self._deltas: dict[str, list[str]] = {}
        """The parts of streamed messages."""
        self._calls: dict[str, OpenCall] = {}
        self._agents: dict[str, str] = {}
        """Names of subagents by the id of their run."""
        self._of_subagents: set[str] = set()
        """Ids of messages that subagents wrote."""
        self._chunk: JsonValue = None
        """The message or call that a chunk without an id continues."""
        self._run = Run()
        self._methods: dict[str, Callable[[Message, float], None]] = {
            "RUN_STARTED": self._start,
            "RUN_FINISHED": self._finish,
            "RUN_ERROR": self._fail,
            "TEXT_MESSAGE_START": self._start_message,
            "TEXT_MESSAGE_CONTENT": self._continue_message,
            "TEXT_MESSAGE_CHUNK": self._add_message_chunk,
            "TOOL_CALL_START": self._start_call,
            "TOOL_CALL_ARGS": self._continue_call,
            "TOOL_CALL_CHUNK": self._add_call_chunk,
            "TOOL_CALL_END": self._end_call,
            "TOOL_CALL_RESULT": self._take_result,
            "STATE_SNAPSHOT": self._replace_state,
            "STATE_DELTA": self._change_state,
            "MESSAGES_SNAPSHOT": self._replace_messages,
            "SUBAGENT_STARTED": self._name_subagent,
        }

    def read(self, event: Event) -> None:
        """Read one event."""
        value, kind = event.value, payload.member(event.value, "type")
        if not isinstance(value, dict) or not isinstance(kind, str):
            shown = payload.shorten(json.dumps(self._redactor.json(value), ensure_ascii=False))
            raise AgentError(
                f"the agent sent an event that AG-UI does not have: {shown} (is the base URL right?)"
            )
        if method := self._methods.get(kind):
            method(value, event.seconds)
        elif kind.startswith("TOOL_"):
            self._run.partial = True

    def run(self) -> Run:
        """Return the run, after its last event."""
        run, made = self._run, [*self._calls.values()]
        self._join_deltas()
        self._state.value = payload.clean(self._patcher.document)  # patches can nest ever deeper
        run.messages = [message for message in self._messages if _says_something(message)]
        run.texts = self._texts()
        calls = tool_calls.read_all(call.plain() for call in made)
        if calls is not None:
            run.waiting = tuple(call for call, one in zip(calls, made, strict=True) if not one.returned)
            calls = tuple(
                call if one.complete else _without_arguments(call)
                for call, one in zip(calls, made, strict=True)
            )
        run.calls = calls
        return run

    def _start(self, event: Message, _: float) -> None:
        version = payload.name(event.get("protocolVersion"))
        if version and version.partition(".")[0] not in _MAJOR_VERSIONS:
            told = payload.shorten(self._redactor.text(version))
            raise AgentError(f"the agent speaks AG-UI {told}; ci-evals reads 1.x")

    def _finish(self, event: Message, _: float) -> None:
        self._count(event.get("usage"))
        outcome = event.get("outcome")
        if payload.member(outcome, "type") == "interrupt":
            interrupts = payload.member(outcome, "interrupts")
            listed = interrupts if isinstance(interrupts, list) else []
            self._run.interrupts = [one for one in listed if isinstance(one, dict)] or [{}]
        elif payload.member(outcome, "type") == "cancelled":
            raise AgentError("the agent's run was cancelled before it completed")

    def _fail(self, event: Message, _: float) -> None:
        told = self._redactor.json({key: event.get(key) for key in ("code", "message")})
        self._run.error = payload.shorten(payload.explain(told) or "no reason given")
        self._run.partial = True  # what the agent would have done is not known

    def _count(self, usage: JsonValue) -> None:
        if isinstance(usage, list) and usage:
            counts = [
                (payload.member(one, "inputTokens"), payload.member(one, "outputTokens")) for one in usage
            ]
            self._run.input_tokens = total(token_count(read) for read, _ in counts)
            self._run.output_tokens = total(token_count(written) for _, written in counts)

    def _start_message(self, event: Message, _: float) -> None:
        self._chunk = event.get("messageId")
        self._message(_id(self._chunk), event, payload.name(event.get("role")) or "assistant")

    def _continue_message(self, event: Message, seconds: float) -> None:
        message_id, delta = _id(event.get("messageId")), event.get("delta")
        message = self._message(message_id, event)
        if not isinstance(delta, str):
            return
        so_far = payload.joined(message.get("content"), "text")
        self._deltas.setdefault(message_id, [so_far]).append(delta)
        if message["role"] == "assistant" and delta.strip() and self._run.first_token_seconds is None:
            self._run.first_token_seconds = seconds

    def _add_message_chunk(self, event: Message, seconds: float) -> None:
        self._chunk = self._chunk if event.get("messageId") is None else event["messageId"]
        role = payload.name(event.get("role")) or "assistant"
        self._message(_id(self._chunk), event, role)
        self._continue_message({**event, "messageId": self._chunk}, seconds)

    def _message(self, message_id: str, event: Message, role: str = "assistant") -> Message:
        """Return a message of this run, which begins unless it has begun."""
        if message := self._new.get(message_id):
            return message
        message = self._new[message_id] = {"id": message_id, "role": role, "content": ""}
        self._messages.append(message)
        if event.get("subagentRunId"):
            self._of_subagents.add(message_id)
        return message

    def _start_call(self, event: Message, _: float) -> None:
        self._chunk = event.get("toolCallId")
        call_id, name = _id(self._chunk), payload.name(event.get("toolCallName"))
        if name is None:
            self._run.partial = True
        elif call_id not in self._calls:
            parent = self._new.get(_id(event.get("parentMessageId")))
            if parent is None or parent["role"] != "assistant":
                parent = self._message(_id(event.get("parentMessageId")) or call_id, event)
            function: dict[str, JsonValue] = {"name": name, "arguments": ""}
            if not isinstance(parent.get("toolCalls"), list):
                parent["toolCalls"] = []
            parent["toolCalls"].append({"id": call_id, "type": "function", "function": function})
            agent = self._agents.get(_id(event.get("subagentRunId")))
            self._calls[call_id] = OpenCall(call_id, name, function, agent=agent)

    def _continue_call(self, event: Message, _: float) -> None:
        call, delta = self._calls.get(_id(event.get("toolCallId"))), event.get("delta")
        if call is None:
            self._run.partial = True
        elif isinstance(delta, str):
            call.arguments.append(delta)

    def _add_call_chunk(self, event: Message, seconds: float) -> None:
        self._chunk = self._chunk if event.get("toolCallId") is None else event["toolCallId"]
        event = {**event, "toolCallId": self._chunk}
        if _id(self._chunk) not in self._calls:
            self._start_call(event, seconds)
        self._continue_call(event, seconds)
        if call := self._calls.get(_id(self._chunk)):
            call.complete = True  # chunks have no end of their own

    def _end_call(self, event: Message, _: float) -> None:
        if call := self._calls.get(_id(event.get("toolCallId"))):
            call.end()

    def _take_result(self, event: Message, _: float) -> None:
        call_id, content = _id(event.get("toolCallId")), event.get("content")
        if call := self._calls.get(call_id):
            call.result, call.returned = _result(content), True
            call.end()
        else:
            self._run.results[call_id] = _result(content)
        message_id = _id(event.get("messageId")) or f"result-{call_id}"
        message = {"id": message_id, "role": "tool", "toolCallId": call_id, "content": content or ""}
        self._messages.append(message)

    def _replace_state(self, event: Message, _: float) -> None:
        self._patcher.document = payload.clean(event.get("snapshot"))
        self._state.problem = None

    def _change_state(self, event: Message, _: float) -> None:
        if self._state.problem not in (None, NO_STATE):
            return  # unknown until the next snapshot
        try:
            self._patcher.apply(event.get("delta"))
            self._state.problem = None
        except PatchError as error:
            reason = payload.shorten(self._redactor.text(str(error)))
            self._state.problem = f"a STATE_DELTA does not apply to the state: {reason}"

    def _replace_messages(self, event: Message, _: float) -> None:
        """Take over a conversation that is sent whole, with what is new in it."""
        self._join_deltas()
        listed: Any = payload.clean(event.get("messages"))
        messages = [one for one in listed if _is_message(one)] if isinstance(listed, list) else []
        begin = self._thread().begin([*map(_seen, messages)])
        self._run.partial |= begin.doubt is not None
        sent = {one["id"] for one in self._sent if isinstance(one.get("id"), str)}
        spoken = {text for message in self._new.values() if (text := _words(message))}
        for message in messages[begin.place :]:
            if message["id"] in sent:
                continue
            call = self._calls.get(_id(message.get("toolCallId")))
            if message["role"] == "assistant":
                if _words(message) not in spoken:
                    self._new[message["id"]] = message
                self._take_calls(message)
            elif message["role"] == "tool" and call:
                call.result, call.returned = _result(message.get("content")), True
                call.failed = bool(message.get("error"))
        self._messages = messages

    def _thread(self) -> Thread:
        """Return the conversation before this run, by which a repeated one is recognized."""
        thread = Thread()
        for message in self._sent:
            if message.get("role") == "user":
                thread.ask(payload.joined(message.get("content"), "text"))
            else:
                thread.take("", [_seen(message)])
        return thread

    def _take_calls(self, message: Message) -> None:
        listed = message.get("toolCalls")
        for item in listed if isinstance(listed, list) else ():
            function = payload.filled(payload.member(item, "function")) or {}
            call_id, name = _id(payload.member(item, "id")), payload.name(function.get("name"))
            if name is None:
                self._run.partial = True
            elif call_id not in self._calls:
                arguments = function.get("arguments")
                text = arguments if isinstance(arguments, str) else written(arguments)
                self._calls[call_id] = OpenCall(call_id, name, function, [text], complete=True)

    def _name_subagent(self, event: Message, _: float) -> None:
        if name := payload.name(event.get("name")):
            self._agents[_id(event.get("subagentRunId"))] = name

    def _join_deltas(self) -> None:
        for message_id, deltas in self._deltas.items():
            self._new[message_id]["content"] = "".join(deltas)
        self._deltas.clear()

    def _texts(self) -> list[str]:
        """Return the agent's words; those of subagents only if it has none itself."""
        said = {key: text for key, message in self._new.items() if (text := _words(message))}
        own = [text for key, text in said.items() if key not in self._of_subagents]
        return own or [*said.values()]


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if a count is unknown, since a part would look like the whole."""
    listed = [*counts]
    known = [count for count in listed if count is not None]
    return sum(known) if len(known) == len(listed) else None


def _words(message: Message) -> str:
    """Return the words of an assistant's message; empty if there are none."""
    content = message.get("content")
    return content if message["role"] == "assistant" and isinstance(content, str) and content.strip() else ""


def _says_something(message: Message) -> bool:
    """Return whether a message is worth sending again: servers refuse empty ones of the assistant."""
    return message["role"] != "assistant" or bool(message.get("content") or message.get("toolCalls"))


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), str) and isinstance(item.get("role"), str)


def _seen(message: Message) -> Seen:
    """Return a message of a conversation by what makes it known again: servers may change ids."""
    role = "agent" if message["role"] == "assistant" else str(message["role"])
    listed = message.get("toolCalls")
    calls = chat_thread.digest(listed) if isinstance(listed, list) and listed else ""
    return Seen(role, payload.joined(message.get("content"), "text"), calls)


def _without_arguments(call: ToolCall) -> ToolCall:
    reason = "they had not finished when the run ended"
    return call.copy_with(arguments=None, not_captured=reason)


def _id(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _result(content: JsonValue) -> JsonValue:
    """Return a tool's result: JSON where the text is an object or a list, else the text."""
    text = payload.joined(content, "text")
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return payload.parse(text.encode(errors="replace"))
    except ValueError:
        return text
