"""Replies and findings as lines for a terminal. All foreign text in them is sanitized here."""

from collections.abc import Iterator, Sequence

from ci_evals.domain.actions import AgentAction, calls_of
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Finding
from ci_evals.reports import sanitize
from ci_evals.reports.story import turns
from ci_evals.reports.story.turns import HANDED_OVER
from ci_evals.support.json_text import written

_LONGEST_REPLY = 20_000
_LONGEST_VALUE = 300
_MOST_ACTIONS = 50
USER, AGENT = "you>   ", "agent> "
_INDENT = " " * len(AGENT)


def reply(turn: Turn) -> str:
    """Return a reply, and below it what the agent did for it."""
    lines = [f"{_INDENT}| {line}" for line in _actions(turn)]
    return "\n".join([_said(AGENT, turn.agent.strip("\n")), *lines])


def _actions(turn: Turn) -> Iterator[str]:
    for found in turns.action_lists(turn):
        for action in found.actions[:_MOST_ACTIONS]:
            yield f"{found.label}: {_action(action)}"
    calls = calls_of(turn)
    if not calls.complete:
        why = turn.trace_missing or turn.not_found.get("toolCalls") or "the agent does not report all"
        yield f"other tool calls unknown: {sanitize.log_line(why, _LONGEST_VALUE)}"
    if (error := turns.reply_error(turn)) is not None:
        yield f"error response: {sanitize.log_line(error, _LONGEST_VALUE)}"
    if turn.escalated:
        yield HANDED_OVER
    yield turns.reply_time(turn)


def _action(action: AgentAction) -> str:
    """Return an action, of a tool call with its result."""
    text = sanitize.log_line(turns.action_text(action), _LONGEST_VALUE)
    call = action.tool
    if call is None:
        return text
    if call.result is not None:
        text = f"{text} -> {sanitize.log_line(written(call.result), _LONGEST_VALUE)}"
    facts = sanitize.log_line(", ".join(turns.call_facts(call)), _LONGEST_VALUE)
    return f"{text} ({facts})" if facts else text


def sent(line: str) -> str:
    """Return a line of the user as it was sent."""
    return _said(USER, line)


def history(test: Test) -> Iterator[str]:
    """Yield the messages that the agent finds in its history."""
    for message in test.history:
        yield _said(USER if message["role"] == "user" else AGENT, message["content"])


def _said(who: str, text: str) -> str:
    first, *rest = sanitize.log(sanitize.cut(text, _LONGEST_REPLY, "… (cut)")).split("\n")
    return "\n".join([f"{who}{first}".rstrip(), *(f"{_INDENT}{line}".rstrip() for line in rest)])


def findings(found: Sequence[Finding]) -> str:
    """Return the verdicts on a test's criteria, a line each."""
    lines: list[str] = []
    for one in found:
        criterion = sanitize.log_line(one.criterion, _LONGEST_VALUE)
        reason = sanitize.log_line(one.reason, _LONGEST_VALUE)
        lines.append(f"  {one.outcome.value:<9} {criterion}: {reason}")
    return "\n".join(lines)


def shown(text: str) -> str:
    """Return a message that quotes foreign text."""
    return sanitize.log(text)
