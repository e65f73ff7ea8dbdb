"""Messages of OpenAI's Responses API, for an agent behind such an endpoint. Pure.

An answer is a list of items: messages, and calls of functions, MCP servers and hosted tools with what came of
them. Items of unknown types whose name ends like that of a call count as one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.hand_over import hand_over
from ci_evals.domain.actions import views_of
from ci_evals.domain.base import model_names, token_count
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extensions.openai_api import chat_wire
from ci_evals.extensions.openai_api.chat_wire import Message
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor

PATH = "/responses"

_CALL, _OUTPUT = "_call", "_call_output"
_CLIENTS = frozenset({"function_call", "custom_tool_call"})
"""Calls whose results the client gives, unless the endpoint gives them itself."""
_ARGUMENTS = ("action", "operation", "actions")
_OTHER_ARGUMENTS = ("queries", "code")
_RESULTS = ("output", "results", "outputs", "result")
_OK, _FAILED = "completed", frozenset({"failed", "incomplete"})
_UNFINISHED = frozenset({"queued", "in_progress"})


@dataclass(frozen=True)
class Answer:
    """One answer of the endpoint."""

    id: str | None
    text: str
    calls: tuple[ToolCall, ...] | None
    """None if one cannot be read."""
    waiting: tuple[ToolCall, ...]
    """Calls whose results the client has to give."""
    offers_tools: bool
    """True if the answer names tools that the agent could use."""
    cut: str | None
    """Why the answer is not complete, if it is not."""
    items: list[JsonValue]
    input_tokens: int | None
    output_tokens: int | None
    body: JsonValue
    error: str | None = None
    """The error with which the endpoint answered."""


def keeps_conversations(options: ChatOptions) -> bool:
    """Return whether the endpoint keeps what was said, so that only the new part is sent."""
    return options.request.get("store") is not False


def user_message(text: str) -> Message:
    """Return the item of a user's message."""
    return {"role": "user", "content": text}


def base_request(model: str, test: Test, options: ChatOptions) -> Message:
    """Return what all requests of a conversation have in common."""
    body: Message = {**options.request, "model": model}
    told = next((message["content"] for message in chat_wire.opening(test, options)), None)
    if told is not None:
        body["instructions"] = told
    if options.user_info == "metadata" and test.user_info:
        info = {key: chat_wire.as_text(value) for key, value in test.user_info.items()}
        body["metadata"] = (payload.filled(body.get("metadata")) or {}) | info
    return body


def read(body: JsonValue, redactor: Redactor) -> Answer:
    """Read an answer; raise `AgentError` if it is no response, or has not ended."""
    output, status = payload.member(body, "output"), payload.name(payload.member(body, "status"))
    error = _error(body, status, redactor)
    if error is not None and not isinstance(output, list):
        output = []
    if not isinstance(output, list):
        raise AgentError(
            "the agent's answer is not a response, which holds output: "
            f"{chat_wire.summary(body, redactor)} (is the base URL right?)"
        )
    if status == "cancelled" and error is None:
        raise AgentError("the agent's answer was canceled: its status is cancelled")
    if status in _UNFINISHED:
        raise AgentError(f"the agent's answer has not ended: its status is {status}")
    items = [item for item in output if isinstance(item, dict)]
    for item in items:
        if item.get("type") == "mcp_approval_request" and error is None:
            name = payload.shorten(redactor.text(payload.name(item.get("name")) or "without a name"))
            raise AgentError(
                f"the agent waits for an approval of the MCP tool {name!r}; set require_approval: never "
                "for its server"
            )
    plain = _plain_calls(items)
    # In what was cut off there may have been more calls.
    whole = len(items) == len(output) and status != "incomplete"
    calls = tool_calls.read_all(plain) if whole else None
    usage = payload.member(body, "usage")
    told = payload.member(payload.member(body, "incomplete_details"), "reason")
    return Answer(
        id=payload.name(payload.member(body, "id")),
        text="\n\n".join(text for item in items if (text := _text(item)).strip()),
        calls=calls,
        waiting=tuple(
            call for call, item in zip(calls or (), plain, strict=False) if item["is_clients"] is True
        ),
        offers_tools=bool(payload.member(body, "tools")),
        cut=payload.name(told) if status == "incomplete" else None,
        items=[*items],
        input_tokens=token_count(payload.member(usage, "input_tokens")),
        output_tokens=token_count(payload.member(usage, "output_tokens")),
        body=body,
        error=error,
    )


def _error(body: JsonValue, status: str | None, redactor: Redactor) -> str | None:
    """Return the error in an answer, if it is one."""
    error = payload.member(body, "error")
    if not error and status != "failed":
        return None
    return payload.shorten(payload.explain(redactor.json(error)) or f"its status is {status}")


def results(answer: Answer, tool_results: Mapping[str, JsonValue], redactor: Redactor) -> list[JsonValue]:
    """Return an item with the result of each call that waits; raise `AgentError` if a tool has none."""
    kinds = {item.get("call_id"): item.get("type") for item in answer.items if isinstance(item, dict)}
    return [
        {"type": f"{kinds.get(call.id, 'function_call')}_output", "call_id": call.id, "output": text}
        for call, text in chat_wire.returned_texts(answer.waiting, tool_results, redactor)
    ]


def reply(rounds: Sequence[Answer], seconds: float, options: ChatOptions) -> Reply:
    """Join all answers to one message into a reply; raise `AgentError` if it is empty."""
    last = rounds[-1]
    text = "\n\n".join(answer.text for answer in rounds if answer.text.strip())
    calls = _all_calls(rounds, options)
    partial = last.error is not None and calls is not None
    known = calls is not None and not partial
    handed_over = hand_over(called(rounds), options.escalation_tools, all_known=known)
    withheld = last.cut == "content_filter"
    failed = withheld or last.error is not None
    if not text and not handed_over and not failed:
        hint = f"; it was cut off: {last.cut} (see adapterOptions.request)" if last.cut else ""
        raise AgentError(f"the agent gave an empty reply{hint}")
    return Reply(
        agent=text,
        latency_seconds=seconds,
        **views_of(calls),
        tool_calls_partial=partial,
        handed_over=handed_over,
        handed_over_apart=True,
        error_response=failed,
        error_detail=last.error or (chat_wire.WITHHELD if withheld else None),
        input_tokens=chat_wire.total(answer.input_tokens for answer in rounds),
        output_tokens=chat_wire.total(answer.output_tokens for answer in rounds),
        models=model_names(payload.member(answer.body, "model") for answer in rounds),
    )


def called(rounds: Iterable[Answer]) -> Iterator[str]:
    """Yield the names of all calls that could be read."""
    for answer in rounds:
        yield from (call.name for call in answer.calls or ())


def _all_calls(rounds: Sequence[Answer], options: ChatOptions) -> tuple[ToolCall, ...] | None:
    """Return all calls in order; None if it is not known whether there were any."""
    if any(answer.calls is None for answer in rounds):
        return None
    calls: list[ToolCall] = []
    for answer in rounds:
        waiting = {call.id for call in answer.waiting}
        for call in answer.calls or ():
            given = chat_wire.with_results((call,), options) if call.id in waiting else (call,)
            calls += given or ()
    offered = chat_wire.offers_tools(options) or any(answer.offers_tools for answer in rounds)
    return tuple(calls) if calls or offered else None


def _plain_calls(items: Sequence[JsonObject]) -> list[dict[str, JsonValue]]:
    """Return the calls among items in the form that `tool_calls` reads."""
    outputs = {
        item.get("call_id"): item
        for item in items
        if str(item.get("type")).endswith(_OUTPUT) and isinstance(item.get("call_id"), str)
    }
    return [
        _plain(item, outputs.get(item.get("call_id") if isinstance(item.get("call_id"), str) else None))
        for item in items
        if str(item.get("type")).endswith(_CALL)
    ]


def _plain(item: JsonObject, output: JsonObject | None) -> dict[str, JsonValue]:
    kind = str(item["type"])
    source = output if output is not None else item
    result = next((source[key] for key in _RESULTS if source.get(key) is not None), None)
    if isinstance(result, str) or output is not None:
        result = tool_calls.returned(result)
    is_clients = kind in _CLIENTS and output is None
    status = payload.name(source.get("status"))
    failed = bool(item.get("error")) or status in _FAILED
    # The status of a call that the client answers is only that of its arguments.
    call: dict[str, JsonValue] = {
        "id": item.get("call_id") or item.get("id"),
        "name": item.get("name") if kind in _CLIENTS or kind == "mcp_call" else kind.removesuffix(_CALL),
        "arguments": _arguments(item),
        "result": item.get("error") or result,
        "is_clients": is_clients,
    }
    if failed:
        call["status"] = "error"
    elif status == _OK and not is_clients:
        call["status"] = "ok"
    return call


def _arguments(item: JsonObject) -> JsonValue:
    if "arguments" in item or "input" in item:
        given: JsonValue = item.get("arguments", item.get("input"))
        return given
    for key in _ARGUMENTS:
        if isinstance(item.get(key), dict):
            found: JsonValue = item[key]
            return found
    return {key: item[key] for key in _OTHER_ARGUMENTS if item.get(key) is not None} or None


def _text(item: JsonObject) -> str:
    """Return the words of an item, if it is a message of the agent."""
    if item.get("type") != "message" or item.get("role", "assistant") != "assistant":
        return ""
    return payload.joined(item.get("content"), "text", "refusal")
