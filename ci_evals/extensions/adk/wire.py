"""Events of Google's Agent Development Kit, as the servers of `adk` send them. Pure."""

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.transport.streams import Event
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import ToolCall
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor

_ASKS = "adk_request_"
"""Begins the names of calls by which ADK asks its client for something. They are no tools of the agent."""
_CONFIRMATION = "adk_request_confirmation"
_KEYS = frozenset({"author", "content", "actions", "errorCode", "invocationId"})
"""Of which an event has some."""

Message = dict[str, JsonValue]


@dataclass(frozen=True)
class _Made:
    """A call that a model made."""

    name: str
    arguments: JsonValue
    agent: str | None
    long_running: bool
    response: JsonValue = None
    answered: bool = False


@dataclass
class Run:
    """The events of one run, read."""

    texts: list[str] = field(default_factory=list)
    """The agent's words, by event."""
    made: dict[str, _Made] = field(default_factory=dict)
    """Calls by id, in order."""
    responses: dict[str, JsonValue] = field(default_factory=dict)
    """Responses to calls of earlier runs, by id."""
    asked: list[Message] = field(default_factory=list)
    """Calls by which ADK asks for a confirmation, or something else."""
    problem: str | None = None
    """What the model could not do, such as answering something that its filter withheld."""
    error: str | None = None
    """The error with which the run ended."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    first_token_seconds: float | None = None


def history(messages: Sequence[Message], agent: str) -> list[JsonValue]:
    """Return messages before a test as events; `agent` is the name of the agent that wrote its replies."""
    return [
        {
            "author": "user" if message["role"] == "user" else agent,
            "content": {
                "role": "user" if message["role"] == "user" else "model",
                "parts": [{"text": message["content"]}],
            },
        }
        for message in messages
    ]


def text_message(text: str) -> Message:
    """Return what the user says."""
    return {"role": "user", "parts": [{"text": text}]}


def confirmations(run: Run, answer: JsonValue, redactor: Redactor) -> Message:
    """Return the answer to all confirmations that a run asks for.

    Raises:
        AgentError: there is no answer, or it asks for something else.
    """
    for call in run.asked:
        name = str(call["name"])
        hint = payload.name(payload.member(payload.member(call.get("args"), "toolConfirmation"), "hint"))
        shown = payload.shorten(redactor.text(hint or name))
        if name != _CONFIRMATION:
            raise AgentError(
                f"the agent asks its client for something that ci-evals cannot provide ({shown})"
            )
        if answer is None:
            raise AgentError(
                f"the agent waits for a decision ({shown}); set the answer in adapterOptions.confirmation"
            )
    parts: list[JsonValue] = [
        {"functionResponse": {"id": call.get("id"), "name": call["name"], "response": answer}}
        for call in run.asked
    ]
    return {"role": "user", "parts": parts}


def read(events: Sequence[Event], redactor: Redactor) -> Run:
    """Read the events of a run.

    Raises:
        AgentError: the run stopped in the middle, or they are none of ADK.
    """
    reader = _Reader(redactor)
    for event in events:
        reader.read(event.value, event.seconds)
    return reader.run()


def calls_of(runs: Sequence[Run]) -> tuple[ToolCall, ...] | None:
    """Return the calls of the runs for one message in order; None if one cannot be read."""
    responses: dict[str, JsonValue] = {}
    for run in runs:
        responses |= run.responses
    calls = []
    for run in runs:
        for key, call in run.made.items():
            response = responses.get(key, call.response)
            answered = call.answered or key in responses
            calls.append(_call_fields(key, replace(call, response=response, answered=answered)))
    return tool_calls.read_all(calls)


def _call_fields(key: str, call: _Made) -> dict[str, JsonValue]:
    """Return a call as `tool_calls` reads it."""
    fields: dict[str, JsonValue] = {
        "id": key,
        "name": call.name,
        "arguments": call.arguments,
        "agent": call.agent,
        "result": call.response,
    }
    if call.answered:
        fields["status"] = "error" if tool_calls.is_error(call.response) else "ok"
    return fields


def state_of(session: JsonValue, redactor: Redactor) -> JsonValue:
    """Return the state of a session; raise `AgentError` if it has none."""
    if not isinstance(session, dict) or not isinstance(session.get("state"), dict):
        raise AgentError(f"the agent's session has no state: {_shown(session, redactor)}")
    return session["state"]


def _shown(value: JsonValue, redactor: Redactor) -> str:
    return payload.shorten(json.dumps(redactor.json(value), ensure_ascii=False))


class _Reader:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._run = redactor, Run()
        self._open: dict[str, deque[str]] = defaultdict(deque)
        """The calls of each tool, for responses without an id."""

    def run(self) -> Run:
        """Return the run, after its last event."""
        run = self._run
        if run.error is not None:
            return run
        open_calls = [one.name for one in run.made.values() if not (one.answered or one.long_running)]
        if open_calls and not run.texts[-1:] and not run.asked:
            name = payload.shorten(self._redactor.text(open_calls[-1]))
            raise AgentError(f"the agent's run stopped after the call of {name!r}, before its response")
        return run

    def read(self, event: JsonValue, seconds: float) -> None:
        """Read one event."""
        if isinstance(event, dict) and event.get("error") and "author" not in event:
            reason = payload.explain(self._redactor.json(event))
            self._run.error = payload.shorten(reason or "no reason given")
            return
        if not isinstance(event, dict) or _KEYS.isdisjoint(event):
            shown = _shown(event, self._redactor)
            raise AgentError(
                f"the agent sent an event that ADK does not have: {shown} (is the base URL right?)"
            )
        words = self._read_parts(event)
        if words.strip() and self._run.first_token_seconds is None:
            self._run.first_token_seconds = seconds
        if event.get("partial") is True:
            return
        if words.strip():
            self._run.texts.append(words)
        self._count(event.get("usageMetadata"))
        if event.get("errorCode"):
            told = {"code": event["errorCode"], "message": event.get("errorMessage")}
            self._run.problem = payload.shorten(payload.explain(self._redactor.json(told)) or "unknown")

    def _read_parts(self, event: JsonObject) -> str:
        """Take over an event's calls and responses, and return its words."""
        parts = payload.member(event.get("content"), "parts")
        words: list[str] = []
        for part in parts if isinstance(parts, list) else ():
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str) and not part.get("thought"):
                words.append(text)
            if event.get("partial") is True:
                continue
            # An empty one is a call that cannot be read, and no sign that there was none.
            if (call := _of_tool(part, "functionCall", "toolCall")) is not None:
                self._call(call, event)
            if (response := _of_tool(part, "functionResponse", "toolResponse")) is not None:
                self._respond(response)
        return "".join(words) if event.get("author") != "user" else ""

    def _call(self, call: JsonObject, event: JsonObject) -> None:
        name = payload.name(call.get("name")) or ""
        if name.startswith(_ASKS):
            self._run.asked.append(call)
            return
        long_running = event.get("longRunningToolIds")
        call_id = payload.name(call.get("id")) or f"call-{len(self._run.made) + 1}"
        self._open[name].append(call_id)
        self._run.made[call_id] = _Made(
            name=name,
            # A tool without arguments has none on the wire.
            arguments=call.get("args") if call.get("args") is not None else {},
            agent=payload.name(event.get("author")),
            long_running=isinstance(long_running, list) and call.get("id") in long_running,
        )

    def _respond(self, response: JsonObject) -> None:
        made, call_id = self._run.made, payload.name(response.get("id"))
        if call_id is None:
            same = self._open.get(payload.name(response.get("name")) or "", deque())
            call_id = same.popleft() if same else ""
        told = response.get("response")
        if call_id in made:
            made[call_id] = replace(made[call_id], response=told, answered=True)
        else:
            self._run.responses[call_id] = told

    def _count(self, usage: JsonValue) -> None:
        """Add up the tokens of a model's answer; thoughts count as written."""
        if not isinstance(usage, dict):
            return
        read, written = (token_count(usage.get(key)) for key in ("promptTokenCount", "candidatesTokenCount"))
        if read is not None:
            self._run.input_tokens = (self._run.input_tokens or 0) + read
        thoughts = token_count(usage.get("thoughtsTokenCount")) or 0
        if written is not None or thoughts:
            self._run.output_tokens = (self._run.output_tokens or 0) + (written or 0) + thoughts


def _of_tool(part: JsonObject, of_agent: str, of_model: str) -> JsonObject | None:
    """Return a call or response of a tool of the agent or of the model, such as `google_search_web`."""
    if isinstance(own := part.get(of_agent), dict):
        return own
    if isinstance(hosted := part.get(of_model), dict):
        return hosted | {"name": (payload.name(hosted.get("toolType")) or "").lower()}
    return None
