"""Messages of OpenAI's chat completions, for an agent behind such an endpoint. Pure.

Compatible servers differ in what they leave out: reading is lenient about shapes and strict about evidence. A
message without calls of tools, from a server that was offered none, is no evidence that none were called.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.hand_over import hand_over
from ci_evals.domain.actions import views_of
from ci_evals.domain.base import model_names, token_count
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, ToolCall, ToolStatus
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render

PATH = "/chat/completions"
WITHHELD = "the endpoint's content filter withheld it"

_USER_INFO = "extensions/openai_api/user_info.md.j2"

Message = JsonObject


@dataclass(frozen=True)
class ChatAnswer:
    """One answer of the endpoint."""

    text: str
    calls: tuple[ToolCall, ...] | None
    """None if the message does not mention tools, or in a way that cannot be read."""
    unreadable: bool
    message: Message
    finish: str | None
    input_tokens: int | None
    output_tokens: int | None
    body: JsonValue
    error: str | None = None
    """The error with which the endpoint answered."""

    @property
    def waits(self) -> bool:
        """True if the endpoint waits for the results of its calls."""
        return (
            self.error is None
            and bool(self.calls)
            and (not self.text.strip() or self.finish in ("tool_calls", "function_call"))
        )


def opening(test: Test, options: ChatOptions) -> list[Message]:
    """Return the messages before the first: at most one system message, since some servers refuse two."""
    parts = [test.system_prompt] if test.system_prompt else []
    if options.user_info == "system" and test.user_info:
        parts.append(render(_USER_INFO, user_info=test.user_info).strip())
    return [{"role": "system", "content": "\n\n".join(parts)}] if parts else []


def request(
    model: str, messages: Sequence[Message], test_info: Mapping[str, JsonValue], options: ChatOptions
) -> Message:
    """Return the body of a request."""
    body: Message = {**options.request, "model": model, "messages": [*messages]}
    if options.user_info == "metadata" and test_info:
        info: Message = {key: as_text(value) for key, value in test_info.items()}
        body["metadata"] = (payload.filled(body.get("metadata")) or {}) | info
    return body


def read(body: JsonValue, redactor: Redactor) -> ChatAnswer:
    """Read an answer, which may be an error; raise `AgentError` if it is neither that nor a completion."""
    choices = payload.member(body, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = payload.member(choice, "message")
    error = _error(body, choice, redactor)
    if error is not None and not isinstance(message, dict):
        message = {}
    if not isinstance(message, dict):
        raise AgentError(
            "the agent's answer is not a chat completion, which holds choices[0].message: "
            f"{summary(body, redactor)} (is the base URL right?)"
        )
    usage = payload.member(body, "usage")
    return ChatAnswer(
        text=payload.joined(message.get("content"), "text", "refusal")
        or payload.joined(message.get("refusal"), "text", "refusal"),
        calls=_calls(message),
        unreadable=_has_unreadable_calls(message) or _lacks_calls(message, choice),
        message=message,
        finish=payload.name(payload.member(choice, "finish_reason")),
        input_tokens=token_count(payload.member(usage, "prompt_tokens")),
        output_tokens=token_count(payload.member(usage, "completion_tokens")),
        body=body,
        error=error,
    )


def _error(body: JsonValue, choice: JsonValue, redactor: Redactor) -> str | None:
    """Return the error in an answer of status 200, if it is one."""
    error = payload.member(body, "error") or payload.member(choice, "error")
    if error:
        return payload.shorten(payload.explain(redactor.json(error)) or "no reason given")
    return "its finish_reason is error" if payload.member(choice, "finish_reason") == "error" else None


def results(
    answer: ChatAnswer, tool_results: Mapping[str, JsonValue], redactor: Redactor | None = None
) -> list[Message]:
    """Return the message with the calls, and a message with the result of each.

    Raise `AgentError` if a tool is not among `tool_results`.
    """
    calls = [
        call if call.id else call.copy_with(id=f"call-{number}")
        for number, call in enumerate(answer.calls or (), 1)
    ]
    returned = returned_texts(calls, tool_results, redactor or Redactor())
    question: Message = {"role": "assistant", "content": answer.text or None}
    if items := _items(answer.message.get("tool_calls")):
        question["tool_calls"] = [{**item, "id": call.id} for item, call in zip(items, calls, strict=True)]
        return [question, *({"role": "tool", "tool_call_id": c.id, "content": text} for c, text in returned)]
    question["function_call"] = answer.message["function_call"]
    return [question, *({"role": "function", "name": c.name, "content": text} for c, text in returned)]


def returned_texts(
    calls: Iterable[ToolCall], tool_results: Mapping[str, JsonValue], redactor: Redactor
) -> list[tuple[ToolCall, str]]:
    """Return each call with the text of its result; raise `AgentError` if a tool has none."""
    returned: list[tuple[ToolCall, str]] = []
    for call in calls:
        if call.name not in tool_results:
            name = redactor.text(call.name)
            raise AgentError(
                f"the agent called the tool {payload.shorten(name)!r} and waits for its result; "
                "set its result in adapterOptions.toolResults, or name the tool in escalationTools "
                "if its call hands over to a person"
            )
        returned.append((call, as_text(tool_results[call.name])))
    return returned


def reply(rounds: Sequence[ChatAnswer], seconds: float, options: ChatOptions) -> Reply:
    """Join all answers to one message into a reply; raise `AgentError` if it is empty."""
    *earlier, last = rounds
    text = "\n\n".join(answer.text for answer in rounds if answer.text.strip())
    answered = [replace(answer, calls=with_results(answer.calls, options)) for answer in earlier]
    calls = _all_calls([*answered, last], offered=offers_tools(options))
    partial = last.error is not None and calls is not None
    known = calls is not None and not partial
    handed_over = hand_over(called(rounds), options.escalation_tools, all_known=known)
    withheld = last.finish == "content_filter"
    failed = withheld or last.error is not None
    if not text and not handed_over and not failed:
        cut = last.finish == "length"
        hint = "; it was cut off at the token limit (see adapterOptions.request)" if cut else ""
        raise AgentError(f"the agent gave an empty reply{hint}")
    return Reply(
        agent=text,
        latency_seconds=seconds,
        **views_of(calls),
        tool_calls_partial=partial,
        not_found={"toolCalls": _why_unknown(rounds)} if calls is None else {},
        handed_over=handed_over,
        handed_over_apart=True,
        error_response=failed,
        error_detail=last.error or (WITHHELD if withheld else None),
        input_tokens=total(answer.input_tokens for answer in rounds),
        output_tokens=total(answer.output_tokens for answer in rounds),
        models=model_names(payload.member(answer.body, "model") for answer in rounds),
    )


def _why_unknown(rounds: Iterable[ChatAnswer]) -> str:
    """Return why the calls of a reply are unknown."""
    if any(answer.unreadable for answer in rounds):
        return "one of its tool_calls cannot be read; each needs a function with a name"
    return 'its message has no tool_calls; let the endpoint return "tool_calls": [] if it called none'


def called(rounds: Iterable[ChatAnswer]) -> Iterator[str]:
    """Yield the names of all calls that could be read."""
    for answer in rounds:
        yield from (call.name for call in answer.calls or ())


def offers_tools(options: ChatOptions) -> bool:
    """Return whether the request offers tools to the endpoint."""
    return bool(options.request.get("tools") or options.request.get("functions"))


def with_results(calls: tuple[ToolCall, ...] | None, options: ChatOptions) -> tuple[ToolCall, ...] | None:
    """Return the calls of a message, each with the result that it was given, if any."""
    return calls and tuple(_with_result(call, options.tool_results) for call in calls)


def _with_result(call: ToolCall, results: Mapping[str, JsonValue]) -> ToolCall:
    if call.name not in results:
        return call
    result = results[call.name]
    status = ToolStatus.ERROR if tool_calls.is_error(result) else ToolStatus.OK
    return call.copy_with(result=result, status=status)


def _all_calls(rounds: Sequence[ChatAnswer], *, offered: bool) -> tuple[ToolCall, ...] | None:
    if any(answer.unreadable for answer in rounds):
        return None  # the unreadable call may be the one that matters
    if not offered and all(answer.calls is None for answer in rounds):
        return None
    return tuple(call for answer in rounds for call in answer.calls or ())


def _calls(message: Message) -> tuple[ToolCall, ...] | None:
    """Return the calls of a message, also in the old format; None if it does not mention tools."""
    listed = message.get("tool_calls")
    if items := _items(listed):
        return tool_calls.read_all(items)
    if _is_call(message, "function_call"):
        return tool_calls.read_all([{"function": message["function_call"]}])
    return () if listed == [] else None


def _lacks_calls(message: Message, choice: JsonValue) -> bool:
    """Return whether there may be more calls: the message was cut off, or lacks those that it ends with."""
    finish = payload.name(payload.member(choice, "finish_reason"))
    ends_with_calls = finish in {"tool_calls", "function_call"}
    return finish == "length" or (ends_with_calls and not _calls(message))


def _has_unreadable_calls(message: Message) -> bool:
    listed = message.get("tool_calls")
    if listed:
        return not isinstance(listed, list) or len(_items(listed)) < len(listed)
    return bool(message.get("function_call")) and not _is_call(message, "function_call")


def _items(listed: JsonValue) -> list[dict[str, JsonValue]]:
    """Return the readable items of `tool_calls`."""
    return [
        item
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, dict) and (_is_call(item, "function") or _is_call(item, "custom"))
    ]


def _is_call(holder: Mapping[str, JsonValue], key: str) -> bool:
    return payload.name(payload.member(holder.get(key), "name")) is not None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if a count is unknown, since a part would look like the whole."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def as_text(value: JsonValue) -> str:
    """Return a value as text; one that is none as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def summary(body: JsonValue, redactor: Redactor) -> str:
    """Describe an answer of another form on one short line, without secrets."""
    value: Any = redactor.json(body)
    if isinstance(value, dict):
        return payload.shorten(
            payload.explain(value) or f"an object with the keys {', '.join(map(str, value))}"
        )
    return payload.shorten(json.dumps(value, ensure_ascii=False))
