"""The wire of OpenAI's chat completions, with an agent at its other end: what to send, what an answer means.

Pure. Servers that are compatible differ in what they leave out; what is read here is lenient about shapes and
strict about evidence. Of tools it knows what the message says: a server that has none to tell of, and was
offered none, leaves no evidence.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.transport import payload
from ci_evals.domain.agents import ChatOptions
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render

DEFAULT_BASE_URL = "https://api.openai.com/v1"
PATH = "/chat/completions"
MAX_ROUNDS = 10
"""How often in a row a reply may ask for results of tools."""

_USER_INFO = "adapters/prompts/user_info.md.j2"
_MOST_TOKENS = 10**12
"""Of one answer: more is no count."""

Message = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, as the message tells of it."""

    id: str
    name: str
    arguments: JsonValue
    """What was written, read as JSON where it is JSON."""
    captured: bool = True
    """Whether the message has its arguments, whole: a server may leave them out, or be cut off in them."""


@dataclass(frozen=True)
class Said:
    """One answer of the endpoint."""

    text: str
    calls: tuple[ToolCall, ...] | None
    """None where the message does not speak of tools."""
    garbled: bool
    """Whether it speaks of tools in a way that cannot be read, be it of one among several."""
    message: Message
    """As it came."""
    finish: str | None
    input_tokens: int | None
    output_tokens: int | None
    body: JsonValue

    @property
    def waits(self) -> bool:
        """Whether the endpoint leaves its calls to us, and waits for what they return."""
        return bool(self.calls) and (not self.text.strip() or self.finish in ("tool_calls", "function_call"))


def opening(test: Test, options: ChatOptions) -> list[Message]:
    """The messages before the first: at most one of the system, since some servers take no second."""
    parts = [test.system_prompt] if test.system_prompt else []
    if options.user_info == "system" and test.user_info:
        parts.append(render(_USER_INFO, user_info=test.user_info).strip())
    return [{"role": "system", "content": "\n\n".join(parts)}] if parts else []


def request(
    model: str, messages: Sequence[Message], test_info: Mapping[str, JsonValue], options: ChatOptions
) -> Message:
    """The body that asks for an answer."""
    body: Message = {**options.request, "model": model, "messages": [*messages]}
    if options.user_info == "metadata" and test_info:
        told: Message = {key: _as_text(value) for key, value in test_info.items()}
        body["metadata"] = (payload.filled(body.get("metadata")) or {}) | told
    return body


def read(body: JsonValue, redactor: Redactor) -> Said:
    """What an answer says.

    Raises:
        AgentError: it is no completion.
    """
    choices = payload.member(body, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = payload.member(choice, "message")
    for error in (payload.member(body, "error"), payload.member(choice, "error")):
        if error:
            told = payload.explain(redactor.json(error)) or "no reason given"
            raise AgentError(f"the agent answered with an error: {payload.shorten(told)}")
    if not isinstance(message, dict):
        raise AgentError(
            "the agent's answer is no chat completion, which holds choices[0].message: "
            f"{_what(body, redactor)} (is the base URL right?)"
        )
    usage = payload.member(body, "usage")
    return Said(
        text=_text(message.get("content")) or _text(message.get("refusal")) or "",
        calls=_calls(message),
        garbled=_is_garbled(message),
        message=message,
        finish=payload.name(payload.member(choice, "finish_reason")),
        input_tokens=_count(payload.member(usage, "prompt_tokens")),
        output_tokens=_count(payload.member(usage, "completion_tokens")),
        body=body,
    )


def results(
    said: Said, tool_results: Mapping[str, JsonValue], redactor: Redactor | None = None
) -> list[Message]:
    """The message with its calls, and what each returned.

    Raises:
        AgentError: a tool is not among `tool_results`.
    """
    calls = said.calls or ()
    for call in calls:
        if call.name not in tool_results:
            named = (redactor or Redactor()).text(call.name)
            raise AgentError(
                f"the agent called the tool {payload.shorten(named)!r} and waits for its result; "
                "say what it returns under adapterOptions.toolResults, or name the tool in escalationTools "
                "if its call hands over to a person"
            )
    returned = [(call, _as_text(tool_results[call.name])) for call in calls]
    asked: Message = {"role": "assistant", "content": said.text or None}
    if items := _items(said.message.get("tool_calls")):
        asked["tool_calls"] = [{**item, "id": call.id} for item, call in zip(items, calls, strict=True)]
        return [asked, *({"role": "tool", "tool_call_id": c.id, "content": text} for c, text in returned)]
    asked["function_call"] = said.message["function_call"]
    return [asked, *({"role": "function", "name": c.name, "content": text} for c, text in returned)]


def reply(rounds: Sequence[Said], seconds: float, options: ChatOptions, *, keep_raw: bool = False) -> Reply:
    """The reply to one message: all answers until the one that waits for nothing.

    Raises:
        AgentError: nothing was said.
    """
    last = rounds[-1]
    text = "\n\n".join(said.text for said in rounds if said.text.strip())
    calls = _all_calls(rounds, offered=offers_tools(options))
    handed_over = hands_over(rounds, options) if options.escalation_tools and calls is not None else None
    withheld = last.finish == "content_filter"
    if not text and not handed_over and not withheld:
        cut = last.finish == "length"
        hint = "; it was broken off at the limit of tokens (see adapterOptions.request)" if cut else ""
        raise AgentError(f"the agent gave an empty reply{hint}")
    return Reply(
        agent=text,
        latency_seconds=seconds,
        workflows=None if calls is None else tuple(call.name for call in calls),
        handed_over=handed_over,
        params=None if calls is None or not all(call.captured for call in calls) else _params(calls),
        error_response=withheld,
        error_detail="the endpoint's content filter withheld it" if withheld else None,
        input_tokens=_sum(said.input_tokens for said in rounds),
        output_tokens=_sum(said.output_tokens for said in rounds),
        trace=[{"tool": call.name, "arguments": call.arguments} for call in calls] if calls else None,
        raw=_raw(rounds) if keep_raw else None,
    )


def hands_over(rounds: Iterable[Said], options: ChatOptions) -> bool:
    """Whether a tool was called that hands over to a person."""
    return any(call.name in options.escalation_tools for said in rounds for call in said.calls or ())


def offers_tools(options: ChatOptions) -> bool:
    """Whether the request tells the endpoint of tools."""
    return bool(options.request.get("tools") or options.request.get("functions"))


def _all_calls(rounds: Sequence[Said], *, offered: bool) -> tuple[ToolCall, ...] | None:
    if any(said.garbled for said in rounds):
        return None  # the call that cannot be read may be the one that is looked for
    if not offered and all(said.calls is None for said in rounds):
        return None
    return tuple(call for said in rounds for call in said.calls or ())


def _calls(message: Message) -> tuple[ToolCall, ...] | None:
    """The calls of a message, also in the old form; none where it does not speak of any."""
    told = message.get("tool_calls")
    if calls := tuple(_call(item, number) for number, item in enumerate(_items(told), 1)):
        return calls
    if _is_call(message, "function_call"):
        return (_call({"function": message["function_call"]}, 1),)
    return () if told == [] else None


def _is_garbled(message: Message) -> bool:
    told = message.get("tool_calls")
    if told:
        return not isinstance(told, list) or len(_items(told)) < len(told)
    return bool(message.get("function_call")) and not _is_call(message, "function_call")


def _items(told: JsonValue) -> list[dict[str, JsonValue]]:
    """What can be read of `tool_calls`."""
    items = told if isinstance(told, list) else []
    return [
        item
        for item in items
        if isinstance(item, dict) and (_is_call(item, "function") or _is_call(item, "custom"))
    ]


def _is_call(holder: Mapping[str, JsonValue], key: str) -> bool:
    return payload.name(payload.member(holder.get(key), "name")) is not None


def _call(item: Mapping[str, JsonValue], number: int) -> ToolCall:
    call = item.get("function") if _is_call(item, "function") else item.get("custom")
    written = payload.member(call, "arguments" if _is_call(item, "function") else "input")
    name = payload.name(payload.member(call, "name")) or ""
    arguments = _read_arguments(written)
    cut_off = isinstance(arguments, str) and arguments.lstrip().startswith("{") and _is_call(item, "function")
    call_id = payload.name(item.get("id")) or f"call-{number}"
    return ToolCall(call_id, name, arguments, captured=written is not None and not cut_off)


def _read_arguments(written: JsonValue) -> JsonValue:
    """Arguments as JSON, if they are; some servers give them as an object, and none as an empty text."""
    if not isinstance(written, str):
        return written
    if not written.strip():
        return None
    try:
        return payload.parse(written.encode(errors="replace"))
    except ValueError:
        return written


def _params(calls: Iterable[ToolCall]) -> dict[str, JsonValue]:
    """The arguments of all calls, later ones over earlier; those that are no object, by the tool's name."""
    params: dict[str, JsonValue] = {}
    for call in calls:
        if isinstance(call.arguments, dict):
            params |= call.arguments
        elif call.arguments is not None:
            params[call.name] = call.arguments
    return params


def _text(content: JsonValue) -> str:
    """A message's text: itself, or the parts of it that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (
        part if isinstance(part, str) else payload.member(part, "text") or payload.member(part, "refusal")
        for part in parts
    )
    return "".join(text for text in texts if isinstance(text, str))


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _sum(counts: Iterable[int | None]) -> int | None:
    """None where one is unknown: a part of the sum would look like the whole."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _raw(rounds: Sequence[Said]) -> JsonValue:
    bodies = [said.body for said in rounds]
    return bodies[0] if len(bodies) == 1 else bodies


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _what(body: JsonValue, redactor: Redactor) -> str:
    value: Any = redactor.json(body)
    if isinstance(value, dict):
        told = payload.explain(value)
        return payload.shorten(told or f"an object with the keys {', '.join(map(str, value))}")
    return payload.shorten(json.dumps(value, ensure_ascii=False))
