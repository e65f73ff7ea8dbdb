"""Messages of the A2A protocol, versions 1.0 and 0.3: requests, and what answers mean. Pure.

An answer is a message or a task. A task comes whole, or in updates of a stream, which `Answer` puts together.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extension_support.missing_values import why_not_found
from ci_evals.extensions.a2a.card import Interface
from ci_evals.support import payload
from ci_evals.support.json_path import JsonPath
from ci_evals.support.json_text import canonical
from ci_evals.support.redaction import Redactor

UNFINISHED = frozenset({"SUBMITTED", "WORKING"})
_FAILED = frozenset({"FAILED", "REJECTED", "CANCELED"})
_ASKS = "INPUT_REQUIRED"
_LOCKED = "AUTH_REQUIRED"
_LAST = _FAILED | {"COMPLETED", _ASKS, _LOCKED}
_OF_THE_PROTOCOL = frozenset({-32700, -32600, -32601, -32602, *range(-32009, -32000)} - {-32006})
"""Codes of errors that say what is wrong with the request, and nothing about the agent's work."""
_KINDS = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
_METHODS = {
    "1.0": ("SendMessage", "SendStreamingMessage", "GetTask"),
    "0.3": ("message/send", "message/stream", "tasks/get"),
}

_GET = 2
"""The place of the method that looks at a task."""

Object = dict[str, JsonValue]


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    body: JsonValue
    idempotent: bool = False
    """False for messages: the agent may have acted on one."""


@dataclass(frozen=True)
class Conversation:
    """What is known of a conversation between two messages."""

    context_id: str | None = None
    task_id: str | None = None
    """The task that waits for input; a finished one takes no more messages."""
    seen: frozenset[str] = frozenset()
    """Digests of the artifacts and messages of earlier answers, which a task repeats."""


def send(
    interface: Interface,
    before: Conversation,
    text: str,
    message_id: str,
    metadata: JsonValue,
    *,
    stream: bool,
) -> Call:
    """Return the request that says a message."""
    old = interface.version == "0.3"
    message: Object = {"messageId": message_id, "role": "user" if old else "ROLE_USER"}
    message["parts"] = [{"kind": "text", "text": text} if old else {"text": text}]
    message |= {"kind": "message"} if old else {}
    message |= {"contextId": before.context_id} if before.context_id else {}
    message |= {"taskId": before.task_id} if before.task_id else {}
    message |= {"metadata": metadata} if metadata else {}
    params: Object = {"message": message}
    if old:
        params["configuration"] = {
            "blocking": True,
            "acceptedOutputModes": ["text/plain", "application/json"],
        }
    return _call(interface, int(stream), params, "/message:stream" if stream else "/message:send")


def get_task(interface: Interface, task_id: str) -> Call:
    """Return the request for a task."""
    return _call(interface, _GET, {"id": task_id}, f"/tasks/{quote(task_id, safe='')}")


def _call(interface: Interface, method: int, params: Object, rest: str) -> Call:
    tenant: Object = {"tenant": interface.tenant} if interface.tenant else {}
    looks = method == _GET
    if interface.binding == "JSONRPC":
        name = _METHODS[interface.version][method]
        body: Object = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {**params, **tenant}}
        return Call("POST", interface.path, body, looks)
    prefix = f"/{quote(interface.tenant, safe='')}" if interface.tenant else ""
    path = f"{interface.path.rstrip('/')}{prefix}{rest}"
    return Call("GET", path, None, looks) if looks else Call("POST", path, {**params, **tenant})


def result_of(body: JsonValue, interface: Interface) -> JsonValue:
    """Return the result in an answer that is no error."""
    return payload.member(body, "result") if interface.binding == "JSONRPC" else body


def error_of(body: JsonValue, interface: Interface, redactor: Redactor) -> str | None:
    """Return the agent's error in an answer; None if it is none.

    Raise `AgentError` if the error is about the request: the agent has not worked on the message.
    """
    error = payload.member(body, "error")
    if not error:
        return None
    code = payload.member(error, "code")
    reason = payload.explain(redactor.json(payload.member(error, "message"))) or _shown(error, redactor)
    told = f"{code}: {payload.shorten(reason)}"
    is_old = code in (-32009, -32601) or "VERSION_NOT_SUPPORTED" in json.dumps(error)
    hint = f" (its card promises A2A {interface.version})" if is_old else ""
    about_request = code in _OF_THE_PROTOCOL or (isinstance(code, int) and 400 <= code < 500)
    if hint or about_request:
        raise AgentError(f"the agent answered with an error: {told}{hint}")
    return told


@dataclass
class Answer:
    """The answer to one message, as its updates put it together."""

    message: Object | None = None
    context_id: str | None = None
    task_id: str | None = None
    state: str = ""
    """`COMPLETED`, `INPUT_REQUIRED`, …; empty before a task has one."""
    status_message: Object | None = None
    artifacts: dict[str, Object] = field(default_factory=dict)
    """By id, in the order in which they came."""
    messages: list[Object] = field(default_factory=list)
    """The agent's messages in the task's history, or with its earlier states."""
    error: str | None = None
    """The agent's own error, that it answered with."""

    @property
    def is_complete(self) -> bool:
        """True if nothing is to come before the user's next message."""
        return self.error is not None or self.message is not None or self.state in _LAST

    def add(self, result: JsonValue) -> None:
        """Add an update, or a whole task or message. Those of unknown kinds are passed over."""
        for kind, value in _updates(result):
            context = payload.name(value.get("contextId"))
            if self.context_id and context and context != self.context_id:
                raise AgentError("the agent answered in another conversation than the message's")
            self.context_id = self.context_id or context
            match kind:
                case "message":
                    self.message = value
                case "task":
                    self.task_id = payload.name(value.get("id")) or self.task_id
                    for message in _objects(value.get("history")):
                        self._keep(message)
                    for artifact in _objects(value.get("artifacts")):
                        self._add_artifact(artifact, append=False)
                    self._set_status(value)
                case "statusUpdate":
                    self.task_id = payload.name(value.get("taskId")) or self.task_id
                    self._set_status(value)
                case "artifactUpdate":
                    for artifact in _objects(value.get("artifact")):
                        self._add_artifact(artifact, append=value.get("append") is True)

    def _keep(self, message: Object) -> None:
        if str(message.get("role")).lower().endswith("agent"):
            self.messages.append(message)

    def _set_status(self, holder: Object) -> None:
        status = payload.member(holder, "status")
        state = str(payload.member(status, "state") or "").upper().replace("-", "_")
        self.state = state.removeprefix("TASK_STATE_")
        if self.status_message is not None:
            self.messages.append(self.status_message)
        self.status_message = payload.filled(payload.member(status, "message"))

    def _add_artifact(self, artifact: Object, *, append: bool) -> None:
        key = payload.name(artifact.get("artifactId")) or f" {len(self.artifacts)}"
        before = self.artifacts.get(key)
        if before is None or not append:
            self.artifacts[key] = artifact
            return
        parts = [*_objects(before.get("parts")), *_objects(artifact.get("parts"))]
        self.artifacts[key] = {**before, **artifact, "parts": [*parts]}
        if metadata := payload.filled(before.get("metadata")):
            self.artifacts[key]["metadata"] = metadata | (payload.filled(artifact.get("metadata")) or {})

    def next(self, before: Conversation) -> Conversation:
        """Return what is known after this answer."""
        added = [*self.messages, *filter(None, [self.status_message]), *self.artifacts.values()]
        waits = self.task_id if self.state == _ASKS else None
        seen = before.seen | set(map(_digest, added)) if waits else frozenset[str]()
        return Conversation(self.context_id or before.context_id, waits, seen)

    def new(self, seen: AbstractSet[str]) -> Object:
        """Return what this answer adds, as one object: a `message` or a `task`."""
        if self.message is not None:
            return {"message": self.message}
        artifacts: list[JsonValue] = [*_unseen(self.artifacts.values(), seen)]
        history: list[JsonValue] = [*_unseen(self.messages, seen)]
        status: Object = {"state": self.state, "message": self.status_message}
        return {"task": {"artifacts": artifacts, "history": history, "status": status}}


def ends(body: JsonValue, interface: Interface) -> bool:
    """Return whether an event completes an answer, be it by an error."""
    if payload.member(body, "error"):
        return True
    result = payload.member(body, "result") if interface.binding == "JSONRPC" else body
    answer = Answer()
    answer.add(result)
    return answer.is_complete


def has_words(event: JsonValue, interface: Interface) -> bool:
    """Return whether an event has words of the answer."""
    result = payload.member(event, "result") if interface.binding == "JSONRPC" else event
    for kind, value in _updates(result):
        holders = [value] if kind == "message" else _objects(value.get("artifact"))
        if any(_text(holder).strip() for holder in holders):
            return True
    return False


def reply(
    answer: Answer, seen: AbstractSet[str], seconds: float, path: JsonPath | None, redactor: Redactor
) -> Reply:
    """Read an answer; raise `AgentError` if it has no words, or the task cannot go on."""
    words = _words(answer, seen)
    if answer.state == _LOCKED:
        said = f": {payload.shorten(redactor.text(words))}" if words else ""
        raise AgentError(
            "the agent's task waits for an authorization (AUTH_REQUIRED), which no message can give: give "
            f"the agent its credentials before the run{said}"
        )
    if not answer.is_complete:
        raise AgentError(f"the agent's task is in the state {answer.state[:40]!r}, which A2A does not have")
    failed = answer.error is not None or answer.state in _FAILED
    detail = answer.error or f"the agent's task is {answer.state}"
    if not words and not failed and answer.state == _ASKS:
        raise AgentError(
            "the agent's task waits for input (INPUT_REQUIRED), but its message holds no question"
        )
    if not words and not failed:
        empty = "task" if answer.message is None else "message"
        raise AgentError(f"the agent gave an empty reply: its {empty} has no text and no data")
    calls, not_found = None, {}
    if path is not None:
        added = answer.new(seen)
        if (calls := _calls(added, path)) is None:
            not_found = {"toolCalls": why_not_found(path.text, "toolCalls", added, redactor)}
    return Reply(
        agent=words,
        latency_seconds=seconds,
        **views_of(calls),
        handed_over_apart=True,
        not_found=not_found,
        tool_calls_partial=answer.error is not None and calls is not None,
        error_response=failed if failed or answer.message is None else None,
        error_detail=detail if failed else None,
    )


def _words(answer: Answer, seen: AbstractSet[str]) -> str:
    if answer.message is not None:
        return _text(answer.message, "\n")
    texts = [_text(one) for one in _unseen(answer.artifacts.values(), seen)]
    if answer.status_message is not None:
        texts.append(_text(answer.status_message, "\n"))
    return "\n\n".join(dict.fromkeys(text for text in texts if text.strip()))


def _text(holder: Object, joint: str = "") -> str:
    """Return the texts of the parts, else their data; an artifact's parts may be pieces of one text."""
    parts = [*_objects(holder.get("parts"))]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    if any(text.strip() for text in texts):
        return joint.join(texts)
    data = [part["data"] for part in parts if part.get("data") is not None]
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in data)


def _calls(added: Object, path: JsonPath) -> tuple[ToolCall, ...] | None:
    """Return the tool calls at a path; None if nothing is there, which says nothing."""
    try:
        matches = path.find(added)
    except ValueError as error:
        raise AgentError(f"the agent's answer {error} for the path {path.text}") from None
    if not matches:
        return None
    items = [item for match in matches for item in (match if isinstance(match, list) else [match])]
    return tool_calls.read_all(items)


def _updates(result: JsonValue) -> Iterator[tuple[str, Object]]:
    """Yield the kind and value of an update: by its key in 1.0, by `kind` in 0.3."""
    if not isinstance(result, dict):
        return
    if isinstance(kind := result.get("kind"), str):
        yield _KINDS.get(kind, kind), result
        return
    for kind in ("task", "message", "statusUpdate", "artifactUpdate"):
        if isinstance(value := result.get(kind), dict):
            yield kind, value


def _unseen(items: Iterable[Object], seen: AbstractSet[str]) -> Iterator[Object]:
    yield from (item for item in items if _digest(item) not in seen)


def _digest(item: Object) -> str:
    return hashlib.sha256(canonical(item).encode(errors="replace")).hexdigest()


def _objects(value: JsonValue) -> Iterable[Object]:
    """Yield an object, or those of a list."""
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict))


def _shown(body: JsonValue, redactor: Redactor) -> str:
    return payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))
