"""The evidence in a transcript, turn by turn, and what follows where there is none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from ci_evals.domain.actions import calls_of
from ci_evals.domain.checks.evaluation import Strict
from ci_evals.domain.checks.text_checks import (
    AnswerMatches,
    Contains,
    MaxAgentTurns,
    MaxLatency,
    NotContains,
    NotRegex,
    Regex,
)
from ci_evals.domain.checks.tool_checks import (
    JsonSchema,
    MaxToolCalls,
    PythonCheck,
    StateCheck,
    ToolCalled,
    ToolSequence,
)
from ci_evals.domain.checks.trace_checks import (
    Escalated,
    EscalatedDueToError,
    IntegrationCalled,
    NotEscalated,
    NotEscalatedDueToError,
    ParamEquals,
    ParamExists,
    ParamNotExists,
    RuleNotTriggered,
    RuleTriggered,
    ToolNotUsed,
    ToolUsed,
)
from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Cause, Outcome, Verdict


@dataclass(frozen=True)
class EvidenceKind:
    """A kind of evidence, and where a reply has it."""

    report: str
    """Object of the verb "reports" in messages."""
    of: Callable[[Turn], object]
    """Returns None if it is unknown."""
    keys: tuple[str, ...]
    """The keys in `not_found` of what should find it."""


HAND_OVER = EvidenceKind(
    "whether the agent hands over", lambda turn: turn.hand_over, ("escalated", "workflows", "toolCalls")
)
WORKFLOWS = EvidenceKind(
    "workflows", lambda turn: None if turn.tool_calls_partial else turn.workflows, ("workflows", "toolCalls")
)
PARAMS = EvidenceKind(
    "parameters", lambda turn: None if turn.tool_calls_partial else turn.params, ("params", "toolCalls")
)
RULES = EvidenceKind("rules", lambda turn: turn.rules, ("rules",))
INTEGRATIONS = EvidenceKind("integrations", lambda turn: turn.integrations, ("integrations",))
CALLS = EvidenceKind("all tool calls", lambda turn: calls_of(turn).complete or None, ("toolCalls",))
ERROR = EvidenceKind("whether it is an error", lambda turn: turn.error_response, ("error",))


def not_seen(reason: str, kind: EvidenceKind, transcript: Transcript, *evidence: int) -> Verdict:
    """Return the verdict of a positive check that saw nothing: undecided if a turn lacks evidence."""
    gap = find_gap(kind, transcript)
    if gap is None:
        return Verdict.failed(reason, *evidence)
    return gap.verdict(f"in the other turns {reason}")


@dataclass(frozen=True)
class Gap:
    """Turns without evidence."""

    turns: tuple[int, ...]
    """The answered ones."""
    reason: str
    cause: Cause
    everywhere: bool
    """True if no turn has evidence."""

    def verdict(self, elsewhere: str) -> Verdict:
        """Return the verdict of a check that the missing turns could decide."""
        reason = self.reason if self.everywhere else f"{self.reason}; {elsewhere}"
        return Verdict.undecided(self.cause, reason, *self.turns)


def find_gap(kind: EvidenceKind, transcript: Transcript, *, after: int = 0) -> Gap | None:
    """Return the turns later than `after` without evidence of a kind; None if there are none."""
    turns = [turn for turn in transcript.turns if turn.index > after and kind.of(turn) is None]
    silent = tuple(turn.index for turn in turns)
    reasons, everywhere = [], len(silent) == len(transcript.turns)
    if silent and everywhere:
        reasons = [f"no reply reports {kind.report}"]
    elif silent:
        reasons = [f"{_replies_of(silent)} report {kind.report}"]
    if transcript.unanswered is not None:
        reasons.append(f"message {transcript.unanswered} got no reply")
    reason = " and ".join(reasons)
    if missing := next((turn.trace_missing for turn in turns if turn.trace_missing), None):
        return Gap(silent, f"{reason}: {missing}", Cause.NO_TRACE, everywhere)
    if why := next(
        (turn.not_found[key] for turn in turns for key in kind.keys if key in turn.not_found), None
    ):
        reason = f"{reason}: {why}"
    return Gap(silent, reason, Cause.NO_EVIDENCE, everywhere) if reasons else None


def _replies_of(turns: Sequence[int]) -> str:
    """Return the subject of a sentence about replies that do not report something."""
    if len(turns) == 1:
        return f"the reply in turn {turns[0]} does not"
    return f"the replies in turns {', '.join(map(str, turns))} do not"


@dataclass(frozen=True)
class UnsentLines:
    """Lines of a test that were never sent, as the agent ended the conversation before them."""

    lines: Sequence[int]
    """The numbers of their turns."""
    because: str
    """The agent's act: `the agent handed over to a person`."""

    def limit(self, evaluation: Strict, verdict: Verdict) -> Verdict:
        """Return the verdict; `not_reached` if the replies to these lines could have decided it otherwise."""
        turn: object = getattr(evaluation, "turn", None)
        if verdict.cause is Cause.NO_EVIDENCE and isinstance(turn, int) and turn in self.lines:
            return self._not_reached([turn], "")
        graded = verdict.grade is not None and verdict.grade.score > 0
        if verdict.outcome is not Outcome.PASSED and not graded:
            return verdict
        missing = _could_undo(evaluation, self.lines)
        return self._not_reached(missing, verdict.reason) if missing else verdict

    def _not_reached(self, missing: Sequence[int], until_then: str) -> Verdict:
        last = self.lines[0] - 1
        reason = f"{_never_sent(missing)}: {self.because} in turn {last}"
        if until_then:
            reason += f"; until then {until_then}"
        return Verdict.undecided(Cause.NOT_REACHED, reason, last)


def _never_sent(lines: Sequence[int]) -> str:
    """Return `line 3 was never sent`, `lines 2, 3 and 4 were never sent`."""
    if len(lines) == 1:
        return f"line {lines[0]} was never sent"
    *others, last = map(str, lines)
    return f"lines {', '.join(others)} and {last} were never sent"


def _could_undo(evaluation: Strict, lines: Sequence[int]) -> Sequence[int]:
    """Return those of these later lines whose replies could turn a pass of the check into a failure.

    None for a check that something happened or was said. All for one that something did not happen, for a
    limit, and for one of the state at the end of the conversation.
    """
    match evaluation:
        case NotContains() | NotRegex():
            return () if isinstance(evaluation.turn, int) else lines
        case ToolCalled():
            is_open = evaluation.times.max is not None and not isinstance(evaluation.turn, int)
            return lines if is_open else ()
        case ToolNotUsed():
            before = evaluation.before_turn
            return [line for line in lines if before is None or line < before]
        case ToolSequence():
            return lines if evaluation.limits else ()
        case (
            NotEscalated()
            | NotEscalatedDueToError()
            | ParamNotExists()
            | RuleNotTriggered()
            | MaxToolCalls()
            | MaxAgentTurns()
            | MaxLatency()
            | ParamEquals()
            | StateCheck()
            | PythonCheck()
        ):
            return lines
        case (
            Escalated()
            | EscalatedDueToError()
            | ToolUsed()
            | ParamExists()
            | RuleTriggered()
            | IntegrationCalled()
            | Contains()
            | Regex()
            | AnswerMatches()
            | JsonSchema()
        ):
            return ()
        case _:
            assert_never(evaluation)
