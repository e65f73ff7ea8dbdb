"""Lists of messages as the parts of a conversation, in the spellings of models and frameworks. Pure.

A message is one of OpenAI's chat completions or Responses, of Anthropic, of the AI SDK (its model's and its
UI's messages, with `toolInvocations` too), of Google, of LangChain, or of the conventions for GenAI spans:
a role and a content, which is a text or a list of parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from ci_evals.extension_support.drafting.conversation import Kind, Part
from ci_evals.support import payload

Object = dict[str, JsonValue]

_ROLES: Mapping[str, Kind] = {
    **dict.fromkeys(("user", "human", "customer", "client", "caller"), Kind.USER),
    **dict.fromkeys(("assistant", "ai", "model", "agent", "bot", "gpt", "aimessagechunk"), Kind.AGENT),
    **dict.fromkeys(("system", "developer"), Kind.SYSTEM),
    **dict.fromkeys(("tool", "function"), Kind.RESULT),
}
_ROLE_KEYS = ("role", "type", "from", "sender", "speaker")
_CONTENT_KEYS = ("content", "parts", "text", "value")
_CALLS = frozenset({
    "tool_use", "tool-call", "tool_call", "mcp_tool_use", "server_tool_use", "function_call", "functionCall",
    "custom_tool_call",
})  # fmt: skip
_RESULTS = frozenset({
    "tool_result", "tool-result", "tool_call_response", "mcp_tool_result", "function_call_output",
    "functionResponse", "function_response", "custom_tool_call_output",
})  # fmt: skip
_WORDS = frozenset({"text", "input_text", "output_text", "refusal"})
_GOOGLE = ("functionCall", "function_call", "functionResponse", "function_response")
_RESULT_IDS = ("tool_call_id", "tool_use_id", "toolCallId", "call_id", "id")
_RESULT_VALUES = ("content", "output", "result", "response")
_SKIPPED = frozenset({"reasoning", "remove"})
"""Kinds of messages that hold no words for anybody."""


class MessageError(ValueError):
    """A message that is none; its text is a clause, without the message's number."""


def parts_of(messages: Iterable[JsonValue]) -> Iterator[Part]:
    """Yield the parts of a conversation's messages in their order; raise `MessageError`."""
    for message in messages:
        yield from _parts(message)


def role_of(message: JsonValue) -> Kind | None:
    """Return who wrote a message, None if it has no role that is known."""
    return _ROLES.get(_role(_unwrapped(message))) if isinstance(message, dict) else None


def is_message(value: JsonValue) -> bool:
    """Return whether a value looks like a message: it has a role, or is an item that calls a tool."""
    if not isinstance(value, dict):
        return False
    plain = _unwrapped(value)
    return role_of(plain) is not None or _kind(plain) in _CALLS | _RESULTS | _SKIPPED


def shows_calls(messages: Iterable[JsonValue]) -> bool:
    """Return whether messages hold a call or a result, or an empty list of calls."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        plain = _unwrapped(message)
        if isinstance(plain.get("tool_calls"), list) or isinstance(plain.get("toolInvocations"), list):
            return True
        if any(part.kind in (Kind.CALL, Kind.RESULT) for part in _lenient(plain)):
            return True
    return False


def _lenient(message: Object) -> Sequence[Part]:
    try:
        return [*_parts(message)]
    except MessageError:
        return ()


def _unwrapped(message: Object) -> Object:
    """Return a message of LangChain without what it is serialized in, others as they are."""
    if isinstance(inner := message.get("kwargs"), dict) and "lc" in message:
        return inner
    if isinstance(inner := message.get("data"), dict) and "content" in inner:
        return {"type": message.get("type"), **inner}
    return message


def _role(message: Object) -> str:
    value = next((message[key] for key in _ROLE_KEYS if isinstance(message.get(key), str)), "")
    return str(value).strip().lower().removesuffix("message")


def _parts(message: JsonValue) -> Iterator[Part]:
    if not isinstance(message, dict):
        raise MessageError(f"is no object with a role and a content: {payload.shorten(str(message))!r}")
    plain = _unwrapped(message)
    if not isinstance(plain.get("role"), str) and _kind(plain) in _CALLS | _RESULTS | _SKIPPED:
        yield from _content_part(plain, Kind.AGENT)
        return
    role = _ROLES.get(_role(plain))
    if role is None:
        known = ", ".join(_ROLES)
        raise MessageError(f"has the role {payload.shorten(_role(plain))!r}, which is none of {known}")
    yield from _of_role(plain, role)


def _of_role(message: Object, role: Kind) -> Iterator[Part]:
    content = next((message[key] for key in _CONTENT_KEYS if message.get(key) is not None), None)
    listed = content if isinstance(content, list) else [content]
    if role is Kind.RESULT and not any(isinstance(one, dict) and _kind(one) in _RESULTS for one in listed):
        yield Part(Kind.RESULT, item=_result(message))
        return
    found = [part for one in listed for part in _content_part(one, role)]
    results = any(part.kind is Kind.RESULT for part in found)
    text = "".join(part.text for part in found if part.kind is role)
    # Anthropic has results of tools from the user, and what stands beside these is no message of a person.
    if text.strip() and not (role is Kind.USER and results):
        yield Part(role, text.strip())
    if role is Kind.AGENT:
        yield from (Part(Kind.CALL, item=call) for call in _listed_calls(message, found))
        yield from _invocations(message)
    yield from (part for part in found if part.kind in (Kind.CALL, Kind.RESULT) and part.kind is not role)


def _listed_calls(message: Object, found: Sequence[Part]) -> Iterator[JsonValue]:
    """Yield the calls outside the content; LangChain has Anthropic's calls in both places."""
    if any(part.kind is Kind.CALL for part in found):
        return
    if isinstance(listed := message.get("tool_calls"), list):
        yield from listed
    elif isinstance(older := message.get("function_call"), dict):
        yield {"function_call": older}


def _invocations(message: Object) -> Iterator[Part]:
    """Yield the calls and results that older messages of the AI SDK's UI list apart."""
    listed = message.get("toolInvocations")
    parts = message.get("parts")
    if isinstance(parts, list) and any(isinstance(one, dict) and "toolInvocation" in one for one in parts):
        return
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield from _ui_call(one, one.get("toolName"))


def _content_part(part: JsonValue, role: Kind) -> Iterator[Part]:
    if isinstance(part, str):
        yield Part(role, part)
        return
    if not isinstance(part, dict):
        return
    kind = _kind(part)
    if kind in _CALLS:
        yield Part(Kind.CALL, item=part)
    elif kind in _RESULTS:
        yield Part(Kind.RESULT, item=_result(part))
    elif kind == "dynamic-tool":
        yield from _ui_call(part, part.get("toolName"))
    elif kind == "tool-invocation":
        inner = payload.filled(part.get("toolInvocation")) or {}
        yield from _ui_call(inner, inner.get("toolName"))
    elif kind.startswith("tool-") and "toolCallId" in part:
        yield from _ui_call(part, kind.removeprefix("tool-"))
    elif kind in _WORDS or "type" not in part:
        yield Part(role, payload.joined(part, "text", "content", "refusal"))


def _kind(part: Object) -> str:
    """Return the type of a part; Google's have none, but a key."""
    found = next((key for key in _GOOGLE if isinstance(part.get(key), dict)), None)
    return found or str(part.get("type"))


def _ui_call(part: Object, name: JsonValue) -> Iterator[Part]:
    """Yield the call, and its result, of a part in which the AI SDK has both."""
    arguments = next((part[key] for key in ("input", "args", "rawInput") if part.get(key) is not None), None)
    call: Object = {"id": part.get("toolCallId"), "name": name, "arguments": arguments}
    yield Part(Kind.CALL, item=call)
    error = part.get("errorText")
    output = next((part[key] for key in ("output", "result") if part.get(key) is not None), error)
    if output is not None:
        result: Object = {"tool_call_id": part.get("toolCallId"), "name": name, "content": output}
        yield Part(Kind.RESULT, item=result | ({"is_error": True} if error else {}))


def _result(holder: Object) -> Object:
    """Return a result of a tool, with the id of its call as `tool_call_id` and its value as `content`."""
    inner = next((found for key in _GOOGLE if (found := payload.filled(holder.get(key)))), holder)
    call_id = next((inner[key] for key in _RESULT_IDS if isinstance(inner.get(key), str)), None)
    content = next((inner[key] for key in _RESULT_VALUES if inner.get(key) is not None), None)
    name = next((inner[key] for key in ("name", "toolName") if isinstance(inner.get(key), str)), None)
    return {**inner, "tool_call_id": call_id, "name": name, "content": content}
