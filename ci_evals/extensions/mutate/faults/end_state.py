"""Faults of the end state, and what becomes of it without a call."""

from collections.abc import Collection, Iterable, Iterator

from pydantic import JsonValue

from ci_evals.domain.transcript import ProbeResult, ToolCall, Transcript
from ci_evals.extensions.mutate.faults.conversation import Conversation

_SHORTEST_NAME = 3
"""Characters of a value that can name an object; shorter ones, such as counts, stand anywhere."""


def state_unchanged(conversation: Conversation) -> Transcript | None:
    """Stand for an agent whose calls report success and change nothing.

    Needs the state before the first message.
    """
    before, after = conversation.before, conversation.transcript.probes
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    if not any(before[name].error is None for name in changed):
        return None
    return conversation.transcript.copy_with(probes=after | {n: before[n] for n in changed})


def with_state_before(conversation: Conversation, transcript: Transcript) -> Transcript:
    """Return the transcript with the end state of an agent that did nothing; unknown if none was taken."""
    unknown = ProbeResult(error="the state before the conversation was not taken")
    probes = {name: conversation.before.get(name, unknown) for name in transcript.probes}
    return transcript.copy_with(probes=probes)


def without_effect(conversation: Conversation, call: ToolCall, transcript: Transcript) -> Transcript:
    """Return the transcript with the end state that there is without a call.

    What of the state changed and names the same object as the call is as it was before. It is unknown if
    other calls name that object too, or if the state before was not taken.
    """
    names = frozenset(_object_names(call))
    shared = not names.isdisjoint(_names_of_other_calls(conversation, call))
    probes = {
        name: _without_effect(conversation.before.get(name), after, names, shared=shared)
        for name, after in transcript.probes.items()
    }
    return transcript.copy_with(probes=probes)


def with_unknown_effect(conversation: Conversation, call: ToolCall, transcript: Transcript) -> Transcript:
    """Return the transcript with an unknown end state where a call has left, or would leave, a trace."""
    names = frozenset(_object_names(call))
    probes = {}
    for name, after in transcript.probes.items():
        before = conversation.before.get(name)
        untouched = before is not None and before == after and not _mentions(after.value, names)
        probes[name] = after if untouched else _UNKNOWN
    return transcript.copy_with(probes=probes)


def with_effect_of_other(
    conversation: Conversation, call: ToolCall, other: ToolCall, transcript: Transcript
) -> Transcript:
    """Return the transcript with the end state that there is if another call was made instead.

    A call about another object has no effect on this one. Otherwise the effect is unknown.
    """
    if set(_argument_names(call)) != set(_argument_names(other)):
        return without_effect(conversation, call, transcript)
    return with_unknown_effect(conversation, call, transcript)


_UNKNOWN = ProbeResult(error="it depends on the effect of a call with a planted fault")


def _without_effect(
    before: ProbeResult | None, after: ProbeResult, names: Collection[str], *, shared: bool
) -> ProbeResult:
    if after.error is not None:
        return after
    if before is None or before.error is not None:
        return _UNKNOWN if _mentions(after.value, names) else after
    reverted = _reverted(before.value, after.value, names)
    if reverted == after.value:
        return after
    return _UNKNOWN if shared else ProbeResult(value=reverted)


def _reverted(before: JsonValue, after: JsonValue, names: Collection[str]) -> JsonValue:
    """Return `after`, with everything that names the object as it was before."""
    if before == after:
        return after
    if _is_named(before, names) or _is_named(after, names):
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        return _reverted_object(before, after, names)
    if isinstance(before, list) and isinstance(after, list):
        return _reverted_list(before, after, names)
    return after


def _reverted_object(
    before: dict[str, JsonValue], after: dict[str, JsonValue], names: Collection[str]
) -> JsonValue:
    result = {}
    for key in [*after, *(key for key in before if key not in after)]:
        if key in before and key in after:
            result[key] = before[key] if key in names else _reverted(before[key], after[key], names)
        elif key in after:
            if key not in names and not _mentions(after[key], names):
                result[key] = after[key]
        elif key in names or _mentions(before[key], names):
            result[key] = before[key]
    return result


def _reverted_list(before: list[JsonValue], after: list[JsonValue], names: Collection[str]) -> JsonValue:
    if len(before) == len(after):
        return [_reverted(old, new, names) for old, new in zip(before, after, strict=True)]
    kept = [item for item in after if item in before or not _mentions(item, names)]
    gone = [item for item in before if item not in after and _mentions(item, names)]
    return kept + gone


def _is_named(value: JsonValue, names: Collection[str]) -> bool:
    """Return whether an object has a plain value that is one of the names."""
    if not isinstance(value, dict):
        return False
    return any(not isinstance(item, dict | list) and str(item) in names for item in value.values())


def _mentions(value: JsonValue, names: Collection[str]) -> bool:
    if isinstance(value, dict):
        return any(key in names or _mentions(item, names) for key, item in value.items())
    if isinstance(value, list):
        return any(_mentions(item, names) for item in value)
    return str(value) in names


def _object_names(call: ToolCall) -> Iterator[str]:
    """Yield the values by which the state may name what a call was about."""
    yield from _argument_names(call)
    if isinstance(call.result, dict):
        yield from _names_among(call.result.values())


def _argument_names(call: ToolCall) -> Iterator[str]:
    yield from _names_among((call.arguments or {}).values())


def _names_among(values: Iterable[JsonValue]) -> Iterator[str]:
    for value in values:
        is_name = isinstance(value, str | int) and not isinstance(value, bool)
        if is_name and len(str(value)) >= _SHORTEST_NAME:
            yield str(value)


def _names_of_other_calls(conversation: Conversation, call: ToolCall) -> Iterator[str]:
    for turn in conversation.turns:
        for other in turn.tool_calls or ():
            if other != call:
                yield from _object_names(other)
