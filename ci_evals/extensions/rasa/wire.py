"""Messages of a Rasa server: the REST channel, and the tracker of a conversation. Pure.

The channel has the words alone. What the assistant did is in the events that the tracker gains.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Reply, ToolCall, ToolStatus
from ci_evals.extensions.rasa.options import RasaOptions
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_NO_CALLS = frozenset(
    {
        "action_listen",
        "action_session_start",
        "action_extract_slots",
        "action_unlikely_intent",
        "action_deactivate_loop",
        "action_revert_fallback_events",
        "action_run_slot_rejections",
        "action_clean_stack",
        "action_default_ask_affirmation",
        "action_default_ask_rephrase",
        "action_restart",
        "action_back",
    }
)
"""Actions of Rasa itself, which do nothing but steer the conversation."""
_HIDDEN = frozenset({"action_listen", "action_session_start", "action_extract_slots"})
"""Those that come with every message."""

_INTERNAL_ERROR = "pattern_internal_error"
_INTERNAL_ERROR_WORDS = "utter_internal_error_rasa"

Object = dict[str, JsonValue]


@dataclass(frozen=True)
class Tracker:
    """A conversation as the server keeps it."""

    events: tuple[Object, ...] = ()
    slots: Mapping[str, JsonValue] | None = None


def tracker(body: JsonValue, redactor: Redactor) -> Tracker:
    """Read a tracker; raise `AgentError` if it is none."""
    events, slots = payload.member(body, "events"), payload.member(body, "slots")
    if not isinstance(events, list) or not isinstance(slots, dict):
        shown = payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))
        raise AgentError(f"the agent's tracker cannot be read, it has no events or no slots: {shown}")
    return Tracker(tuple(event for event in events if isinstance(event, dict)), slots)


def words(body: JsonValue, sender: str, redactor: Redactor) -> str:
    """Return the words of an answer, which is a list of messages; raise `AgentError` if it is none."""
    if not isinstance(body, list) or not all(isinstance(message, dict) for message in body):
        shown = payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))
        raise AgentError(
            f"the agent's answer is not a list of messages: {shown} (is it Rasa's REST channel?)"
        )
    messages = [message for message in body if isinstance(message, dict)]
    if any(message.get("recipient_id") not in (None, sender) for message in messages):
        raise AgentError("the agent answered somebody else: recipient_id is not the sender of the message")
    return "\n\n".join(text for text in map(_message, messages) if text.strip())


def _message(message: Object) -> str:
    """Return a message as a person would see it."""
    parts = [payload.name(message.get(key)) for key in ("text", "image", "attachment")]
    buttons = message.get("buttons")
    parts += [
        f"- {title}"
        for button in (buttons if isinstance(buttons, list) else ())
        if (title := payload.name(payload.member(button, "title")))
    ]
    if custom := message.get("custom"):
        parts.append(json.dumps(custom, ensure_ascii=False))
    return "\n".join(part for part in parts if part)


def reply(
    text: str, seconds: float, before: Tracker | None, after: Tracker | None, options: RasaOptions
) -> Reply:
    """Make a reply of words, and of what a tracker has gained; raise `AgentError` if there is neither."""
    if before is None or after is None:
        _check(text, handed_over=None)
        return Reply(agent=text, latency_seconds=seconds)
    events = _gained(before, after)
    calls = [*_calls(events, before)]
    handed_over = any(_kind(event) == "pause" for event in events) or any(
        call.name in options.escalation_tools for call in calls
    )
    failed = any(map(_is_internal_error, events))
    _check(text, handed_over=handed_over or failed)
    trace: JsonValue = [*events]
    return Reply(
        agent=text,
        latency_seconds=seconds,
        **views_of(calls, [*_workflows(events)], _slots(events)),
        handed_over=handed_over,
        handed_over_apart=True,
        error_response=True if failed else None,
        error_detail=f"the assistant met an internal error ({_INTERNAL_ERROR})" if failed else None,
        trace=trace,
    )


def _is_internal_error(event: Object) -> bool:
    """Return whether an event is of the pattern by which an assistant says that it failed."""
    begins = _kind(event) == "flow_started" and event.get("flow_id") == _INTERNAL_ERROR
    return begins or (_kind(event) == "action" and event.get("name") == _INTERNAL_ERROR_WORDS)


def _check(text: str, *, handed_over: bool | None) -> None:
    if not text and not handed_over:
        raise AgentError(
            "the agent answered with no message: no rule or story fits, an action failed, or the "
            "conversation is paused (see the server's log)"
        )


def _gained(before: Tracker, after: Tracker) -> tuple[Object, ...]:
    """Return the events of one message; raise `AgentError` if the tracker lost those before it."""
    count = len(before.events)
    # Rasa shows a session that it has not stored yet, and starts it again, later, at the first message
    if _untimed(after.events[:count]) != _untimed(before.events):
        raise AgentError("the agent's tracker lost the events of earlier messages")
    return after.events[count:]


def _untimed(events: Sequence[Object]) -> list[Object]:
    return [{name: value for name, value in event.items() if name != "timestamp"} for event in events]


def _calls(events: Sequence[Object], before: Tracker) -> Iterator[ToolCall]:
    """Yield the actions, each with the slots that it was given, and those that it set."""
    slots = dict(before.slots or {})
    for index, event in enumerate(events):
        name = payload.name(event.get("name"))
        match _kind(event):
            case "slot" if name is not None:
                slots[name] = event.get("value")
            case "action_execution_rejected" if name is not None:
                yield ToolCall(name=name, arguments=_filled(slots), status=ToolStatus.ERROR)
            case "action" if name and name not in _NO_CALLS and not name.startswith("utter_"):
                results = _slots(_until_next_action(events[index + 1 :]))
                yield ToolCall(name=name, arguments=_filled(slots), result=results or None)


def _until_next_action(events: Iterable[Object]) -> Iterator[Object]:
    for event in events:
        if _kind(event) in ("action", "user"):
            return
        yield event


def _workflows(events: Iterable[Object]) -> Iterator[str]:
    """Yield the names of actions, responses included, of forms and of flows."""
    for event in events:
        key = {"action": "name", "active_loop": "name", "flow_started": "flow_id"}.get(_kind(event))
        name = payload.name(event.get(key)) if key else None
        if name and name not in _HIDDEN:
            yield name


def _slots(events: Iterable[Object]) -> dict[str, JsonValue]:
    slots = (event for event in events if _kind(event) == "slot")
    return {name: event.get("value") for event in slots if (name := payload.name(event.get("name")))}


def _filled(slots: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in slots.items() if value is not None}


def _kind(event: Object) -> str:
    return str(event.get("event"))
