"""Replies and findings as lines for a terminal. All foreign text in them is sanitized here."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from pydantic import JsonValue

from ci_evals.domain.actions import calls_of, other_workflows
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Integration, ToolCall, ToolStatus, Turn
from ci_evals.domain.verdict import Finding
from ci_evals.reports import sanitize
from ci_evals.support.json_text import written

T = TypeVar("T")

_LONGEST_REPLY = 20_000
_LONGEST_VALUE = 300
_LONGEST_NAME = 200
_MOST_ITEMS = 50
USER, AGENT = "you>   ", "agent> "
_INDENT = " " * len(AGENT)


def reply(turn: Turn) -> str:
    """Return a reply, and below it what the agent did for it."""
    lines = [f"{_INDENT}| {line}" for line in _actions(turn)]
    return "\n".join([_said(AGENT, turn.agent.strip("\n")), *lines])


def _actions(turn: Turn) -> Iterator[str]:
    calls = calls_of(turn)
    if turn.tool_calls is None or turn.tool_calls_derived:
        workflows: Iterable[str] = turn.workflows or ()
        yield from (f"workflow {_name(name)}" for name in _some(workflows))
        yield from (f"integration {_integration(one)}" for one in _some(turn.integrations or ()))
    else:
        yield from (f"tool {_call(call)}" for call in _some(calls.seen))
        yield from (f"workflow {_name(name)}" for name in _some(other_workflows(turn) or ()))
    yield from (f"rule {_name(code)}" for code in _some(turn.rules or ()))
    if not calls.complete:
        why = turn.trace_missing or turn.not_found.get("toolCalls") or "the agent does not report all"
        yield f"other tool calls unknown: {sanitize.log_line(why, _LONGEST_VALUE)}"
    if turn.error_response:
        yield f"error {sanitize.log_line(turn.error_detail or 'without details', _LONGEST_VALUE)}"
    if turn.escalated:
        yield "handed over to a person"
    yield f"{turn.latency_seconds:.1f} s"


def _some(items: Iterable[T]) -> Iterator[T]:
    return islice(items, _MOST_ITEMS)


def _call(call: ToolCall) -> str:
    arguments = "…"
    if call.arguments is not None:
        pairs = (f"{_name(name)}: {_value(value)}" for name, value in call.arguments.items())
        arguments = ", ".join(pairs)
    result = "" if call.result is None else f" -> {_value(call.result)}"
    failed = " (failed)" if call.status is ToolStatus.ERROR else ""
    return f"{_name(call.name)}({arguments}){result}{failed}"


def _integration(call: Integration) -> str:
    status = "" if call.status is None else f" -> {call.status}"
    error = f" ({sanitize.log_line(call.error, _LONGEST_VALUE)})" if call.error else ""
    return f"{_name(call.code)}{status}{error}"


def _name(name: str) -> str:
    return sanitize.log_line(name, _LONGEST_NAME)


def _value(value: JsonValue) -> str:
    return sanitize.log_line(written(value), _LONGEST_VALUE)


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
