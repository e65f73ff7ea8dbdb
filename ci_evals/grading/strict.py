"""Strict evaluations: pure functions of the transcript.

Evidence of each kind is known or unknown, turn by turn. A positive check passes as soon as there is any, and
fails only if every turn in its range has evidence of its kind; a negative check is its opposite. If a turn is
unknown and nothing contradicts the check, the verdict is undecided (`no_evidence`) and names the turns.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, assert_never

from pydantic import JsonValue

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
from ci_evals.domain.transcript import ESCALATION, Integration, Transcript, Turn, is_empty
from ci_evals.domain.verdict import Cause, Outcome, Verdict
from ci_evals.grading import answer_matching, text_search, tools
from ci_evals.grading.code_check import NO_CODE
from ci_evals.grading.evidence import (
    ERROR,
    HAND_OVER,
    INTEGRATIONS,
    PARAMS,
    RULES,
    WORKFLOWS,
    find_gap,
    not_seen,
)
from ci_evals.grading.matching import ABSENT, PATTERN_SECONDS, Value, described, meets, shown
from ci_evals.grading.replies import NO_REPLY, Turns, times, verdict_on_replies
from ci_evals.support import json_schema
from ci_evals.support.json_schema_keywords import UnboundedError
from ci_evals.support.typography import names


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
            return text_search.is_there(evaluation, transcript)
        case NotContains() | NotRegex():
            return _opposite(text_search.is_there(evaluation, transcript))
        case AnswerMatches():
            return answer_matching.decide(evaluation, transcript)
        case MaxAgentTurns():
            return _limit(_max_agent_turns(evaluation.turns, transcript.turns), transcript)
        case MaxLatency():
            return _limit(_max_latency(evaluation.seconds, transcript.turns), transcript)
        case ToolCalled():
            return tools.called(evaluation, transcript)
        case ToolSequence():
            return tools.sequence(evaluation, transcript)
        case MaxToolCalls():
            return tools.at_most(evaluation, transcript)
        case JsonSchema():
            return _json(evaluation, transcript)
        case StateCheck():
            return _state(evaluation, transcript)
        case PythonCheck():
            return _limit(NO_CODE, transcript)
        case _:
            assert_never(evaluation)


def _opposite(verdict: Verdict) -> Verdict:
    """Return the verdict of the opposite check, on the same evidence."""
    match verdict.outcome.value:
        case "passed":
            return Verdict.failed(verdict.reason, *verdict.evidence)
        case "failed":
            return Verdict.passed(verdict.reason, *verdict.evidence)
    return verdict


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
    return not_seen(reason, HAND_OVER, transcript)


def _workflow(name: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if names.among(name, turn.workflows or ()):
            return Verdict.passed(_executed(name, turn), turn.index)
    executed = [code for turn in transcript.turns for code in turn.workflows or ()]
    note = tools.other_names((name,), executed)
    return not_seen(f"{name} was not executed; seen: {_listed(executed)}{note}", WORKFLOWS, transcript)


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
        value = _param(name, turn)
        if not is_empty(value):
            return Verdict.passed(f"{name} = {shown(value)} in turn {turn.index}", turn.index)
    for turn in reversed(turns):
        if names.among(name, turn.named_params):
            return Verdict.passed(
                f"{name} was extracted in turn {turn.index}, its value is not reported",
                turn.index,
            )
    seen = _listed(key for turn in turns for key, value in (turn.params or {}).items() if not is_empty(value))
    return not_seen(f"{name} was not extracted; seen: {seen}", PARAMS, transcript)


def _param(name: str, turn: Turn) -> JsonValue:
    """Return the value of a parameter, the last one that is not empty if several have that name."""
    values = [value for key, value in (turn.params or {}).items() if names.same(name, key)]
    return next((value for value in reversed(values) if not is_empty(value)), None)


def _param_equals(evaluation: ParamEquals, transcript: Transcript) -> Verdict:
    """Decide by the last value that is not empty; earlier turns do not matter.

    Undecided if a later turn may have changed it: its parameters are unknown, or it names the parameter
    without the value.
    """
    name, wanted = evaluation.param_name, evaluation.param_value
    for turn in reversed(transcript.turns):
        value = _param(name, turn)
        if is_empty(value):
            if names.among(name, turn.named_params):
                reason = f"{name} was extracted in turn {turn.index}, its value is not reported"
                return Verdict.undecided(Cause.NO_EVIDENCE, reason, turn.index)
            continue
        seen = f"{name} = {shown(value)} in turn {turn.index}"
        if gap := find_gap(PARAMS, transcript, after=turn.index):
            reason = f"{seen}, which may have changed: {gap.reason}"
            return Verdict.undecided(gap.cause, reason, *gap.turns)
        match meets(value, wanted):
            case True:
                return Verdict.passed(seen, turn.index)
            case False:
                return Verdict.failed(f"{seen}, not {described(wanted)}", turn.index)
        reason = f"{seen}, in which {described(wanted)} was searched for {PATTERN_SECONDS:g} s without an end"
        return Verdict.undecided(Cause.NO_EVIDENCE, reason, turn.index)
    return _param_exists(name, transcript)


def _error(transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if turn.error_response:
            detail = f": {turn.error_detail}" if turn.error_detail else ""
            return Verdict.passed(
                f"the agent answered with an error in turn {turn.index}{detail}", turn.index
            )
    return not_seen("no reply was an error", ERROR, transcript)


def _rule(code: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if names.among(code, turn.rules or ()):
            return Verdict.passed(f"{code} fired in turn {turn.index}", turn.index)
    seen = _listed(rule for turn in transcript.turns for rule in turn.rules or ())
    return not_seen(f"{code} did not fire; fired: {seen}", RULES, transcript)


def _integration(code: str, transcript: Transcript) -> Verdict:
    turns = transcript.turns
    calls = [
        (turn, call) for turn in turns for call in turn.integrations or () if names.same(call.code, code)
    ]
    for turn, call in calls:
        if call.status == 200:
            return Verdict.passed(f"{code} answered 200 in turn {turn.index}", turn.index)
    if calls:
        seen = "; ".join(f"{_how_called(call)} in turn {turn.index}" for turn, call in calls)
        reason = f"{code} was {seen}, never with status 200"
    else:
        seen = _listed(call.code for turn in turns for call in turn.integrations or ())
        reason = f"{code} was not called; called: {seen}"
    return not_seen(reason, INTEGRATIONS, transcript, *(turn.index for turn, _ in calls))


def _how_called(call: Integration) -> str:
    if call.status is not None:
        return f"called with status {call.status}"
    return f"called, no HTTP status{f' ({call.type})' if call.type else ''}"


def _json(evaluation: JsonSchema, transcript: Transcript) -> Verdict:
    schema = evaluation.schema_
    if isinstance(schema, str):
        return Verdict.undecided(Cause.NO_EVIDENCE, f"the schema {schema} was not read")
    return verdict_on_replies(evaluation.turn, transcript, partial(_first_valid, schema))


def _first_valid(schema: Mapping[str, JsonValue], named: Turns) -> Verdict:
    reasons = []
    for turn in named:
        try:
            value = json.loads(turn.agent, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            reasons.append(f"reply {turn.index} is not JSON")
            continue
        try:
            reason = json_schema.violation(schema, value)
        except UnboundedError as error:
            return Verdict.undecided(Cause.NO_EVIDENCE, f"reply {turn.index} could not be checked: {error}")
        if reason is None:
            return Verdict.passed(f"reply {turn.index} is JSON that matches the schema", turn.index)
        reasons.append(f"reply {turn.index} is not valid: {reason}")
    return Verdict.failed("; ".join(reasons), *(turn.index for turn in named))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _state(evaluation: StateCheck, transcript: Transcript) -> Verdict:  # noqa: PLR0911  # one line a way to end
    name, path = evaluation.probe, evaluation.path
    if transcript.unanswered is not None:
        reason = f"message {transcript.unanswered} got no reply: the agent may not have finished"
        return Verdict.undecided(Cause.NO_EVIDENCE, reason)
    probe = transcript.probes.get(name)
    if probe is None:
        return Verdict.undecided(Cause.NO_EVIDENCE, f"the probe {name} did not run")
    if probe.error is not None:
        return Verdict.undecided(Cause.NO_EVIDENCE, f"the probe {name} failed: {probe.error}")
    value: Value = probe.value
    if path is not None and path.strip() != "$" and not isinstance(probe.value, dict | list):
        kind = (
            "null" if probe.value is None else "a text" if isinstance(probe.value, str) else "a plain value"
        )
        reason = f"the probe {name} returned {kind}, in which there is no {path}"
        return Verdict.undecided(Cause.NO_EVIDENCE, reason)
    if path is not None:
        from ci_evals.support.json_path import JsonPath  # noqa: PLC0415  # 0.1 s, for those who need it

        try:
            matches = JsonPath(path).find(probe.value)
        except ValueError as error:
            return Verdict.undecided(Cause.NO_EVIDENCE, f"what the probe {name} returned {error}")
        value = ABSENT if not matches else matches[0] if JsonPath(path).single else list(matches)
    seen = f"after the conversation, {f'{path} of ' if path else ''}the probe {name} is {shown(value)}"
    match meets(value, evaluation):
        case True:
            return Verdict.passed(seen)
        case False:
            return Verdict.failed(f"{seen}, expected {described(evaluation)}")
    return Verdict.undecided(Cause.NO_EVIDENCE, f"{seen}, in which a pattern was searched without an end")


def _max_agent_turns(most: int, turns: Turns) -> Verdict:
    count = len(turns)
    decided = Verdict.passed if count <= most else Verdict.failed
    return decided(f"the agent replied {times(count)}, at most {most} allowed", count)


def _max_latency(seconds: float, turns: Turns) -> Verdict:
    slowest = max(turns, key=lambda turn: turn.latency_seconds)
    decided = Verdict.passed if slowest.latency_seconds <= seconds else Verdict.failed
    return decided(
        f"the slowest reply, in turn {slowest.index}, took {slowest.latency_seconds:.3f} s, "
        f"at most {seconds:g} s allowed",
        slowest.index,
    )
