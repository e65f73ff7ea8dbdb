"""Checks of tool calls: what was called, with which arguments, how often and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from ci_evals.domain.actions import LogicKind, LogicPart, calls_of
from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.checks.call_sequences import RULES, SequenceMode
from ci_evals.domain.checks.evidence import EvidenceKind, find_gap
from ci_evals.domain.checks.matcher import MatcherField
from ci_evals.domain.checks.matching import PatternSearch, all_hold, args_described, args_match, shown
from ci_evals.domain.checks.naming import other_names
from ci_evals.domain.checks.replies import select_replies, times
from ci_evals.domain.checks.strict_check import LastingCheck, StrictCheck, family
from ci_evals.domain.criterion import TurnChoice
from ci_evals.domain.transcript import ToolCall, ToolStatus, Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.support.typography import names

CALLS = EvidenceKind("all tool calls", lambda turn: calls_of(turn).complete or None, ("toolCalls",))

Args = dict[NonBlank, MatcherField]


@dataclass(frozen=True)
class SeenCall:
    """A call and the turn in which it was made."""

    turn: int
    call: ToolCall

    def __str__(self) -> str:
        arguments = "…"
        if self.call.arguments is not None:
            pairs = [f"{name}: {shown(value)}" for name, value in self.call.arguments.items()]
            arguments = ", ".join(pairs)
        status = " failed" if self.call.status is ToolStatus.ERROR else ""
        return f"{self.call.name}({arguments}){status} in turn {self.turn}"


class CallCount(Model):
    """How many calls are wanted."""

    min: int = Field(0, ge=0, description="Minimum number of calls.")
    max: int | None = Field(None, ge=0, description="Maximum number of calls.")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.max is None and not self.min:
            raise PydanticCustomError("no_count", "needs a 'min' of at least 1, a 'max', or both")
        if self.max is not None and self.min > self.max:
            raise PydanticCustomError("no_count", "no number of calls can meet it: 'min' is above 'max'")
        return self

    def __str__(self) -> str:
        if self.max is None:
            return f"at least {self.min}"
        if self.min == self.max:
            return f"exactly {self.min}" if self.min else "none"
        return f"{self.min} to {self.max}" if self.min else f"at most {self.max}"


def _as_count(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return {"min": value, "max": value} if is_number else value


_ONCE_OR_MORE = CallCount(min=1)


class ToolCalled(StrictCheck):
    """Passes if the tool was called with such arguments, as often as `times` says."""

    strict: Literal["tool_called"]
    tool_name: NonBlank = Field(description="The tool's name.")
    args: Args | None = Field(
        None, description="Arguments by name: a plain value to be equal to, or an object with conditions."
    )
    args_mode: Literal["subset", "exact"] = Field(
        "subset", description="`subset`: other arguments are allowed. `exact`: they are not."
    )
    times: Annotated[
        CallCount, BeforeValidator(_as_count, json_schema_input_type=Annotated[int, Field(ge=0)] | CallCount)
    ] = Field(
        _ONCE_OR_MORE, description="How many such calls: a number, or `{min, max}`; by default `{min: 1}`."
    )
    turn: TurnChoice = Field("any", description="Calls in which turn: its number, `last`, or `any`.")
    status: Literal["ok", "error"] | None = Field(
        None, description="Count only calls that succeeded (`ok`), or failed (`error`)."
    )

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return CALLS

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        is_open = self.times.max is not None and not isinstance(self.turn, int)
        return later if is_open else ()

    def _decide(self, transcript: Transcript) -> Verdict:
        """Return the verdict on the calls in the turns that count.

        Calls that cannot be told from those wanted count either way: their arguments were not captured, or
        whether they succeeded is not reported.
        """
        turns = select_replies(self.turn, transcript)
        if isinstance(turns, Verdict):
            return turns
        unanswered = transcript.unanswered if self.turn == "any" else None
        in_range = transcript.copy_with(turns=tuple(turns), unanswered=unanswered)
        calls = calls_in(in_range)
        of_tool = [seen for seen in calls if names.same(seen.call.name, self.tool_name)]
        search = PatternSearch()
        matching, unclear = [], []
        for seen in of_tool:
            is_wanted = _is_wanted(seen.call, self, search)
            if is_wanted:
                matching.append(seen)
            elif is_wanted is None:
                unclear.append(seen)
        sure, possible = len(matching), len(matching) + len(unclear)
        low, high = self.times.min, self.times.max
        reason = self._reason(calls, of_tool, matching)
        evidence = sorted({seen.turn for seen in matching or of_tool})
        gap = find_gap(CALLS, in_range)
        if high is not None and sure > high:
            return Verdict.failed(reason, *evidence)
        if sure >= low and (high is None or (not gap and possible <= high)):
            return Verdict.passed(reason, *evidence)
        if not gap and possible < low:
            return Verdict.failed(reason, *evidence)
        if gap:
            return gap.verdict(f"in the other turns {reason}")
        return _unclear(unclear, by_status=self.status is not None)

    def _reason(
        self, calls: Sequence[SeenCall], of_tool: Sequence[SeenCall], matching: Sequence[SeenCall]
    ) -> str:
        wanted = f"{self.tool_name}{args_described(self.args)}"
        reason = f"{_counted(wanted, matching, _HOW[self.status])}, expected: {self.times}"
        if not matching and not self._forbids:
            reason += f"; {_described(of_tool or calls)}"
        return reason + other_names((self.tool_name,), (seen.call.name for seen in calls))

    @property
    def _forbids(self) -> bool:
        """True if no such call may be made."""
        return self.times.max == 0

    def covers(self) -> LogicPart | None:
        return None if self._forbids else (LogicKind.WORKFLOW, self.tool_name)

    def tool_names(self) -> Sequence[str]:
        return (self.tool_name,)

    def codes(self) -> Sequence[str]:
        return (self.tool_name,)

    def reads_arguments(self) -> bool:
        return self.args is not None

    def arguments_hint(self) -> str | None:
        return None if self._forbids else "add 'args'"


class WantedCall(Model):
    """A call in a sequence."""

    name: NonBlank = Field(description="The tool's name.")
    args: Args | None = Field(None, description="Arguments by name; others are allowed.")


def _as_call(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class ToolSequence(StrictCheck):
    """Passes if the calls of the conversation match a list of calls."""

    strict: Literal["tool_sequence"]
    tools: Annotated[
        list[Annotated[WantedCall, BeforeValidator(_as_call, json_schema_input_type=NonBlank | WantedCall)]],
        Field(min_length=1),
    ] = Field(description="Names of tools, or objects with `name` and `args`.")
    mode: SequenceMode = Field(
        "in_order",
        description="`in_order`: these calls in this order, with others between. `strict`: exactly these "
        "calls in this order. `unordered`: exactly these in any order. `subset`: only these calls. "
        "`superset`: at least these, in any order.",
    )

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return CALLS

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        return () if RULES[self.mode].could_fit is None else later

    def _decide(self, transcript: Transcript) -> Verdict:
        calls = calls_in(transcript)
        # Whether each call may be each of those wanted: None where it cannot be told.
        search = PatternSearch()
        table = [[_is_call(seen.call, tool, search) for tool in self.tools] for seen in calls]
        surely = [[cell is True for cell in row] for row in table]
        perhaps = [[cell is not False for cell in row] for row in table]
        reason = self._reason(calls)
        evidence = sorted({seen.turn for seen in calls})
        rule, count = RULES[self.mode], len(self.tools)
        if gap := find_gap(CALLS, transcript):
            if rule.could_fit is None and rule.fits(surely, count):
                return Verdict.passed(reason, *evidence)
            if rule.could_fit is not None and not rule.could_fit(perhaps, count):
                return Verdict.failed(reason, *evidence)
            return gap.verdict(f"in the other turns {reason}")
        if rule.fits(surely, count):
            return Verdict.passed(reason, *evidence)
        if not rule.fits(perhaps, count):
            return Verdict.failed(reason, *evidence)
        return _unclear([seen for seen, row in zip(calls, table, strict=True) if None in row])

    def _reason(self, calls: Sequence[SeenCall]) -> str:
        wanted = ", ".join(f"{tool.name}{args_described(tool.args)}" for tool in self.tools)
        reason = f"expected {RULES[self.mode].words.format(wanted)}; {_described(calls)}"
        return reason + other_names(self.tool_names(), (seen.call.name for seen in calls))

    def tool_names(self) -> Sequence[str]:
        return [tool.name for tool in self.tools]

    def reads_arguments(self) -> bool:
        return any(tool.args is not None for tool in self.tools)


class MaxToolCalls(LastingCheck):
    """Passes if the agent made at most `calls` calls of tools."""

    strict: Literal["max_tool_calls"]
    calls: int = Field(ge=0, description="The maximum number of calls in the conversation.")
    tool_name: NonBlank | None = Field(None, description="Count only the calls of this tool.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return CALLS

    def _decide(self, transcript: Transcript) -> Verdict:
        tool = self.tool_name
        made = calls_in(transcript)
        calls = [seen for seen in made if tool is None or names.same(seen.call.name, tool)]
        reason = f"{_counted(tool or 'a tool', calls)}, at most {self.calls} allowed"
        reason += other_names(self.tool_names(), (seen.call.name for seen in made))
        evidence = sorted({seen.turn for seen in calls})
        if len(calls) > self.calls:
            return Verdict.failed(reason, *evidence)
        if gap := find_gap(CALLS, transcript):
            return gap.verdict(f"in the other turns {reason}")
        return Verdict.passed(reason, *evidence)

    def tool_names(self) -> Sequence[str]:
        return () if self.tool_name is None else (self.tool_name,)

    def codes(self) -> Sequence[str]:
        return self.tool_names()


FAMILY = family(ToolCalled, ToolSequence, MaxToolCalls)


def calls_in(transcript: Transcript) -> list[SeenCall]:
    """Return all calls that are known, in their order."""
    calls = []
    for turn in transcript.turns:
        calls += [SeenCall(turn.index, call) for call in calls_of(turn).seen]
    return calls


def _is_wanted(call: ToolCall, check: ToolCalled, search: PatternSearch) -> bool | None:
    """Return whether a call of the tool counts; None if it cannot be told."""
    has_status: bool | None = True
    if check.status:
        is_reported = call.status is not ToolStatus.UNKNOWN
        has_status = call.status.value == check.status if is_reported else None
    has_args: bool | None = True
    exact = check.args_mode == "exact"
    if check.args is not None or exact:
        has_args = None
        if call.arguments is not None:
            has_args = args_match(call.arguments, check.args or {}, search, exact=exact)
    return all_hold((has_status, has_args))


def _is_call(call: ToolCall, wanted: WantedCall, search: PatternSearch) -> bool | None:
    if not names.same(call.name, wanted.name):
        return False
    if not wanted.args:
        return True
    return None if call.arguments is None else args_match(call.arguments, wanted.args, search)


_HOW = {None: "", "ok": " successfully", "error": " with an error"}
"""A status as an adverb of calling."""


def _counted(wanted: str, calls: Sequence[SeenCall], how: str = "") -> str:
    if not calls:
        return f"{wanted} was not called{how}"
    turns = ", ".join(str(turn) for turn in dict.fromkeys(seen.turn for seen in calls))
    return f"{wanted} was called{how} {times(len(calls))} (turn {turns})"


def _described(calls: Sequence[SeenCall]) -> str:
    return f"called: {'; '.join(map(str, calls)) or 'no tool'}"


def _unclear(calls: Sequence[SeenCall], *, by_status: bool = False) -> Verdict:
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
