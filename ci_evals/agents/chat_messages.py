"""Lists of chat messages, as agents and frameworks return them: what is new, what was said and called. Pure.

A message has a `role` (or LangChain's `type`) and a `content`: a text, or a list of parts. Calls are in
`tool_calls` (or the older `function_call`), or parts of the content, as Anthropic (`tool_use`), the AI SDK
(`tool-call`) and Google (`functionCall`) have it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.agents import chat_thread
from ci_evals.agents.chat_thread import Seen, Thread
from ci_evals.domain.transcript import ToolCall
from ci_evals.support import payload

_USER = frozenset({"user", "human"})
_AGENT = frozenset({"assistant", "ai", "model", "agent", "bot", "aimessagechunk"})
_TOOL = frozenset({"tool", "function"})
_CALL_PARTS = frozenset({
    "tool_use", "tool-call", "tool_call", "mcp_tool_use", "server_tool_use", "function_call",
    "custom_tool_call", "functionCall",
})  # fmt: skip
_RESULT_PARTS = frozenset({
    "tool_result", "tool-result", "mcp_tool_result", "functionResponse", "function_response",
    "function_call_output", "custom_tool_call_output",
})  # fmt: skip
_WITHOUT_WORDS = frozenset({
    "image", "image_url", "input_image", "output_image", "audio", "input_audio", "output_audio", "video",
    "file", "input_file", "thinking", "redacted_thinking", "reasoning", "step-start", "source-url",
})  # fmt: skip
"""Kinds of parts that show nobody any words, and thoughts, which only the model has."""
_WORDLESS_KEYS = frozenset({
    "type", "id", "inlineData", "inline_data", "fileData", "file_data", "thoughtSignature",
})  # fmt: skip
"""Keys of parts whose texts are no words."""
_SILENT_ROLES = frozenset({"system", "developer", "reasoning", "remove"})
"""Roles of messages that nobody is shown."""
_GOOGLE_PARTS = ("functionCall", "function_call", "functionResponse", "function_response")
_CALL_KEYS = frozenset({"tool_calls", "tool_call_chunks", "function_call"})
_CALL_IDS = ("tool_use_id", "toolCallId", "call_id", "id")
_RESULTS = ("content", "output", "result", "response")
_CHUNK = "AIMessageChunk"

UNREADABLE = "a tool call in its messages cannot be read: each needs a name"
NO_CALL = (
    "its messages hold a tool's result without the call that it answers. Have the agent return the call too"
)

Object = dict[str, JsonValue]


class Answer(NamedTuple):
    """The words and calls of a turn's messages."""

    text: str
    calls: tuple[ToolCall, ...] | None
    """None if it is unknown whether there were any."""
    doubt: str | None = None
    """Why there may be other calls, if there may."""
    unread: str | None = None
    """Why there may be other words, if there may."""


def read(messages: Sequence[JsonValue], thread: Thread) -> Answer:
    """Read the messages of a turn: all after the one that was sent.

    Raise `ValueError`, with a text to go after "no", if none of them is the agent's.
    Calls are known only if any message, also an earlier one, shows that the list has them: by `tool_calls`,
    even empty, or by a call or result among its parts.
    """
    listed = _whole(messages)
    begin = thread.begin([*map(_seen, listed)])
    new = listed[begin.place :]
    answers = [message for message in new if _role(message) in _AGENT]
    if not answers:
        raise ValueError("new message of the assistant")
    texts = [_text(message) for message in answers]
    text = "\n\n".join(text for text in texts if text.strip())
    unread = _unread_words(new)
    if begin.doubt == chat_thread.NOT_FOUND or not any(map(_shows_calls, listed)):
        return Answer(text, None, begin.doubt, unread)
    if any(map(_may_call, new)):
        return Answer(text, None, UNREADABLE, unread)
    calls = tool_calls.read_all([call for message in new for call in _calls(message)])
    if calls is None:
        return Answer(text, None, UNREADABLE, unread)
    known = tool_calls.read_all([call for message in listed for call in _calls(message)]) or calls
    doubt = begin.doubt or (NO_CALL if any(_lacks_call(one, known) for one in _all_results(new)) else None)
    return Answer(text, tool_calls.with_results(calls, [*_results(new)]), doubt, unread)


def _unread_words(messages: Sequence[Object]) -> str | None:
    """Return what may hold words that were not read: a message or a part of an unknown kind."""
    for message in messages:
        role = _role(message)
        if role in _AGENT:
            for part in _parts(message):
                if _may_have_words(part):
                    return f"a part of its messages has the unknown type {payload.name(part.get('type'))!r}"
        elif message.get("role") and role not in _USER | _TOOL | _SILENT_ROLES and _content(message):
            return f"one of its messages has the unknown role {payload.name(role)!r}"
    return None


def _may_have_words(part: Object) -> bool:
    """Return whether a part of the agent's message has texts of which none was read."""
    kind = _kind(part)
    if kind in _CALL_PARTS | _RESULT_PARTS or kind.lower() in _WITHOUT_WORDS or _may_be_call(kind):
        return False
    if payload.joined(part, "text", "refusal"):
        return False
    return any(_has_text(value) for key, value in part.items() if key not in _WORDLESS_KEYS)


def _has_text(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_text, value.values()))
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str) and bool(value.strip())


def seen(messages: Sequence[JsonValue]) -> list[Seen]:
    """Return messages as a thread keeps them, to recognize them in later answers."""
    return [*map(_seen, _whole(messages))]


def _whole(messages: Sequence[JsonValue]) -> list[Object]:
    """Return the messages; the pieces of a streamed one are joined."""
    groups: list[list[Object]] = []
    for message in messages:
        if not isinstance(message, dict):
            continue
        if groups and _continues(message, groups[-1][0]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _continues(message: Object, first: Object) -> bool:
    """Return whether a message is a further piece: it has no role, or is another chunk of LangChain's."""
    if message.get("role") is None and message.get("type") is None:
        return "content" in message or _shows_calls(message)
    return message.get("type") == first.get("type") == _CHUNK and message.get("id") == first.get("id")


def _joined(pieces: Sequence[Object]) -> Object:
    """Return the message that pieces make: their texts in a row, and the pieces of all calls."""
    calls = [call for piece in pieces for call in _listed_calls(piece)]
    texts = [_text(piece) for piece in pieces]
    parts = [part for piece in pieces for part in _parts(piece) if part.get("type") != "text"]
    content: JsonValue = [{"type": "text", "text": "".join(texts)}, *parts]
    plain = {key: value for key, value in pieces[0].items() if key not in _CALL_KEYS}
    message: Object = {**plain, "content": content}
    if any(map(_shows_calls, pieces)):
        message["tool_calls"] = calls
    return message


def _seen(message: Object) -> Seen:
    role = "user" if _is_users(message) else "agent" if _role(message) in _AGENT else _role(message)
    listed = [*_calls(message)]
    calls = tool_calls.read_all(listed)
    known: JsonValue = listed if calls is None else [[call.id, call.name, call.arguments] for call in calls]
    return Seen(role, _text(message), chat_thread.digest(known) if listed else "")


def _text(message: Object) -> str:
    """Return the words of a message; OpenAI has those of a refusal apart."""
    said = payload.joined(_content(message), "text", "refusal")
    refusal = message.get("refusal")
    return "\n\n".join(text for text in (said, refusal) if isinstance(text, str) and text)


def _content(message: Object) -> JsonValue:
    """Return the content, which the AI SDK and Google have in `parts`, and some agents in `text`."""
    keys = ("content", "parts", "text")
    return next((message[key] for key in keys if message.get(key) is not None), None)


def _role(message: Object) -> str:
    return str(message.get("role") or message.get("type")).lower().removesuffix("message")


def _parts(message: Object) -> list[Object]:
    """Return the parts of a message; an item of the Responses API is one itself."""
    if not message.get("role") and _kind(message) in _CALL_PARTS | _RESULT_PARTS:
        return [message]
    content = _content(message)
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _kind(part: Object) -> str:
    """Return the type of a part; Google's have none, but a key."""
    return next((key for key in _GOOGLE_PARTS if part.get(key)), str(part.get("type")))


def _is_users(message: Object) -> bool:
    """Return whether a message is the user's own words.

    Anthropic has results of tools from the user too, and what stands beside these is no new message either: a
    reminder of the program that runs the agent, for example.
    """
    return _role(message) in _USER and all(_kind(part) not in _RESULT_PARTS for part in _parts(message))


def _shows_calls(message: Object) -> bool:
    kinds = {*map(_kind, _parts(message))}
    listed = isinstance(message.get("tool_calls"), list) or isinstance(message.get("function_call"), dict)
    return listed or _role(message) in _TOOL or bool(kinds & (_CALL_PARTS | _RESULT_PARTS))


def _may_call(message: Object) -> bool:
    """Return whether a message or a part of it may be a call in a form that is unknown here."""
    if message.get("invalid_tool_calls"):  # LangChain's name for calls with arguments that are no JSON
        return True
    kinds = {*map(_kind, _parts(message))}
    if not message.get("role") and _role(message) not in _TOOL:
        kinds.add(_kind(message))
    return any(map(_may_be_call, kinds - _CALL_PARTS - _RESULT_PARTS))


def _may_be_call(kind: str) -> bool:
    name = kind.lower()
    return ("tool" in name or "call" in name) and not name.endswith(("_tool_result", "_call_output"))


def _listed_calls(message: Object) -> list[JsonValue]:
    """Return the calls outside the content, or their pieces."""
    for key in ("tool_call_chunks", "tool_calls"):
        if isinstance(listed := message.get(key), list) and listed:
            return [*listed]
    older = message.get("function_call")
    return [{"function_call": older}] if isinstance(older, dict) else []


def _calls(message: Object) -> Iterator[JsonValue]:
    listed = _listed_calls(message)
    yield from listed
    if not message.get("tool_calls"):  # LangChain has Anthropic's calls in both places
        yield from (part for part in _parts(message) if _kind(part) in _CALL_PARTS)


def _lacks_call(result: Object, calls: Sequence[ToolCall]) -> bool:
    """Return whether a result of a tool answers none of the calls."""
    call_id, name = result.get("tool_call_id"), result.get("name")
    if call_id:
        return all(call.id not in (None, call_id) for call in calls)
    if name:
        return all(call.name != name for call in calls)
    return not calls


def _results(messages: Sequence[Object]) -> Iterator[Object]:
    """Yield results of tools that name their call, each with its id as `tool_call_id`."""
    return (result for result in _all_results(messages) if result.get("tool_call_id"))


def _all_results(messages: Sequence[Object]) -> Iterator[Object]:
    """Yield results of tools, as messages of a tool."""
    for message in messages:
        if _role(message) in _TOOL and not any(_kind(part) in _RESULT_PARTS for part in _parts(message)):
            yield message
        for part in _parts(message):
            if _kind(part) in _RESULT_PARTS:
                yield _result(part)


def _result(part: Object) -> Object:
    """Return a part with a result as the message of a tool."""
    inner = payload.filled(part.get(_kind(part))) or part
    call = next((inner[key] for key in _CALL_IDS if inner.get(key)), None)
    content = next((inner[key] for key in _RESULTS if key in inner), None)
    return {**inner, "tool_call_id": call, "content": content}
