"""Messages of a LangGraph Server: what a run is asked, and what its events and the thread's state mean. Pure.

Updates of a run's nodes tell which messages are new, also those of subgraphs, which the thread does not keep.
The state after the run tells whether it has ended, and what the agent said.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.hand_over import hand_over
from ci_evals.adapters.transport.streams import Event, Stream
from ci_evals.domain.actions import views_of
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extensions.langgraph.options import LangGraphOptions
from ci_evals.support import payload, placeholders
from ci_evals.support.redaction import Redactor

_AI = ("ai", "AIMessageChunk", "assistant")
_TOOL = ("tool", "ToolMessage", "function")
_INTERRUPTS = "__interrupt__"
_CANCELED = frozenset({"UserInterrupt", "UserRollback", "CancelledError"})
"""Errors of runs that somebody ended."""

Object = dict[str, JsonValue]


class _Message(NamedTuple):
    """A message that a node wrote."""

    value: Object
    agent: str | None
    """The subgraph that wrote it."""


@dataclass(frozen=True)
class ThreadState:
    """The state of a thread between two runs."""

    values: Object
    """The values of the graph's state."""
    messages: tuple[Object, ...]
    questions: tuple[JsonValue, ...]
    """The values of the interrupts that wait for an answer."""
    waiting: tuple[str, ...]
    """The nodes that were due when the run ended: none, if the graph came to its end."""
    error: str | None = None
    """The error with which a node ended."""

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its messages."""
        return frozenset(id_ for message in self.messages if (id_ := _id(message)))


NEW_THREAD = ThreadState({}, (), (), ())


def user_message(text: str) -> Object:
    """Return a message of the user."""
    return {"role": "user", "content": text, "id": str(uuid4())}


def run_request(
    messages: Sequence[Object], before: ThreadState, options: LangGraphOptions, lookup: placeholders.Lookup
) -> Object:
    """Return the body of a run that adds messages, or answers the question of an interrupt."""
    body: Object = {
        "assistant_id": lookup("agentId"),
        "stream_mode": ["updates"],
        "stream_subgraphs": True,
        "on_disconnect": "cancel",
    }
    for name, value in (("context", options.context), ("config", options.config)):
        if value:
            body[name] = placeholders.filled(value, lookup)
    if before.questions:
        return body | {"command": {"resume": placeholders.filled(options.resume, lookup)}}
    more = placeholders.filled(options.input, lookup)
    return body | {"input": {**(payload.filled(more) or {}), options.messages: [*messages]}}


def thread_id(body: JsonValue, redactor: Redactor) -> str:
    """Return the id of a thread that was created; raise `AgentError` if there is none."""
    if name := payload.name(payload.member(body, "thread_id")):
        return name
    raise AgentError(
        f"the server is not a LangGraph Server: it created a thread without an id: {_shown(body, redactor)}"
    )


def thread_state(body: JsonValue, options: LangGraphOptions, redactor: Redactor) -> ThreadState:
    """Read the state of a thread; raise `AgentError` if it is none."""
    values = payload.member(body, "values")
    if not isinstance(values, dict):
        raise AgentError(f"the agent's thread has no state that can be read: {_shown(body, redactor)}")
    waiting = payload.member(body, "next")
    return ThreadState(
        values,
        tuple(_objects(values.get(options.messages))),
        tuple(payload.member(one, "value") for one in _interrupts(body)),
        tuple(name for name in waiting if isinstance(name, str)) if isinstance(waiting, list) else (),
        _error_of_tasks(body, redactor),
    )


def _error_of_tasks(body: JsonValue, redactor: Redactor) -> str | None:
    for task in _objects(payload.member(body, "tasks")):
        if error := task.get("error"):
            reason = payload.explain(redactor.json(error)) or _shown(error, redactor)
            return f"{payload.name(task.get('name')) or 'a node'}: {payload.shorten(reason)}"
    return None


def own_state(state: ThreadState, options: LangGraphOptions) -> JsonValue:
    """Return what a graph keeps beside the messages."""
    return {key: value for key, value in state.values.items() if key != options.messages}


def error_of(events: Iterable[Event], redactor: Redactor) -> str | None:
    """Return the error with which a run ended: the server tells it by an event, whatever the status.

    Raise `AgentError` if the run was canceled: that is none of the agent's.
    """
    for event in events:
        error = payload.member(event.value, "__error__")
        if _kind(event) == "error" or error:
            name = payload.name(payload.member(error or event.value, "error"))
            message = payload.explain(redactor.json(payload.member(error or event.value, "message")))
            reason = ": ".join(part for part in (name, message) if part) or _shown(event.value, redactor)
            reason = payload.shorten(redactor.text(reason))
            if name in _CANCELED:
                raise AgentError(f"the agent's run was canceled: {reason}")
            return reason
    return None


def failed(
    stream: Stream, before: ThreadState, options: LangGraphOptions, sent: Sequence[Object], error: str
) -> Reply:
    """Return the reply of a run that ended with an error: what its nodes wrote until then."""
    known = before.ids.union(*({_id(message) or ""} for message in sent))
    written = [*_written(stream.events, known, options)]
    answers = [message for message in written if _type(message.value) in _AI]
    texts = [payload.joined(one.value.get("content"), "text") for one in answers if one.agent is None]
    calls = _calls(written, answers)
    return Reply(
        agent="\n\n".join(text for text in texts if text.strip()),
        latency_seconds=stream.seconds,
        **views_of(calls),
        tool_calls_partial=calls is not None,
        handed_over=_hand_over(calls, options, all_known=False),
        handed_over_apart=True,
        error_response=True,
        error_detail=error,
    )


def reply(
    stream: Stream,
    before: ThreadState,
    after: ThreadState,
    options: LangGraphOptions,
    sent: Sequence[Object],
) -> Reply:
    """Read a reply from the events of a run that was sent messages, and the states around it.

    Raises:
        AgentError: there is none.
    """
    known = before.ids.union(*({_id(message) or ""} for message in sent))
    written = [*_written(stream.events, known, options)]
    answers = [message for message in written if _type(message.value) in _AI]
    calls = _calls(written, answers)
    handed_over = _hand_over(calls, options, all_known=calls is not None)
    text = _text(before, after, known, sent)
    if after.waiting and not after.questions:
        raise AgentError(
            f"the agent's run stopped before the node {after.waiting[0]!r} without a question: "
            "it was cut off, or the graph has a breakpoint there"
        )
    if not text and not handed_over:
        if options.messages in after.values:
            raise AgentError(f"the agent's run added no words to {options.messages!r} of the graph's state")
        keys = ", ".join(after.values) or "nothing"
        raise AgentError(
            f"the graph's state has no {options.messages!r} (it has: {keys}): "
            "name the key by adapterOptions.messages"
        )
    return Reply(
        agent=text,
        latency_seconds=stream.seconds,
        **views_of(calls),
        handed_over=handed_over,
        handed_over_apart=True,
        input_tokens=_tokens(answers, "input_tokens"),
        output_tokens=_tokens(answers, "output_tokens"),
    )


def _hand_over(
    calls: Iterable[ToolCall] | None, options: LangGraphOptions, *, all_known: bool
) -> bool | None:
    return hand_over((call.name for call in calls or ()), options.escalation_tools, all_known=all_known)


def _text(before: ThreadState, after: ThreadState, known: AbstractSet[str], sent: Sequence[Object]) -> str:
    """Return the words that the thread has gained, and the questions that now wait for an answer."""
    words = [message["content"] for message in sent]
    added = [
        message
        for index, message in enumerate(after.messages)
        if _is_new(message, known)
        and (_id(message) or index >= len(before.messages))
        # A graph may give other ids to what it was sent, or none.
        and (before.messages or [message.get("content")] != words[index : index + 1])
    ]
    texts = [payload.joined(message.get("content"), "text") for message in added if _type(message) in _AI]
    return "\n\n".join(text for text in (*texts, *map(_question, after.questions)) if text.strip())


def _question(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    asked = payload.name(value, ("question", "message", "text", "prompt", "description"))
    return asked or json.dumps(value, ensure_ascii=False)


def _written(
    events: Iterable[Event], known: AbstractSet[str], options: LangGraphOptions
) -> Iterator[_Message]:
    """Yield each new message once, in the order in which nodes wrote them."""
    seen = set(known)
    for event in events:
        if _kind(event) != "updates" or not isinstance(event.value, dict):
            continue
        _, _, namespace = event.type.partition("|")
        agent = namespace.partition(":")[0] or None
        for node, update in event.value.items():
            for part in _objects(update) if node != _INTERRUPTS else ():
                for message in _objects(part.get(options.messages)):
                    if _is_new(message, seen):
                        seen |= {_id(message) or ""} - {""}
                        yield _Message(message, agent)


def _calls(written: Sequence[_Message], answers: Sequence[_Message]) -> tuple[ToolCall, ...] | None:
    """Return the calls with their results; None if a message may hold calls that cannot be read."""
    items: list[JsonValue] = []
    for message, agent in answers:
        listed = message.get("tool_calls")
        if not isinstance(listed, list):
            return None
        broken = message.get("invalid_tool_calls")
        by = payload.name(message.get("name")) or agent
        if isinstance(broken, list):
            listed = [*listed, *broken]
        items += [{**item, "agent": by} if isinstance(item, dict) else item for item in listed]
    calls = tool_calls.read_all(items) if answers else None
    results = [message.value for message in written if _type(message.value) in _TOOL]
    return calls and tool_calls.with_results(calls, results)


def _tokens(answers: Sequence[_Message], key: str) -> int | None:
    """Return the sum of all counts; None if one is unknown, since a part would look like the whole."""
    counts = [token_count(payload.member(one.value.get("usage_metadata"), key)) for one in answers]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _interrupts(body: JsonValue) -> Iterator[JsonValue]:
    """Yield the interrupts of a state, which older servers tell by task only."""
    listed = payload.member(body, "interrupts")
    if isinstance(listed, list) and listed:
        yield from listed
        return
    for task in _objects(payload.member(body, "tasks")):
        inner = task.get("interrupts")
        yield from inner if isinstance(inner, list) else ()


def _objects(value: JsonValue) -> Iterator[Object]:
    """Yield an object, or those of a list."""
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict))


def _is_new(message: Mapping[str, JsonValue], known: AbstractSet[str]) -> bool:
    return _id(message) not in known


def _id(message: Mapping[str, JsonValue]) -> str | None:
    return payload.name(message.get("id"))


def _type(message: Mapping[str, JsonValue]) -> str:
    return str(message.get("type") or message.get("role"))


def _kind(event: Event) -> str:
    return event.type.partition("|")[0]


def _shown(body: JsonValue, redactor: Redactor) -> str:
    return payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))
