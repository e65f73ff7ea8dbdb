"""Strict evaluations: pure functions of the transcript.

Evidence of each kind is known or unknown, turn by turn. A positive check passes as soon as it is seen, and
fails only if every turn in its range has evidence of its kind; a negative check is its opposite. If a turn is
unknown and nothing contradicts the check, the verdict is undecided (`no_evidence`) and names the turns.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from ci_evals.grading.replies import NO_REPLY, Turns, if_all_came, replies, times
from ci_evals.support.text import bare

PATTERN_SECONDS = 1.0
"""The longest that a suite's regular expression may search: a bad one could hold the program for hours."""


def decide(evaluation: Strict, transcript: Transcript) -> Verdict:  # noqa: C901, PLR0911, PLR0912  # one case a kind
    """The verdict of one strict evaluation."""
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


def same(found: JsonValue, wanted: JsonValue) -> bool:
    """Whether two parameter values are equal. Numbers and booleans are compared as JSON and as text.

    Within lists and objects they are compared as JSON alone: there `true` is not 1, and "1" is not 1.
    """
    if isinstance(found, list | dict) or isinstance(wanted, list | dict):
        return _equal(found, wanted)
    if type(found) is type(wanted) or {type(found), type(wanted)} == {int, float}:
        return found == wanted
    for plain, text in ((found, wanted), (wanted, found)):
        if isinstance(plain, bool | int | float) and isinstance(text, str):
            return text == json.dumps(plain) or same(_as_json(text), plain)
    return False


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Whether two JSON values are the same. To Python `True == 1`, to JSON it is not."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _as_json(text: str) -> JsonValue:
    """The number or boolean that `text` spells, else null."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float) else None


def _opposite(verdict: Verdict) -> Verdict:
    """The verdict of the check that wants the contrary, on the same evidence."""
    match verdict.outcome.value:
        case "passed":
            return Verdict.failed(verdict.reason, *verdict.evidence)
        case "failed":
            return Verdict.passed(verdict.reason, *verdict.evidence)
    return verdict


@dataclass(frozen=True)
class _Kind:
    """A kind of evidence."""

    report: str
    """The object of "reports" in messages."""
    of: Callable[[Turn], object]
    """Where a reply has it; None if it is unknown."""


_HAND_OVER = _Kind("whether the agent hands over", lambda e: e.hand_over)
_WORKFLOWS = _Kind("workflows", lambda e: e.workflows)
_PARAMS = _Kind("parameters", lambda e: e.params)
_RULES = _Kind("rules", lambda e: e.rules)
_INTEGRATIONS = _Kind("integrations", lambda e: e.integrations)
_ERROR = _Kind("whether it is an error", lambda e: e.error_response)


def _not_seen(reason: str, kind: _Kind, transcript: Transcript, *evidence: int) -> Verdict:
    """The verdict of a positive check that saw nothing: failed if every turn has evidence, else undecided."""
    gap = _gap(kind, transcript)
    if gap is None:
        return Verdict.failed(reason, *evidence)
    nowhere = len(gap.turns) == len(transcript.turns)
    elsewhere = "" if nowhere else f"; in the other turns {reason}"
    return Verdict.undecided(Cause.NO_EVIDENCE, f"{gap.reason}{elsewhere}", *gap.turns)


@dataclass(frozen=True)
class _Gap:
    """The turns of which something is unknown."""

    turns: tuple[int, ...]
    """Those that were answered."""
    reason: str


def _gap(kind: _Kind, transcript: Transcript, *, after: int = 0) -> _Gap | None:
    """The turns later than `after` without evidence of a kind; None if there are none."""
    silent = tuple(e.index for e in transcript.turns if e.index > after and kind.of(e) is None)
    reasons = []
    if silent and len(silent) == len(transcript.turns):
        reasons = [f"no reply reports {kind.report}"]
    elif silent:
        reasons = [f"{_replies_of(silent)} report {kind.report}"]
    if transcript.unanswered is not None:
        reasons.append(f"message {transcript.unanswered} got no reply")
    return _Gap(silent, " and ".join(reasons)) if reasons else None


def _replies_of(turns: Sequence[int]) -> str:
    """The subject of a sentence about replies that do not report something."""
    if len(turns) == 1:
        return f"the reply in turn {turns[0]} does not"
    return f"the replies in turns {', '.join(map(str, turns))} do not"


def _limit(verdict: Verdict, transcript: Transcript) -> Verdict:
    """The verdict on a limit, which nobody knows to be kept if the last message got no reply."""
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
    seen = _listed(name for e in transcript.turns for name in e.workflows or ())
    reason = f"{ESCALATION} was not executed; seen: {seen}"
    if any(e.handed_over is not None for e in transcript.turns):
        reason = "the agent never handed over"
    return _not_seen(reason, _HAND_OVER, transcript)


def _workflow(wanted: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if wanted in (turn.workflows or ()):
            return Verdict.passed(_executed(wanted, turn), turn.index)
    seen = _listed(name for e in transcript.turns for name in e.workflows or ())
    return _not_seen(f"{wanted} was not executed; seen: {seen}", _WORKFLOWS, transcript)


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
    """The part of a transcript before a turn."""
    late = transcript.unanswered is not None and transcript.unanswered >= turn
    return transcript.model_copy(
        update={
            "turns": tuple(e for e in transcript.turns if e.index < turn),
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
    seen = _listed(key for e in turns for key, value in (e.params or {}).items() if not is_empty(value))
    return _not_seen(f"{name} was not extracted; seen: {seen}", _PARAMS, transcript)


def _param_equals(evaluation: ParamEquals, transcript: Transcript) -> Verdict:
    """By the last value that is not empty.

    Undecided if a later turn may have changed it: a turn whose parameters are unknown, or one that names the
    parameter without its value. What is unknown of earlier turns does not matter.
    """
    name, wanted = evaluation.param_name, evaluation.param_value
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
        if same(value, wanted):
            return Verdict.passed(seen, turn.index)
        return Verdict.failed(f"{seen}, not {_shown(wanted)}", turn.index)
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
    seen = _listed(rule for e in transcript.turns for rule in e.rules or ())
    return _not_seen(f"{code} did not fire; fired: {seen}", _RULES, transcript)


def _integration(code: str, transcript: Transcript) -> Verdict:
    turns = transcript.turns
    calls = [(e, call) for e in turns for call in e.integrations or () if call.code == code]
    for turn, call in calls:
        if call.status == 200:
            return Verdict.passed(f"{code} answered 200 in turn {turn.index}", turn.index)
    if calls:
        seen = "; ".join(f"{_how_called(call)} in turn {turn.index}" for turn, call in calls)
        reason = f"{code} was {seen}, never with status 200"
    else:
        seen = _listed(call.code for e in turns for call in e.integrations or ())
        reason = f"{code} was not called; called: {seen}"
    return _not_seen(reason, _INTEGRATIONS, transcript, *(e.index for e, _ in calls))


def _how_called(call: Integration) -> str:
    if call.status is not None:
        return f"called with status {call.status}"
    return f"called, no HTTP status{f' ({call.type})' if call.type else ''}"


def _text(evaluation: Contains | NotContains | Regex | NotRegex, transcript: Transcript) -> Verdict:
    """Passed if the text or pattern is found in the replies that `turn` names."""
    named = replies(evaluation.turn, transcript)
    if isinstance(named, Verdict):
        return named
    return if_all_came(_search(evaluation, named), evaluation.turn, transcript)


def _search(evaluation: Contains | NotContains | Regex | NotRegex, named: Turns) -> Verdict:
    if isinstance(evaluation, Contains | NotContains):
        wanted, pattern = repr(evaluation.text), regex.escape(evaluation.text, literal_spaces=True)
    else:
        wanted, pattern = f"/{evaluation.pattern}/", evaluation.pattern
    for turn in named:
        try:
            # Signs that nobody sees neither hide words nor part them.
            found = any(
                regex.search(pattern, text, timeout=PATTERN_SECONDS)
                for text in dict.fromkeys((turn.agent, bare(turn.agent)))
            )
        except TimeoutError:
            reason = f"{wanted} was searched in reply {turn.index} for {PATTERN_SECONDS:g} s without an end"
            return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        if found:
            return Verdict.passed(f"{wanted} was found in reply {turn.index}", turn.index)
    numbers = [e.index for e in named]
    return Verdict.failed(
        f"{wanted} was not found in {'any reply' if len(numbers) > 1 else f'reply {numbers[0]}'}", *numbers
    )


def _max_agent_turns(most: int, turns: Turns) -> Verdict:
    count = len(turns)
    decided = Verdict.passed if count <= most else Verdict.failed
    return decided(f"the agent replied {times(count)}, at most {most} wanted", count)


def _max_latency(seconds: float, turns: Turns) -> Verdict:
    slowest = max(turns, key=lambda e: e.latency_seconds)
    decided = Verdict.passed if slowest.latency_seconds <= seconds else Verdict.failed
    return decided(
        f"the slowest reply, in turn {slowest.index}, took {slowest.latency_seconds:.3f} s, "
        f"at most {seconds:g} s wanted",
        slowest.index,
    )
