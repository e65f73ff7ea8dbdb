"""Messages of AUI's task API. Pure.

Servers of this API differ, old and new ones especially. Reading is lenient about names and shapes and strict
about evidence: a trace field that cannot be read is null (*no evidence*), never empty (*nothing happened*).
"""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import JsonValue

from ci_evals.adapters.transport import addresses
from ci_evals.agents.aui import trace as aui_trace
from ci_evals.agents.aui.options import AuiOptions
from ci_evals.domain.base import token_count
from ci_evals.domain.choices import AgentIdLocation
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import ESCALATION, Reply
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor

MESSAGE_PATH = "/message"
MESSAGE_FLAGS = {
    "is_external_api": "true",
    "include_trace_info": "true",
    "include_business_trace": "true",
    "include_context_trace": "true",
}
"""Query parameters, never body fields. Without them the reply has no trace; each server ignores those that it
does not know."""
TASKS_PATH = "/tasks"
TRACE_FLAGS = {"include_business_logic": "true", "include_context_logic": "true"}

_PREFIX = "/api/v1/external"
_AUI_HOSTS = ".aui.io"
_AUI_PREFIX = "/ia-controller"

_TRACE_KEYS = ("trace_info", "traceInfo", "trace")
_TEXT_KEYS = ("text", "message", "response", "content")
_WORKFLOW_KEYS = ("executed_workflows", "executedWorkflows")
_WORKFLOW_NAMES = ("name", "code", "workflow")
_ERROR_KEYS = ("error", "errors", "detail")


def external_url(base_url: str) -> str:
    """Return the address before the paths of the API, whatever part of it `base_url` holds."""
    parts = addresses.base_url_parts(base_url)
    path = parts.path.rstrip("/").removesuffix(_PREFIX)
    if not path and (parts.hostname or "").endswith(_AUI_HOSTS):
        path = _AUI_PREFIX
    return f"{parts.scheme}://{parts.netloc}{path}{_PREFIX}"


def task_body(user_id: str, agent_id: str | None, options: AuiOptions) -> JsonObject:
    """Return the body that creates a task."""
    body: JsonObject = {"user_id": user_id, "task_origin_type": options.task_origin_type}
    if agent_id and options.agent_id_in in (AgentIdLocation.TOP, AgentIdLocation.BOTH):
        body["agent_id"] = agent_id
    if agent_id and options.agent_id_in in (AgentIdLocation.NESTED, AgentIdLocation.BOTH):
        body["agent"] = {"agent_id": agent_id}
    return body


def message_body(task_id: str, text: str, variables: Mapping[str, JsonValue]) -> JsonObject:
    """Return the body that sends a message. The agent keeps no variables: all are sent every time."""
    return {"task_id": task_id, "text": text, "agent_variables": dict(variables)}


def trace_path(task_id: str, message_id: str) -> str:
    """Return the path of the trace of one reply."""
    return f"{TASKS_PATH}/{quote(task_id, safe='')}/messages/{quote(message_id, safe='')}/trace-info"


def task_id_of(body: JsonValue, redactor: Redactor) -> str:
    """Return the id of the task that was created; raise `AgentError` if there is none."""
    for holder in (body, payload.member(body, "data")):
        if task_id := _id_in(payload.filled(holder) or {}, "id", "task_id", "taskId"):
            return task_id
    raise AgentError(f"the agent opened a task without an id: {_summary(body, redactor)}")


def check_task(body: JsonValue, task_id: str, redactor: Redactor) -> None:
    """Raise `AgentError` if a reply names another task than this one."""
    reply_task = _id_in(_message(body), "task_id", "taskId")
    if reply_task not in (None, task_id):
        other, own = (payload.shorten(redactor.text(name or "")) for name in (reply_task, task_id))
        raise AgentError(f"the agent answered in another conversation: task {other!r}, not of {own!r}")


def message_id_of(body: JsonValue) -> str | None:
    """Return the id of a reply, if it has one."""
    return _id_in(_message(body), "id", "message_id", "messageId")


def trace_of(body: JsonValue) -> aui_trace.Trace | None:
    """Return the trace inside a reply; None if it is missing, null or empty."""
    message = _message(body)
    return next((trace for key in _TRACE_KEYS if (trace := payload.filled(message.get(key)))), None)


def fetched_trace_of(body: JsonValue, message_id: str) -> aui_trace.Trace | None:
    """Return the trace in the answer to a trace-info request: bare, wrapped, or one of a list."""
    if isinstance(body, list):
        traces = [item for item in body if isinstance(item, dict)]
        if len(traces) != 1:
            keys = ("message_id", "messageId", "interaction_id", "id")
            traces = [item for item in traces if any(item.get(key) == message_id for key in keys)]
        return fetched_trace_of(traces[0], message_id) if len(traces) == 1 else None
    for key in (*_TRACE_KEYS, "data", "items"):
        if isinstance(inner := payload.member(body, key), dict | list) and inner:
            return fetched_trace_of(inner, message_id)
    return payload.filled(body)


def read_reply(
    body: JsonValue,
    latency_seconds: float,
    redactor: Redactor,
    *,
    fetched_trace: JsonValue = None,
    keep_raw: bool = False,
) -> Reply:
    """Read a reply from a parsed body; raise `AgentError` if it is none.

    The `fetched_trace` took its own request. Secrets are removed from error messages; the rest is the agent's
    own text.
    """
    message = _message(body)
    trace = trace_of(body) or payload.filled(fetched_trace)
    workflows = _workflows(message)
    if not trace and not workflows and _is_error(body, message):
        raise AgentError(f"the agent answered with an error: {_summary(body, redactor)}")
    text = _text(message)
    if text is None and not trace and not workflows:
        raise AgentError(f"the agent's answer has no text: {_summary(body, redactor)}")
    activated = aui_trace.activated(trace) if trace and workflows is None else None
    params = aui_trace.params(trace) if trace else None
    reply = Reply(
        # If there is evidence, a server means by null that nothing was said.
        agent=text or "",
        latency_seconds=latency_seconds,
        workflows=activated if workflows is None else workflows,
        handed_over=_hands_over(message) or None,
        workflows_derived=activated is not None,
        params=params,
        named_params=aui_trace.named_params(trace) if trace and params is not None else (),
        rules=aui_trace.rules(trace) if trace else None,
        integrations=aui_trace.integrations(trace) if trace else None,
        error_response=aui_trace.error_response(trace) if trace else None,
        error_detail=aui_trace.error_detail(trace, redactor) if trace else None,
        input_tokens=token_count(message.get("input_tokens")),
        output_tokens=token_count(message.get("output_tokens")),
    )
    # Parsed JSON already: to validate each value again would take as long as all the rest.
    return reply.copy_with(trace=trace, raw=body if keep_raw else None)


def _message(body: JsonValue) -> dict[str, JsonValue]:
    """Return the object that holds the reply: the body or its `data`; empty if there is none."""
    if not isinstance(body, dict):
        return {}
    data = body.get("data")
    known = (*_TEXT_KEYS, *_TRACE_KEYS, *_WORKFLOW_KEYS)
    return data if isinstance(data, dict) and not any(key in body for key in known) else body


def _is_error(body: JsonValue, message: dict[str, JsonValue]) -> bool:
    """Return whether a body is an error although its HTTP status is a success."""
    holders = (payload.filled(body) or {}, message)
    statuses = (aui_trace.status_of(holder.get("status_code")) for holder in holders)
    errors = (holder.get(key) for holder in holders for key in _ERROR_KEYS)
    return any(status is not None and status >= 400 for status in statuses) or any(errors)


def _text(message: dict[str, JsonValue]) -> str | None:
    texts = (_text_in(message.get(key)) for key in _TEXT_KEYS)
    return next((text for text in texts if text is not None), None)


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
    names = [payload.name(item, _WORKFLOW_NAMES) for item in value if item is not None]
    known = tuple(name for name in names if name)
    # An unreadable one may be the one that matters.
    return known if len(known) == len(names) and (known or not value) else None


def _hands_over(message: dict[str, JsonValue]) -> bool:
    """Return whether a workflow hands over, although others in the list cannot be read."""
    if _workflows(message) is not None:
        return False
    listed = (message.get(key) for key in _WORKFLOW_KEYS)
    items = (item for value in listed if isinstance(value, list) for item in value)
    names = (payload.name(item, _WORKFLOW_NAMES) for item in items)
    return any(name.startswith(ESCALATION) for name in names if name)


def _summary(body: JsonValue, redactor: Redactor) -> str:
    """Describe an unexpected body. Secrets are removed before it is shortened."""
    value = redactor.json(body)
    if isinstance(value, dict):
        text = payload.explain(value)
        return (
            payload.shorten(text) if text else f"an object with the keys {payload.shorten(str(list(value)))}"
        )
    if isinstance(value, list):
        return "a list, not an object"
    return f"{payload.shorten(repr(value))}, not an object"


def _id_in(holder: Mapping[str, JsonValue], *keys: str) -> str | None:
    """Return the first id under one of the keys."""
    values = (holder.get(key) for key in keys)
    ids = (str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return next((text.strip() for text in ids if text.strip()), None)
