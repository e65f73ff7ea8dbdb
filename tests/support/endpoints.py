"""Agents behind HTTP endpoints that are not AUI's: stubs on loopback that keep what they were asked.

with endpoints.serving(lambda asked: endpoints.completion("Hi")) as stub:
    ChatAgent(AgentSettings(model="m", api_key=stub.key, base_url=stub.url))
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import world
from hypothesis import strategies as st
from werkzeug import Request, Response
from world import Fault

KEY = "endpoint-key-51d0c7e2"


@dataclass(frozen=True)
class EndpointRequest:
    """A request that an endpoint was sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def texts(self) -> list[str]:
        """What the user has said so far, where the body is one of chat completions."""
        return [message["content"] for message in self.body["messages"] if message["role"] == "user"]


@dataclass
class Endpoint:
    """Answers every request with what `answer` gives: JSON, or a fault. Wants its key as a bearer token."""

    url: str
    answer: Callable[[EndpointRequest], Any]
    key: str = KEY
    faults: list[Fault] = field(default_factory=list)
    asked: list[EndpointRequest] = field(default_factory=list)

    def _route(self, request: Request) -> Response:
        body = json.loads(request.data) if request.data else None
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = EndpointRequest(request.method, request.path, dict(request.args), headers, body)
        self.asked.append(asked)
        if self.key not in " ".join(headers.values()).split():
            return world.UNAUTHORIZED.response()
        answer = self.faults.pop(0) if self.faults else self.answer(asked)
        if isinstance(answer, Fault):
            return answer.response()
        return Response(json.dumps(answer), content_type="application/json")


@contextmanager
def serving(answer: Callable[[EndpointRequest], Any]) -> Iterator[Endpoint]:
    """Serves an endpoint until the block ends."""
    with world.serving() as server:
        stub = Endpoint(f"http://127.0.0.1:{server.port}", answer)
        server.expect_request(re.compile(".*")).respond_with_handler(stub._route)
        yield stub


def completion(
    text: Any = None, *, finish: str = "stop", usage: Any = (21, 5), **message: Any
) -> dict[str, Any]:
    """The body of a chat completion."""
    error = {"role": "assistant", "content": text, "refusal": None, **message}
    counts = usage and {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1795300000, "model": "refund-agent",
        "choices": [{"index": 0, "message": error, "finish_reason": finish}],
        **({"usage": counts} if counts else {}),
    }  # fmt: skip


def tool_calls(*named: tuple[str, Any]) -> list[dict[str, Any]]:
    """`tool_calls`, from names and arguments; a text goes as it is."""
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(named, 1)
    ]


def response(*items: Any, usage: Any = (21, 5), **more: Any) -> dict[str, Any]:
    """The body of an answer of the Responses API with these items; a text is a message."""
    counts = usage and {
        "input_tokens": usage[0], "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage[1], "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(usage),
    }  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1795300000, "status": "completed",
        "model": "refund-agent",
        "output": [_message(item) if isinstance(item, str) else item for item in items],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
        "incomplete_details": None, "usage": counts, **more,
    }  # fmt: skip


def _message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def sse(*events: Any) -> Fault:
    """A stream of server-sent events; a text is sent as it is."""
    lines = (event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in events)
    return Fault(200, "".join(lines), content_type="text/event-stream")


def ag_ui_run(*events: Any, text: str = "", **finish: Any) -> Fault:
    """A run of AG-UI with these events and words; `finish` is more of its end."""
    words = [
        {"type": "TEXT_MESSAGE_START", "messageId": "m-1", "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m-1", "delta": part} for part in text.split("|")),
        {"type": "TEXT_MESSAGE_END", "messageId": "m-1"},
    ]
    ids = {"threadId": "t-1", "runId": "r-1"}
    return sse(
        {"type": "RUN_STARTED", **ids},
        *events,
        *(words if text else ()),
        {"type": "RUN_FINISHED", **ids, **finish},
    )


def ag_ui_call(name: str, arguments: Any, result: Any = None, call_id: str = "call-1") -> list[Any]:
    """The events of a tool call, with its result if it has one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    half = len(text) // 2
    events: list[Any] = [
        {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": text[:half]},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": text[half:]},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]
    if result is not None:
        returned = {"messageId": f"result-{call_id}", "toolCallId": call_id, "content": result}
        events.append({"type": "TOOL_CALL_RESULT", "role": "tool", **returned})
    return events


def adk_event(*parts: Any, **more: Any) -> dict[str, Any]:
    role = "user" if any("functionResponse" in part for part in parts) else "model"
    return {"content": {"parts": [*parts], "role": role}, "author": "desk", "invocationId": "e-1", **more}


_KEYS = st.sampled_from(
    ["choices", "message", "content", "tool_calls", "function", "function_call", "name", "arguments", "id",
     "finish_reason", "usage", "prompt_tokens", "refusal", "error", "type", "custom", "input", "value",
     "status", "text"]
)  # fmt: skip


def any_json() -> st.SearchStrategy[Any]:
    """Any JSON, with keys that mean something."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=25,
    )
