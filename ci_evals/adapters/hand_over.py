"""Hand-overs to a person, by tools that options name: `escalationTools`."""

from collections.abc import Collection, Iterable, Mapping

from pydantic import JsonValue, TypeAdapter, ValidationError

from ci_evals.domain.base import NonBlank
from ci_evals.domain.errors import UsageError
from ci_evals.domain.transcript import Reply

KEY = "escalationTools"
_TOOLS: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[NonBlank, ...])


def tools_in(options: Mapping[str, JsonValue] | None) -> tuple[str, ...]:
    """Return the tools that hand over, from options whose form only their own code knows.

    Raises:
        UsageError: the value is no list of names.
    """
    if not options or KEY not in options:
        return ()
    try:
        return _TOOLS.validate_python(options[KEY])
    except ValidationError:
        raise UsageError(f"adapterOptions.{KEY} must be a list of tool names") from None


def with_tools(reply: Reply, tools: Collection[str], *, reported: bool) -> Reply:
    """Return the reply with what its tool calls say of a hand-over.

    `reported`: the agent also reports hand-overs itself. Then a call of one of the tools is evidence of a
    hand-over, and the lack of one is evidence of nothing.
    """
    if not tools or reply.handed_over:
        return reply
    all_known = reply.tool_calls is not None and not reply.tool_calls_partial
    by_tool = hand_over((call.name for call in reply.tool_calls or ()), tools, all_known=all_known)
    if reported and by_tool is False:
        return reply
    return reply.copy_with(handed_over=by_tool, handed_over_apart=True)


def hands_over(names: Iterable[str], tools: Collection[str]) -> bool:
    """Return whether a tool was called that hands over."""
    return any(name in tools for name in names)


def hand_over(names: Iterable[str], tools: Collection[str], *, all_known: bool) -> bool | None:
    """Return whether the agent handed over by one of the calls; None if that is unknown.

    One call that was read is evidence, whatever the others are. Only if all calls are known, and there cannot
    be others, is it known that there was none.
    """
    if not tools:
        return None
    if hands_over(names, tools):
        return True
    return False if all_known else None
