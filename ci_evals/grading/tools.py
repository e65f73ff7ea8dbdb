"""Checks of tool calls: what was called, with which arguments, how often and in which order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ci_evals.domain.actions import calls_of
from ci_evals.domain.checks.tool_checks import MaxToolCalls, ToolCalled, ToolSequence, WantedCall
from ci_evals.domain.transcript import ToolCall, ToolStatus, Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading.evidence import CALLS, find_gap
from ci_evals.grading.matching import PatternSearch, all_hold, args_described, args_match, shown
from ci_evals.grading.replies import select_replies, times
from ci_evals.support.typography import names


@dataclass(frozen=True)
class _Seen:
    """A call and the turn in which it was made."""

    turn: int
    call: ToolCall

    def __str__(self) -> str:
        known = self.call.arguments
        arguments = "…" if known is None else ", ".join(f"{name}: {shown(known[name])}" for name in known)
        status = " failed" if self.call.status is ToolStatus.ERROR else ""
        return f"{self.call.name}({arguments}){status} in turn {self.turn}"


def called(evaluation: ToolCalled, transcript: Transcript) -> Verdict:
    """Return the verdict of a `tool_called`.

    Calls that cannot be told from those wanted count either way: their arguments were not captured, or
    whether they succeeded is not reported.
    """
    turns = select_replies(evaluation.turn, transcript)
    if isinstance(turns, Verdict):
        return turns
    unanswered = transcript.unanswered if evaluation.turn == "any" else None
    in_range = transcript.model_copy(update={"turns": tuple(turns), "unanswered": unanswered})
    calls = _calls(in_range)
    of_tool = [seen for seen in calls if names.same(seen.call.name, evaluation.tool_name)]
    search = PatternSearch()
    results = [_is_wanted(seen.call, evaluation, search) for seen in of_tool]
    sure, maybe = results.count(True), results.count(None)
    low, high = evaluation.times.min, evaluation.times.max
    wanted = f"{evaluation.tool_name}{args_described(evaluation.args)}"
    how = _HOW[evaluation.status]
    matching = [seen for seen, result in zip(of_tool, results, strict=True) if result]
    reason = f"{_counted(wanted, matching, how)}, expected: {evaluation.times}"
    if not sure and not evaluation.forbids:
        reason += f"; {_described(of_tool or calls)}"
    reason += other_names((evaluation.tool_name,), (seen.call.name for seen in calls))
    evidence = sorted({seen.turn for seen in matching or of_tool})
    gap = find_gap(CALLS, in_range)
    if high is not None and sure > high:
        return Verdict.failed(reason, *evidence)
    if sure >= low and (high is None or (not gap and sure + maybe <= high)):
        return Verdict.passed(reason, *evidence)
    if not gap and sure + maybe < low:
        return Verdict.failed(reason, *evidence)
    if gap:
        return gap.verdict(f"in the other turns {reason}")
    unclear = [seen for seen, result in zip(of_tool, results, strict=True) if result is None]
    return _unclear(unclear, by_status=evaluation.status is not None)


def sequence(evaluation: ToolSequence, transcript: Transcript) -> Verdict:
    """Return the verdict of a `tool_sequence`, by what openevals calls trajectory match modes."""
    calls, tools, mode = _calls(transcript), evaluation.tools, evaluation.mode
    # Whether each call may be each of those wanted: None where it cannot be told.
    search = PatternSearch()
    table = [[_is_call(seen.call, tool, search) for tool in tools] for seen in calls]
    surely = [[cell is True for cell in row] for row in table]
    perhaps = [[cell is not False for cell in row] for row in table]
    wanted = ", ".join(f"{tool.name}{args_described(tool.args)}" for tool in tools)
    reason = f"expected {_MODE_WORDS[mode].format(wanted)}; {_described(calls)}"
    reason += other_names([tool.name for tool in tools], [seen.call.name for seen in calls])
    evidence = sorted({seen.turn for seen in calls})
    fits, count = _FITS[mode], len(tools)
    if gap := find_gap(CALLS, transcript):
        if not evaluation.limits and fits(surely, count):
            return Verdict.passed(reason, *evidence)
        if evaluation.limits and not _COULD_FIT[mode](perhaps, count):
            return Verdict.failed(reason, *evidence)
        return gap.verdict(f"in the other turns {reason}")
    if fits(surely, count):
        return Verdict.passed(reason, *evidence)
    if not fits(perhaps, count):
        return Verdict.failed(reason, *evidence)
    return _unclear([seen for seen, row in zip(calls, table, strict=True) if None in row])


def at_most(evaluation: MaxToolCalls, transcript: Transcript) -> Verdict:
    """Return the verdict of a `max_tool_calls`."""
    tool = evaluation.tool_name
    made = _calls(transcript)
    calls = [seen for seen in made if tool is None or names.same(seen.call.name, tool)]
    reason = f"{_counted(tool or 'a tool', calls)}, at most {evaluation.calls} allowed"
    if tool is not None:
        reason += other_names((tool,), (seen.call.name for seen in made))
    evidence = sorted({seen.turn for seen in calls})
    if len(calls) > evaluation.calls:
        return Verdict.failed(reason, *evidence)
    if gap := find_gap(CALLS, transcript):
        return gap.verdict(f"in the other turns {reason}")
    return Verdict.passed(reason, *evidence)


def other_names(wanted: Iterable[str], seen: Iterable[str]) -> str:
    """Return a note on names that are wanted ones with a prefix, which a check takes for other tools."""
    made = tuple(seen)
    found = [(name, other) for name in wanted for other in names.prefixed(name, made)]
    return "".join(f"; {other} is another name than {name}" for name, other in dict.fromkeys(found))


def _calls(transcript: Transcript) -> list[_Seen]:
    return [_Seen(turn.index, call) for turn in transcript.turns for call in calls_of(turn).seen]


def _is_wanted(call: ToolCall, evaluation: ToolCalled, search: PatternSearch) -> bool | None:
    """Return whether a call of the tool counts; None if it cannot be told."""
    has_status: bool | None = True
    if evaluation.status:
        known = call.status is not ToolStatus.UNKNOWN
        has_status = call.status.value == evaluation.status if known else None
    has_args: bool | None = True
    if evaluation.args is not None or evaluation.args_mode == "exact":
        exact = evaluation.args_mode == "exact"
        known = call.arguments is not None
        wanted = evaluation.args or {}
        has_args = args_match(call.arguments or {}, wanted, search, exact=exact) if known else None
    return all_hold((has_status, has_args))


def _is_call(call: ToolCall, wanted: WantedCall, search: PatternSearch) -> bool | None:
    if not names.same(call.name, wanted.name):
        return False
    if not wanted.args:
        return True
    return None if call.arguments is None else args_match(call.arguments, wanted.args, search)


_Table = Sequence[Sequence[bool]]
"""True where a call (row) is one of those wanted (column)."""


def _in_order(table: _Table, wanted: int) -> bool:
    """Return whether the calls hold those wanted as a subsequence."""
    rows = iter(table)
    return all(any(row[column] for row in rows) for column in range(wanted))


def _within(table: _Table, wanted: int) -> bool:
    """Return whether the calls are a subsequence of those wanted."""
    columns = iter(range(wanted))
    return all(any(row[column] for column in columns) for row in table)


def _same(table: _Table, wanted: int) -> bool:
    return len(table) == wanted and all(table[index][index] for index in range(wanted))


def _subset(table: _Table, wanted: int) -> bool:
    """Return whether each call can be given a wanted one of its own."""
    return _paired(table, wanted) == len(table)


def _superset(table: _Table, wanted: int) -> bool:
    return _paired(table, wanted) == wanted


def _unordered(table: _Table, wanted: int) -> bool:
    return len(table) == wanted and _subset(table, wanted)


def _paired(table: _Table, wanted: int) -> int:
    """Return how many calls can be paired with wanted ones, one to one: augmenting paths (Kuhn 1955)."""
    holder: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in range(wanted):
            if table[row][column] and column not in tried:
                tried.add(column)
                if column not in holder or place(holder[column], tried):
                    holder[column] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(table)))


_FITS: dict[str, Callable[[_Table, int], bool]] = {
    "in_order": _in_order,
    "strict": _same,
    "unordered": _unordered,
    "subset": _subset,
    "superset": _superset,
}
_COULD_FIT = {"strict": _within, "unordered": _subset, "subset": _subset}
"""True if calls that were not seen might still make it fit."""
_MODE_WORDS = {
    "in_order": "{} in this order",
    "strict": "just {} in this order",
    "unordered": "just {} in any order",
    "subset": "nothing but {}",
    "superset": "at least {} in any order",
}


_HOW = {None: "", "ok": " successfully", "error": " with an error"}
"""A status as an adverb of calling."""


def _counted(wanted: str, calls: Sequence[_Seen], how: str = "") -> str:
    if not calls:
        return f"{wanted} was not called{how}"
    turns = ", ".join(str(turn) for turn in dict.fromkeys(seen.turn for seen in calls))
    return f"{wanted} was called{how} {times(len(calls))} (turn {turns})"


def _described(calls: Sequence[_Seen]) -> str:
    return f"called: {'; '.join(map(str, calls)) or 'no tool'}"


def _unclear(calls: Sequence[_Seen], *, by_status: bool = False) -> Verdict:
    """Return the verdict if it cannot be told whether these calls are those wanted.

    With `by_status` it depends on whether they succeeded.
    """
    first = calls[0]
    where = f"{first.call.name} in turn {first.turn}"
    if first.call.arguments is None:
        hint = f" ({first.call.not_captured})" if first.call.not_captured else ""
        reason = f"the arguments of {where} were not captured{hint}"
    elif by_status and first.call.status is ToolStatus.UNKNOWN:
        reason = f"whether {where} succeeded is not reported"
    else:
        reason = f"a pattern was searched in the arguments of {where} without an end"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason, *sorted({seen.turn for seen in calls}))
