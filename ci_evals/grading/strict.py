"""Strict evaluations: pure functions of the transcript.

Evidence of each kind is known or unknown, turn by turn. A positive check passes as soon as there is any, and
fails only if every turn in its range has evidence of its kind; a negative check is its opposite. If a turn is
unknown and nothing contradicts the check, the verdict is undecided (`no_evidence`) and names the turns.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

import regex
from pydantic import JsonValue

from ci_evals.domain.evaluation import (
    AnswerMatches,
    Contains,
    Escalated,
    EscalatedDueToError,
    IntegrationCalled,
    MaxAgentTurns,
    MaxLatency,
    NotContains,
    NotEscalated,
    NotEscalatedDueToError,
    NotRegex,
    ParamEquals,
    ParamExists,
    ParamNotExists,
    Regex,
    RuleNotTriggered,
    RuleTriggered,
    Strict,
    ToolNotUsed,
    ToolUsed,
)
from ci_evals.domain.transcript import ESCALATION, Integration, Transcript, Turn, is_empty
from ci_evals.domain.verdict import Cause, Outcome, Verdict
from ci_evals.grading import answer_matching
from ci_evals.grading.replies import NO_REPLY, Turns, times, verdict_on_replies
from ci_evals.support.text import bare

PATTERN_SECONDS = 1.0
"""Time limit of a suite's regular expression: a bad one could block the program for hours."""


def decide(evaluation: Strict, transcript: Transcript) -> Verdict:  # noqa: C901, PLR0911, PLR0912  # one case a kind
    """Return the verdict of one strict evaluation."""
    if not transcript.turns and not isinstance(evaluation, AnswerMatches):
        return NO_REPLY
    match evaluation:
        case Escalated():
            return _escalated(transcript)
        case NotEscalated():
            return _opposite(_escalated(transcript))
        case ToolUsed():
            return _workflow(evaluation.tool_name, transcript)
        case ToolNotUsed():
            return _tool_not_used(evaluation, transcript)
        case ParamEquals():
            return _param_equals(evaluation, transcript)
        case ParamExists():
            return _param_exists(evaluation.param_name, transcript)
        case ParamNotExists():
            return _opposite(_param_exists(evaluation.param_name, transcript))
        case EscalatedDueToError():
            return _error(transcript)
        case NotEscalatedDueToError():
            return _opposite(_error(transcript))
        case RuleTriggered():
            return _rule(evaluation.rule_code, transcript)
        case RuleNotTriggered():
            return _opposite(_rule(evaluation.rule_code, transcript))
        case IntegrationCalled():
            return _integration(evaluation.integration_code, transcript)
        case Contains() | Regex():
            return _text(evaluation, transcript)
        case NotContains() | NotRegex():
            return _opposite(_text(evaluation, transcript))
        case AnswerMatches():
            return answer_matching.decide(evaluation, transcript)
        case MaxAgentTurns():
            return _limit(_max_agent_turns(evaluation.turns, transcript.turns), transcript)
        case MaxLatency():
            return _limit(_max_latency(evaluation.seconds, transcript.turns), transcript)
        case _:
            assert_never(evaluation)


def is_equal(value: JsonValue, expected: JsonValue) -> bool:
    """Return whether two parameter values are equal. Numbers and booleans are compared as JSON and as text.

    Within lists and objects they are compared as JSON alone: there `true` is not 1, and "1" is not 1.
    """
    if isinstance(value, list | dict) or isinstance(expected, list | dict):
        return _equal(value, expected)
    if type(value) is type(expected) or {type(value), type(expected)} == {int, float}:
        return value == expected
    for plain, text in ((value, expected), (expected, value)):
        if isinstance(plain, bool | int | float) and isinstance(text, str):
            return text == json.dumps(plain) or is_equal(_as_json(text), plain)
    return False


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two JSON values are the same. In Python `True == 1`, in JSON not."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _as_json(text: str) -> JsonValue:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float) else None


def _opposite(verdict: Verdict) -> Verdict:
    """Return the verdict of the opposite check, on the same evidence."""
    match verdict.outcome.value:
        case "passed":
            return Verdict.failed(verdict.reason, *verdict.evidence)
        case "failed":
            return Verdict.passed(verdict.reason, *verdict.evidence)
    return verdict


@dataclass(frozen=True)
class _EvidenceKind:
    """A kind of evidence, and where a reply has it."""

    report: str
    """Object of the verb "reports" in messages."""
    of: Callable[[Turn], object]
    """Returns None if it is unknown."""


_HAND_OVER = _EvidenceKind("whether the agent hands over", lambda turn: turn.hand_over)
_WORKFLOWS = _EvidenceKind("workflows", lambda turn: turn.workflows)
_PARAMS = _EvidenceKind("parameters", lambda turn: turn.params)
_RULES = _EvidenceKind("rules", lambda turn: turn.rules)
_INTEGRATIONS = _EvidenceKind("integrations", lambda turn: turn.integrations)
_ERROR = _EvidenceKind("whether it is an error", lambda turn: turn.error_response)


def _not_seen(reason: str, kind: _EvidenceKind, transcript: Transcript, *evidence: int) -> Verdict:
    """Return the verdict of a positive check that saw nothing: undecided if a turn lacks evidence."""
    gap = _gap(kind, transcript)
    if gap is None:
        return Verdict.failed(reason, *evidence)
    nowhere = len(gap.turns) == len(transcript.turns)
    elsewhere = "" if nowhere else f"; in the other turns {reason}"
    return Verdict.undecided(Cause.NO_EVIDENCE, f"{gap.reason}{elsewhere}", *gap.turns)


@dataclass(frozen=True)
class _Gap:
    """Turns without evidence."""

    turns: tuple[int, ...]
    """The answered ones."""
    reason: str


def _gap(kind: _EvidenceKind, transcript: Transcript, *, after: int = 0) -> _Gap | None:
    """Return the turns later than `after` without evidence of a kind; None if there are none."""
    silent = tuple(turn.index for turn in transcript.turns if turn.index > after and kind.of(turn) is None)
    reasons = []
    if silent and len(silent) == len(transcript.turns):
        reasons = [f"no reply reports {kind.report}"]
    elif silent:
        reasons = [f"{_replies_of(silent)} report {kind.report}"]
    if transcript.unanswered is not None:
        reasons.append(f"message {transcript.unanswered} got no reply")
    return _Gap(silent, " and ".join(reasons)) if reasons else None


def _replies_of(turns: Sequence[int]) -> str:
    """Return the subject of a sentence about replies that do not report something."""
    if len(turns) == 1:
        return f"the reply in turn {turns[0]} does not"
    return f"the replies in turns {', '.join(map(str, turns))} do not"


def _limit(verdict: Verdict, transcript: Transcript) -> Verdict:
    """Return the verdict on a limit; undecided if it may be exceeded yet, as a reply is missing."""
    if transcript.unanswered is None or verdict.outcome is Outcome.FAILED:
        return verdict
    reason = f"message {transcript.unanswered} got no reply; until then {verdict.reason}"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def _escalated(transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if not turn.hand_over:
            continue
        if turn.handed_over:
            reason = f"the agent handed over to a person in turn {turn.index}"
        else:
            name = next(name for name in turn.workflows or () if name.startswith(ESCALATION))
            reason = _executed(name, turn)
        return Verdict.passed(reason, turn.index)
    seen = _listed(name for turn in transcript.turns for name in turn.workflows or ())
    reason = f"{ESCALATION} was not executed; seen: {seen}"
    if any(turn.handed_over is not None for turn in transcript.turns):
        reason = "the agent never handed over"
    return _not_seen(reason, _HAND_OVER, transcript)


def _workflow(name: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if name in (turn.workflows or ()):
            return Verdict.passed(_executed(name, turn), turn.index)
    seen = _listed(code for turn in transcript.turns for code in turn.workflows or ())
    return _not_seen(f"{name} was not executed; seen: {seen}", _WORKFLOWS, transcript)


def _executed(name: str, turn: Turn) -> str:
    derived = " (read from the trace)" if turn.workflows_derived else ""
    return f"{name} was executed in turn {turn.index}{derived}"


def _listed(names: Any) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


def _tool_not_used(evaluation: ToolNotUsed, transcript: Transcript) -> Verdict:
    name, limit = evaluation.tool_name, evaluation.before_turn
    if limit is None:
        return _opposite(_workflow(name, transcript))
    verdict = _opposite(_workflow(name, _before(limit, transcript)))
    later = _workflow(name, transcript)
    if verdict.outcome is Outcome.PASSED and later.outcome is Outcome.PASSED:
        return Verdict.passed(f"{later.reason}, not before turn {limit}", *later.evidence)
    if verdict.outcome is Outcome.UNDECIDED:
        return verdict.model_copy(update={"reason": f"before turn {limit} {verdict.reason}"})
    return verdict


def _before(turn: int, transcript: Transcript) -> Transcript:
    late = transcript.unanswered is not None and transcript.unanswered >= turn
    return transcript.model_copy(
        update={
            "turns": tuple(each for each in transcript.turns if each.index < turn),
            "unanswered": None if late else transcript.unanswered,
        }
    )


def _param_exists(name: str, transcript: Transcript) -> Verdict:
    turns = transcript.turns
    for turn in reversed(turns):
        value = (turn.params or {}).get(name)
        if not is_empty(value):
            return Verdict.passed(f"{name} = {_shown(value)} in turn {turn.index}", turn.index)
    for turn in reversed(turns):
        if name in turn.named_params:
            return Verdict.passed(
                f"{name} was extracted in turn {turn.index}, its value is not reported",
                turn.index,
            )
    seen = _listed(key for turn in turns for key, value in (turn.params or {}).items() if not is_empty(value))
    return _not_seen(f"{name} was not extracted; seen: {seen}", _PARAMS, transcript)


def _param_equals(evaluation: ParamEquals, transcript: Transcript) -> Verdict:
    """Decide by the last value that is not empty; earlier turns do not matter.

    Undecided if a later turn may have changed it: its parameters are unknown, or it names the parameter
    without the value.
    """
    name, expected = evaluation.param_name, evaluation.param_value
    for turn in reversed(transcript.turns):
        value = (turn.params or {}).get(name)
        if is_empty(value):
            if name in turn.named_params:
                reason = f"{name} was extracted in turn {turn.index}, its value is not reported"
                return Verdict.undecided(Cause.NO_EVIDENCE, reason, turn.index)
            continue
        seen = f"{name} = {_shown(value)} in turn {turn.index}"
        if gap := _gap(_PARAMS, transcript, after=turn.index):
            reason = f"{seen}, which may have changed: {gap.reason}"
            return Verdict.undecided(Cause.NO_EVIDENCE, reason, *gap.turns)
        if is_equal(value, expected):
            return Verdict.passed(seen, turn.index)
        return Verdict.failed(f"{seen}, not {_shown(expected)}", turn.index)
    return _param_exists(name, transcript)


def _shown(value: JsonValue) -> str:
    # Not cut here: half a secret would be no longer known as one. Reports cut.
    return json.dumps(value, ensure_ascii=False)


def _error(transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if turn.error_response:
            detail = f": {turn.error_detail}" if turn.error_detail else ""
            return Verdict.passed(
                f"the agent answered with an error in turn {turn.index}{detail}", turn.index
            )
    return _not_seen("no reply was an error", _ERROR, transcript)


def _rule(code: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if code in (turn.rules or ()):
            return Verdict.passed(f"{code} fired in turn {turn.index}", turn.index)
    seen = _listed(rule for turn in transcript.turns for rule in turn.rules or ())
    return _not_seen(f"{code} did not fire; fired: {seen}", _RULES, transcript)


def _integration(code: str, transcript: Transcript) -> Verdict:
    turns = transcript.turns
    calls = [(turn, call) for turn in turns for call in turn.integrations or () if call.code == code]
    for turn, call in calls:
        if call.status == 200:
            return Verdict.passed(f"{code} answered 200 in turn {turn.index}", turn.index)
    if calls:
        seen = "; ".join(f"{_how_called(call)} in turn {turn.index}" for turn, call in calls)
        reason = f"{code} was {seen}, never with status 200"
    else:
        seen = _listed(call.code for turn in turns for call in turn.integrations or ())
        reason = f"{code} was not called; called: {seen}"
    return _not_seen(reason, _INTEGRATIONS, transcript, *(turn.index for turn, _ in calls))


def _how_called(call: Integration) -> str:
    if call.status is not None:
        return f"called with status {call.status}"
    return f"called, no HTTP status{f' ({call.type})' if call.type else ''}"


def _text(evaluation: Contains | NotContains | Regex | NotRegex, transcript: Transcript) -> Verdict:
    return verdict_on_replies(evaluation.turn, transcript, partial(_search, evaluation))


def _search(evaluation: Contains | NotContains | Regex | NotRegex, named: Turns) -> Verdict:
    if isinstance(evaluation, Contains | NotContains):
        target, pattern = repr(evaluation.text), regex.escape(evaluation.text, literal_spaces=True)
    else:
        target, pattern = f"/{evaluation.pattern}/", evaluation.pattern
    for turn in named:
        try:
            # Invisible characters neither hide nor split words.
            matches = any(
                regex.search(pattern, text, timeout=PATTERN_SECONDS)
                for text in dict.fromkeys((turn.agent, bare(turn.agent)))
            )
        except TimeoutError:
            reason = f"{target} was searched in reply {turn.index} for {PATTERN_SECONDS:g} s without an end"
            return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        if matches:
            return Verdict.passed(f"{target} was found in reply {turn.index}", turn.index)
    numbers = [turn.index for turn in named]
    return Verdict.failed(
        f"{target} was not found in {'any reply' if len(numbers) > 1 else f'reply {numbers[0]}'}", *numbers
    )


def _max_agent_turns(most: int, turns: Turns) -> Verdict:
    count = len(turns)
    decided = Verdict.passed if count <= most else Verdict.failed
    return decided(f"the agent replied {times(count)}, at most {most} wanted", count)


def _max_latency(seconds: float, turns: Turns) -> Verdict:
    slowest = max(turns, key=lambda turn: turn.latency_seconds)
    decided = Verdict.passed if slowest.latency_seconds <= seconds else Verdict.failed
    return decided(
        f"the slowest reply, in turn {slowest.index}, took {slowest.latency_seconds:.3f} s, "
        f"at most {seconds:g} s wanted",
        slowest.index,
    )
