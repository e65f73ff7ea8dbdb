"""The wire of AUI's task API, without its transport: what to send, and what an answer means. Pure.

Servers of this API differ in small ways, older and newer ones in larger. What is read here is lenient about
names and shapes and strict about evidence: a trace field that cannot be read is null (*no evidence*), never
empty (*nothing happened*).
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from ci_evals.adapters import payload
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.transcript import Integration, Reply

DEFAULT_BASE_URL = "https://api.aui.io/ia-controller"
DEFAULT_KEY_HEADER = "x-network-api-key"
DEFAULT_TASK_ORIGIN_TYPE = "web-widget"

MESSAGE_PATH = "/message"
MESSAGE_FLAGS = {
    "is_external_api": "true",
    "include_trace_info": "true",
    "include_business_trace": "true",
    "include_context_trace": "true",
}
"""Query parameters, never body fields. Without them the reply has no trace; servers of different age know
different ones of them, and pass over the others."""
TASKS_PATH = "/tasks"
TRACE_FLAGS = {"include_business_logic": "true", "include_context_logic": "true"}

_PREFIX = "/api/v1/external"
_AUI_HOSTS = ".aui.io"
_AUI_PREFIX = "/ia-controller"

_TRACE_KEYS = ("trace_info", "traceInfo", "trace")
_TEXT_KEYS = ("text", "message", "response", "content")
_WORKFLOW_KEYS = ("executed_workflows", "executedWorkflows")
_PARAM_KEYS = ("extracted_params", "extractedParams", "parameters_extracted", "parametersExtracted")
_PARAM_NAMES = ("code", "param", "name", "key")
_PARAM_NOTES = frozenset({*_PARAM_NAMES, "value", "title", "type", "scope"})
_POSITIVE = frozenset({"true", "triggered", "fired"})


class AgentIdPlace(StrEnum):
    """Where the create-task body names the agent: servers of different age look in different places."""

    TOP = "top"
    NESTED = "nested"
    BOTH = "both"
    NONE = "none"


def external_url(base_url: str) -> str:
    """The address that the paths of the API go after, whatever part of it `base_url` names.

    Raises:
        UsageError: `base_url` is no http or https address.
    """
    text = base_url.strip()
    if "@" in text:
        raise UsageError(
            "the agent's base URL may hold no user name or password; headers can be set by --agent-headers"
        )
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in text):
        raise UsageError(f"the agent's base URL {base_url!r} is no http(s):// address (see --base-url)")
    if parts.query or parts.fragment:
        raise UsageError(f"the agent's base URL {base_url!r} must end before '?' and '#' (see --base-url)")
    path = parts.path.rstrip("/").removesuffix(_PREFIX)
    if not path and (parts.hostname or "").endswith(_AUI_HOSTS):
        path = _AUI_PREFIX
    return f"{parts.scheme}://{parts.netloc}{path}{_PREFIX}"


def task_body(
    user_id: str, agent_id: str | None, place: AgentIdPlace, task_origin_type: str
) -> dict[str, Any]:
    """The body that creates a task."""
    body: dict[str, Any] = {"user_id": user_id, "task_origin_type": task_origin_type}
    if agent_id and place in (AgentIdPlace.TOP, AgentIdPlace.BOTH):
        body["agent_id"] = agent_id
    if agent_id and place in (AgentIdPlace.NESTED, AgentIdPlace.BOTH):
        body["agent"] = {"agent_id": agent_id}
    return body


def message_body(task_id: str, text: str, variables: Mapping[str, JsonValue]) -> dict[str, Any]:
    """The body that sends a message. The agent keeps no variable: all are sent every time."""
    return {"task_id": task_id, "text": text, "agent_variables": dict(variables)}


def trace_path(task_id: str, message_id: str) -> str:
    """Where the trace of one reply is."""
    return f"{TASKS_PATH}/{quote(task_id, safe='')}/messages/{quote(message_id, safe='')}/trace-info"


def task_id_of(body: JsonValue) -> str:
    """The id of the task that was created.

    Raises:
        AgentError: there is none.
    """
    for place in (body, _get(body, "data")):
        for key in ("id", "task_id", "taskId"):
            if task_id := _id(_get(place, key)):
                return task_id
    raise AgentError(f"the agent opened a task without an id: {_what(body)}")


def message_id_of(body: JsonValue) -> str | None:
    """The id of a reply, where it tells one."""
    message = _message(body)
    return next(
        (found for key in ("id", "message_id", "messageId") if (found := _id(message.get(key)))), None
    )


def trace_of(body: JsonValue) -> dict[str, JsonValue] | None:
    """The trace inside a reply; none if it is missing, null or empty."""
    message = _message(body)
    return next((found for key in _TRACE_KEYS if (found := _dict(message.get(key)))), None)


def fetched_trace_of(body: JsonValue, message_id: str) -> dict[str, JsonValue] | None:
    """The trace in the answer to a trace-info call: bare, wrapped, or one of a list."""
    if isinstance(body, list):
        traces = [item for item in body if isinstance(item, dict)]
        if len(traces) != 1:
            keys = ("message_id", "messageId", "interaction_id", "id")
            traces = [item for item in traces if any(item.get(key) == message_id for key in keys)]
        return fetched_trace_of(traces[0], message_id) if len(traces) == 1 else None
    for key in (*_TRACE_KEYS, "data", "items"):
        if isinstance(inner := _get(body, key), dict | list) and inner:
            return fetched_trace_of(inner, message_id)
    return _dict(body)


def read_reply(
    body: JsonValue, latency_seconds: float, *, fetched_trace: JsonValue = None, keep_raw: bool = False
) -> Reply:
    """A reply in our words.

    Args:
        body: The answer to a message, as `payload.parse` gives it.
        latency_seconds: How long the agent took.
        fetched_trace: The trace, where it was asked for apart because the reply holds none.
        keep_raw: Whether to keep the whole body.

    Raises:
        AgentError: it is no reply.
    """
    message = _message(body)
    trace = trace_of(body) or _dict(fetched_trace)
    workflows = _workflows(message)
    derived = workflows is None and trace is not None
    params = _params(trace) if trace else None
    return Reply(
        agent=_text(message, trace is not None or workflows is not None),
        latency_seconds=latency_seconds,
        workflows=_activated(trace) if trace and derived else workflows,
        workflows_derived=derived,
        params=params,
        named_params=_named_params(trace) if trace and params is not None else (),
        rules=_rules(trace) if trace else None,
        integrations=_integrations(trace) if trace else None,
        error_response=_error_response(trace) if trace else None,
        error_detail=_error_detail(trace) if trace else None,
        trace=trace,
        raw=body if keep_raw else None,
    )


def _message(body: JsonValue) -> dict[str, JsonValue]:
    """The object that holds the reply: the body, or what it wraps as `data`."""
    if not isinstance(body, dict):
        raise AgentError(f"the agent's answer cannot be read: {_what(body)}")
    data = body.get("data")
    known = (*_TEXT_KEYS, *_TRACE_KEYS, *_WORKFLOW_KEYS)
    return data if isinstance(data, dict) and not any(key in body for key in known) else body


def _text(message: dict[str, JsonValue], answered: bool) -> str:
    keys = [key for key in _TEXT_KEYS if key in message]
    for key in keys:
        text = _text_in(message[key])
        if text is not None:
            return text
    if not keys and not answered:
        raise AgentError(f"the agent's answer holds no text: {_what(message)}")
    return ""


def _text_in(value: JsonValue) -> str | None:
    match value:
        case str():
            return value
        case bool() | None:
            return None
        case int() | float():
            return str(value)
        case dict():
            return next((text for key in _TEXT_KEYS if (text := _text_in(value.get(key))) is not None), None)
        case list():
            parts = [text for item in value if (text := _text_in(item)) is not None]
            return "".join(parts) if parts else None


def _workflows(message: dict[str, JsonValue]) -> tuple[str, ...] | None:
    value = next((message[key] for key in _WORKFLOW_KEYS if message.get(key) is not None), None)
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        return None
    names = tuple(name for item in value if (name := _name(item, ("name", "code", "workflow"))))
    return names if names or not value else None


def _activated(trace: dict[str, JsonValue]) -> tuple[str, ...]:
    """The tools that the trace says were taken up: what stands for workflows where the reply names none."""
    decisions = _decisions(trace) or ()
    tools = (
        _name(d.get("tool")) for d in decisions if d.get("type") in ("activate_tool", "activate_sub_tool")
    )
    return _unique(tool for tool in tools if tool)


def _param_values(trace: dict[str, JsonValue]) -> Iterator[JsonValue]:
    for place in (_dict(trace.get("understanding")), trace):
        for key in _PARAM_KEYS:
            if place and place.get(key) is not None:
                yield place[key]


def _params(trace: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Extracted parameters by code; none where the trace lacks the part that would tell."""
    found = list(_param_values(trace))
    readable = [value for value in found if isinstance(value, dict | list)]
    if not readable:
        return {} if not found and isinstance(trace.get("understanding"), dict) else None
    params: dict[str, JsonValue] = {}
    for value in readable:
        if isinstance(value, dict):
            params |= {code: _unwrapped(item) for code, item in value.items()}
        else:
            entries = (item for item in value if isinstance(item, dict) and "value" in item)
            params |= {name: item["value"] for item in entries if (name := _name(item, _PARAM_NAMES))}
    return params


def _named_params(trace: dict[str, JsonValue]) -> tuple[str, ...]:
    """Parameters that are named without a value."""
    lists = [value for value in _param_values(trace) if isinstance(value, list)]
    if isinstance(computed := trace.get("computed_parameters"), list):
        lists.append(computed)
    bare = (i for items in lists for i in items if not (isinstance(i, dict) and "value" in i))
    return _unique(name for item in bare if (name := _name(item, _PARAM_NAMES)))


def _unwrapped(value: JsonValue) -> JsonValue:
    """The value of `{"value": …}`; an object with other keys is itself the value."""
    if isinstance(value, dict) and "value" in value and _PARAM_NOTES.issuperset(value):
        return value["value"]
    return value


def _decisions(trace: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], ...] | None:
    """What the agent decided; none where the trace cannot tell.

    A trace with an `understanding` has the business part: it leaves `decisions` out when there were none.
    """
    decisions = trace.get("decisions")
    if isinstance(decisions, list):
        return tuple(item for item in decisions if isinstance(item, dict))
    return () if decisions is None and isinstance(trace.get("understanding"), dict) else None


def _rules(trace: dict[str, JsonValue]) -> tuple[str, ...] | None:
    """Codes of the rules that fired. `rules_evaluations` also lists rules that did not, and is never read."""
    evaluated = [
        place["rules_evaluated"]
        for place in (trace, _dict(trace.get("understanding")))
        if place and isinstance(place.get("rules_evaluated"), list)
    ]
    decisions = _decisions(trace)
    if decisions is None and not evaluated:
        return None
    fired = [*_fired_in_decisions(decisions or ())]
    for items in evaluated:
        fired += [code for code, positive in _results(items) if positive]
    return _unique(fired)


def _fired_in_decisions(decisions: Iterable[dict[str, JsonValue]]) -> Iterator[str]:
    for decision in decisions:
        if code := _name(_get(decision.get("rule"), "code")):
            yield code
        elif isinstance(rules := decision.get("rules"), list):
            # Listed in a decision means fired, unless the entry itself says that it did not.
            yield from (code for code, positive in _results(rules) if positive is not False)
        yield from (code for code, positive in _results(decision.get("rules_evaluated")) if positive)


def _results(items: JsonValue) -> Iterator[tuple[str, bool | None]]:
    """Each rule's code, and whether it fired (null where the entry does not say)."""
    for item in items if isinstance(items, list) else ():
        if not (code := _name(item, ("code", "rule_id", "ruleId", "id"))):
            continue
        told = (
            [item[k] for k in ("triggered", "result", "fired") if k in item] if isinstance(item, dict) else []
        )
        positive = any(str(value).strip().lower() in _POSITIVE for value in told)
        yield code, positive if told else None


def _integrations(trace: dict[str, JsonValue]) -> tuple[Integration, ...] | None:
    decisions = _decisions(trace)
    if decisions is None:
        return None
    calls = (_dict(decision.get("integration")) for decision in decisions)
    return tuple(
        _integration(call, code) for call in calls if call and (code := _name(call, ("code", "name")))
    )


def _integration(call: dict[str, JsonValue], code: str) -> Integration:
    status = next(
        (s for key in ("status_code", "statusCode") if (s := _status(call.get(key))) is not None), None
    )
    error = call.get("error_message") or call.get("errorMessage")
    return Integration(
        code=code,
        status=status,
        type=_name(call.get("type")),
        error=payload.explain(error) if error else None,
    )


def _status(value: JsonValue) -> int | None:
    """An HTTP status, given as a number or as text."""
    match value:
        case bool():
            return None
        case int() | float() if value == int(value) and 0 <= value <= 999:
            return int(value)
        case str() if value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 3:
            return int(value)
        case _:
            return None


def _error_response(trace: dict[str, JsonValue]) -> bool | None:
    kind = _get(trace.get("response"), "type")
    return kind == "error" if isinstance(kind, str) else None


def _error_detail(trace: dict[str, JsonValue]) -> str | None:
    error = _get(trace.get("response"), "error")
    return payload.shorten(payload.explain(error) or str(error)) if error else None


def _what(value: JsonValue) -> str:
    """What a body is, for a message that says it is the wrong thing."""
    if isinstance(value, dict):
        told = payload.explain(value)
        return (
            payload.shorten(told) if told else f"an object with the keys {payload.shorten(str(list(value)))}"
        )
    if isinstance(value, list):
        return "a list, not an object"
    return f"{payload.shorten(repr(value))}, not an object"


def _name(value: JsonValue, keys: Iterable[str] = ()) -> str | None:
    """A name: a text that is not blank, or such a text under one of `keys`."""
    if isinstance(value, dict):
        return next((name for key in keys if (name := _name(value.get(key)))), None)
    return value if isinstance(value, str) and value.strip() else None


def _id(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _get(value: JsonValue, key: str) -> JsonValue:
    return value.get(key) if isinstance(value, dict) else None


def _dict(value: JsonValue) -> dict[str, JsonValue] | None:
    return value if isinstance(value, dict) and value else None


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
