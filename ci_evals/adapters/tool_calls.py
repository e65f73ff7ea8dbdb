"""Tool calls in the spellings of agents and frameworks. Pure.

A call is a name, or an object with a name: ours (`{name, arguments}`), OpenAI's (`{function: {…}}`, `{custom:
{…}}`), LangChain's (`{name, args}`), Anthropic's (`{name, input}`), Google's (`{functionCall: {…}}`),
those of AI SDK and pydantic-ai (`{toolName, toolCallId, …}`), or `{function: name, arguments}`.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from ci_evals.adapters import call_pieces
from ci_evals.adapters.call_pieces import NAME_KEYS, WRAPPERS
from ci_evals.domain.base import Instant
from ci_evals.domain.transcript import ToolCall, ToolStatus
from ci_evals.support import payload

_OTHER_ARGUMENTS = ("inputParameters", "input_parameters", "requestParameters", "request_parameters")
NAMES = f"{', '.join(NAME_KEYS[:-1])} or {NAME_KEYS[-1]}"
"""The keys that may hold a call's name, for messages."""
_ARGUMENTS = ("arguments", "args", "input", "parameters", *_OTHER_ARGUMENTS)
_RESULTS = ("result", "output", "response")
_STATUSES = {
    **dict.fromkeys(("ok", "success", "succeeded"), ToolStatus.OK),
    **dict.fromkeys(("error", "failed", "failure"), ToolStatus.ERROR),
}
_INSTANT: TypeAdapter[Any] = TypeAdapter(Instant)

NAME_ONLY = "the agent reports its name without arguments"
LEFT_OUT = "the agent reports none under arguments, args, input or parameters"


def read_all(items: Iterable[JsonValue]) -> tuple[ToolCall, ...] | None:
    """Return the calls in their order; None if one has no name: it may be the one that matters.

    Calls that were streamed in pieces are joined. Arguments that cannot be read are null with the reason,
    also if all arguments together hold more values than one answer may.
    """
    reader = _Reader()
    calls = tuple(map(reader.call, call_pieces.join(items)))
    known = tuple(call for call in calls if call is not None)
    return known if len(known) == len(calls) else None


def left_out(calls: Iterable[ToolCall], shown: Iterable[ToolCall]) -> str | None:
    """Return why an agent's own list of calls is not complete: its messages show one that it lacks."""
    missing = Counter(call.name for call in shown) - Counter(call.name for call in calls)
    name = next(iter(missing), None)
    return None if name is None else f"the agent's messages show a call of {name}, which its toolCalls lack"


def with_results(calls: Iterable[ToolCall], messages: Iterable[dict[str, JsonValue]]) -> tuple[ToolCall, ...]:
    """Return calls with their results, which are messages with a `tool_call_id` and a `content`."""
    left = list(messages)
    return tuple(_with_result(call, left) for call in calls)


def _with_result(call: ToolCall, messages: list[dict[str, JsonValue]]) -> ToolCall:
    """Return a call with the first result of its id, which is no other call's any more."""
    mine = next((one for one in messages if call.id and one.get("tool_call_id") == call.id), None)
    if mine is None:
        return call
    messages.remove(mine)
    return call.copy_with(result=returned(mine.get("content")), status=_status(mine))


def returned(content: JsonValue) -> JsonValue:
    """Return what a tool returned, of which frameworks make a text."""
    text = payload.joined(content, "text") if isinstance(content, str | list) else ""
    if not text:
        return content
    if text.lstrip().startswith(("{", "[")):
        try:
            return payload.parse(text.encode(errors="replace"))
        except ValueError:
            pass
    return text


def name_of(item: JsonValue) -> str | None:
    """Return the name of the tool that is called; None if it is no call."""
    return payload.name(_call(item), NAME_KEYS)


def is_error(result: JsonValue) -> bool:
    """Return whether a call's result, or what is reported of the call, says that it failed."""
    return _status(result) is ToolStatus.ERROR


def _status(item: JsonValue) -> ToolStatus:
    if not isinstance(item, dict):
        return ToolStatus.UNKNOWN
    failed = next((item[key] for key in ("isError", "is_error") if isinstance(item.get(key), bool)), None)
    if "true" in (item.get("isError"), item.get("is_error")):
        failed = True
    if failed or item.get("error") or item.get("success") is False:
        return ToolStatus.ERROR
    match item.get("status"):
        case str() as status if status.strip().lower() in _STATUSES:
            return _STATUSES[status.strip().lower()]
        case int() as status if 100 <= status <= 599:
            return ToolStatus.ERROR if status >= 400 else ToolStatus.OK
    other_word = isinstance(item.get("status"), str)  # such as canceled
    return ToolStatus.UNKNOWN if failed is None or other_word else ToolStatus.OK


def _call(item: JsonValue) -> JsonValue:
    """Return what holds a call's name and arguments."""
    inner = (payload.member(item, key) for key in WRAPPERS)
    return next((call for call in inner if isinstance(call, dict) and payload.name(call, NAME_KEYS)), item)


class _Reader:
    def __init__(self) -> None:
        self._values_left = payload.MAX_VALUES

    def call(self, item: JsonValue) -> ToolCall | None:
        name, call = name_of(item), _call(item)
        if name is None:
            return None
        if not isinstance(item, dict) or not isinstance(call, dict):
            return ToolCall(name=name, not_captured=NAME_ONLY)
        custom = call is item.get("custom")
        written = _first(call, _ARGUMENTS)
        arguments: dict[str, JsonValue] | None
        if custom and written:
            arguments, reason = {"input": written}, None
        else:
            arguments, reason = self._arguments(written)
        fields = {**item, **call}
        return ToolCall(
            id=next((text for key in call_pieces.ID_KEYS if (text := _text(fields.get(key)))), None),
            name=name,
            arguments=arguments,
            result=_first(fields, _RESULTS),
            status=_status(fields),
            started_at=_instant(_first(fields, ("startedAt", "started_at"))),
            duration_ms=_milliseconds(_first(fields, ("durationMs", "duration_ms"))),
            agent=payload.name(fields.get("agent"), NAME_KEYS),
            not_captured=reason,
        )

    def _arguments(self, written: JsonValue) -> tuple[dict[str, JsonValue] | None, str | None]:
        """Return arguments by name, or None and why; what is no object is the argument `input`."""
        if isinstance(written, str):
            if not written.strip():
                return {}, None
            try:
                parsed = payload.parse(written.encode(errors="replace"), self._values_left)
            except ValueError as error:
                if not written.lstrip().startswith(("{", "[")):
                    return {"input": written}, None
                return None, f"they are {error}; the answer may have been cut off in them"
            self._values_left -= sum(map(written.count, ",[{"))
            written = {} if parsed is None else parsed
        if written is None:
            return None, LEFT_OUT
        return written if isinstance(written, dict) else {"input": written}, None


def _first(holder: dict[str, JsonValue], keys: Iterable[str]) -> JsonValue:
    return next((holder[key] for key in keys if holder.get(key) is not None), None)


def _text(value: JsonValue) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    return payload.name(value)


def _instant(value: JsonValue) -> Any:
    try:
        return None if value is None else _INSTANT.validate_python(value)
    except ValidationError:
        return None


def _milliseconds(value: JsonValue) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e12
    return float(value) if known else None  # type: ignore[arg-type]  # a number, as `known` says
