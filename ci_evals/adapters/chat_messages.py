"""Lists of chat messages, as agents and frameworks return them: what is new, what was said and called. Pure.

A message has a `role` (or LangChain's `type`) and a `content`: a text, or a list of parts. Calls are in
`tool_calls` (or the older `function_call`), or parts of the content, as Anthropic (`tool_use`) and the AI
SDK (`tool-call`) have it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.adapters.transport import payload
from ci_evals.domain.transcript import ToolCall

_USER = frozenset({"user", "human"})
_AGENT = frozenset({"assistant", "ai", "model", "aimessagechunk"})
_TOOL = frozenset({"tool", "function"})
_CALL_PARTS = frozenset({
    "tool_use", "tool-call", "tool_call", "mcp_tool_use", "server_tool_use", "function_call",
    "custom_tool_call",
})  # fmt: skip
_RESULT_PARTS = frozenset({"tool_result", "tool-result", "mcp_tool_result"})

Object = dict[str, JsonValue]


class Answer(NamedTuple):
    """What the new messages of a list say."""

    text: str
    calls: tuple[ToolCall, ...] | None
    """None if it is unknown whether there were any."""


def read(messages: Sequence[JsonValue]) -> Answer:
    """Read the messages after the user's last one.

    Raise `ValueError`, with a text to go after "no", if none of them is the agent's.
    Calls are known only if any message, also an earlier one, shows that the list has them: by `tool_calls`,
    even empty, or by a call or result among its parts.
    """
    listed = [message for message in messages if isinstance(message, dict)]
    asked = [index for index, message in enumerate(listed) if _is_users(message)]
    new = listed[asked[-1] + 1 :] if asked else listed
    answers = [message for message in new if _role(message) in _AGENT]
    if not answers:
        raise ValueError("new message of the assistant")
    texts = [payload.joined(message.get("content"), "text") for message in answers]
    text = "\n\n".join(text for text in texts if text.strip())
    if not any(map(_shows_calls, listed)):
        return Answer(text, None)
    if any(map(_may_call, answers)):
        return Answer(text, None)
    calls = tool_calls.read_all([call for message in answers for call in _calls(message)])
    return Answer(text, calls and tool_calls.with_results(calls, [*_results(new)]))


def _role(message: Object) -> str:
    return str(message.get("role") or message.get("type")).lower().removesuffix("message")


def _parts(message: Object) -> list[Object]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _is_users(message: Object) -> bool:
    """Return whether a message is the user's own words.

    Anthropic has results of tools from the user too, and what stands beside these is no new message either: a
    reminder of the program that runs the agent, for example.
    """
    return _role(message) in _USER and all(part.get("type") not in _RESULT_PARTS for part in _parts(message))


def _shows_calls(message: Object) -> bool:
    kinds = {str(part.get("type")) for part in _parts(message)}
    listed = isinstance(message.get("tool_calls"), list) or isinstance(message.get("function_call"), dict)
    return listed or _role(message) in _TOOL or bool(kinds & (_CALL_PARTS | _RESULT_PARTS))


def _may_call(message: Object) -> bool:
    """Return whether a part may be a call in a form that is unknown here."""
    others = {str(part.get("type")) for part in _parts(message)} - _CALL_PARTS - _RESULT_PARTS
    return any(("tool" in kind or "call" in kind) and not kind.endswith("_tool_result") for kind in others)


def _calls(message: Object) -> Iterator[JsonValue]:
    listed = message.get("tool_calls")
    yield from listed if isinstance(listed, list) else ()
    if isinstance(older := message.get("function_call"), dict):
        yield {"function_call": older}
    if not listed:  # LangChain has Anthropic's calls in both places
        yield from (part for part in _parts(message) if part.get("type") in _CALL_PARTS)


def _results(messages: Sequence[Object]) -> Iterator[Object]:
    """Yield results of tools, each with the id of its call as `tool_call_id`."""
    for message in messages:
        if _role(message) in _TOOL and "tool_call_id" in message:
            yield message
        for part in _parts(message):
            if part.get("type") in _RESULT_PARTS:
                call = part.get("tool_use_id") or part.get("toolCallId")
                content = part.get("content") if "content" in part else part.get("output", part.get("result"))
                yield {**part, "tool_call_id": call, "content": content}
