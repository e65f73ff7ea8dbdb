"""Contradictions between what an agent reports of a turn and what its spans show. Pure."""

from collections.abc import Iterable

from ci_evals.domain.actions import calls_of
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.support.documentation import see
from ci_evals.support.json_text import canonical

_UNREPORTED = f"the agent's spans show a call of {{!r}} that its own report does not have ({see('traces')})"
_OTHERWISE = (
    f"the agent's spans show a call of {{!r}} with arguments other than those it reports ({see('traces')})"
)


def contradiction(reply: Reply, shown: Iterable[ToolCall]) -> str | None:
    """Return how the calls that spans show contradict those that a reply reports; None if they do not.

    Each call that spans show needs a reported one. A reply that reports workflows or integrations has their
    names only.
    """
    reported = [*calls_of(reply).seen]
    by_name = reply.tool_calls is None or reply.tool_calls_derived
    # Those with known arguments first: the others may be any that is left.
    for call in sorted(shown, key=lambda each: each.arguments is None):
        same = [each for each in reported if each.name == call.name]
        if not same:
            return _UNREPORTED.format(call.name)
        if by_name:
            continue
        match = next((each for each in same if _is_equal(each, call)), None)
        match = match or next((each for each in same if _may_be(each, call)), None)
        if match is None:
            return _OTHERWISE.format(call.name)
        reported.remove(match)
    return None


def _is_equal(one: ToolCall, other: ToolCall) -> bool:
    return one.arguments is not None and other.arguments is not None and _may_be(one, other)


def _may_be(one: ToolCall, other: ToolCall) -> bool:
    if one.arguments is None or other.arguments is None:
        return True
    return canonical(one.arguments) == canonical(other.arguments)
