"""Strict evaluations: pure functions of the transcript.

What a check needs is looked for in every reply of the trial. Where no reply carried it, the verdict is
undecided (`no_evidence`): a trace that never came says neither yes nor no.
"""

import json
from collections.abc import Callable, Sequence
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
from ci_evals.domain.transcript import ESCALATION, Exchange, Integration, Transcript, is_empty
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading import answers
from ci_evals.grading.replies import NO_REPLY, Exchanges, replies, times

PATTERN_SECONDS = 1.0
"""The longest that a suite's regular expression may search: a bad one could hold the program for hours."""


def decide(evaluation: Strict, transcript: Transcript) -> Verdict:  # noqa: C901, PLR0911, PLR0912  # one case a kind
    """The verdict of one strict evaluation."""
    exchanges = transcript.exchanges
    match evaluation:
        case Escalated():
            return _escalated(exchanges)
        case NotEscalated():
            return _opposite(_escalated(exchanges))
        case ToolUsed():
            return _workflow(exchanges, evaluation.tool_name.__eq__, evaluation.tool_name)
        case ToolNotUsed():
            return _tool_not_used(evaluation, exchanges)
        case ParamEquals():
            return _param_equals(evaluation, exchanges)
        case ParamExists():
            return _param_exists(evaluation.param_name, exchanges)
        case ParamNotExists():
            return _opposite(_param_exists(evaluation.param_name, exchanges))
        case EscalatedDueToError():
            return _error(exchanges)
        case NotEscalatedDueToError():
            return _opposite(_error(exchanges))
        case RuleTriggered():
            return _rule(evaluation.rule_code, exchanges)
        case RuleNotTriggered():
            return _opposite(_rule(evaluation.rule_code, exchanges))
        case IntegrationCalled():
            return _integration(evaluation.integration_code, exchanges)
        case Contains() | Regex():
            return _text(evaluation, exchanges)
        case NotContains() | NotRegex():
            return _opposite(_text(evaluation, exchanges))
        case AnswerMatches():
            return answers.decide(evaluation, exchanges)
        case MaxAgentTurns():
            return _max_agent_turns(evaluation.turns, exchanges)
        case MaxLatency():
            return _max_latency(evaluation.seconds, exchanges)
        case _:
            assert_never(evaluation)


def same(found: JsonValue, wanted: JsonValue) -> bool:
    """Whether two parameter values are equal. Numbers and booleans are compared as JSON and as text."""
    if type(found) is type(wanted) or {type(found), type(wanted)} == {int, float}:
        return found == wanted
    for plain, text in ((found, wanted), (wanted, found)):
        if isinstance(plain, bool | int | float) and isinstance(text, str):
            return text == json.dumps(plain) or same(_as_json(text), plain)
    return False


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


def _no_evidence(exchanges: Exchanges, what: str) -> Verdict:
    if not exchanges:
        return NO_REPLY
    return Verdict.undecided(Cause.NO_EVIDENCE, f"no reply carried {what}")


def _gaps(exchanges: Exchanges, carried: Callable[[Exchange], object]) -> str:
    """A remark on replies without the evidence that others carried."""
    missing = [e.index for e in exchanges if carried(e) is None]
    return f" (no evidence in {_places(missing)})" if missing else ""


def _places(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"exchange {listed}" if len(numbers) == 1 else f"exchanges {listed}"


def _is_escalation(name: str) -> bool:
    return name.startswith(ESCALATION)


def _escalated(exchanges: Exchanges) -> Verdict:
    if all(e.handed_over is None for e in exchanges):
        return _workflow(exchanges, _is_escalation, ESCALATION)
    for exchange in exchanges:
        if exchange.escalated:
            return Verdict.passed(
                f"the agent handed over to a person in exchange {exchange.index}", exchange.index
            )
    return Verdict.failed(f"the agent never handed over{_gaps(exchanges, lambda e: e.handed_over)}")


def _workflow(exchanges: Exchanges, matches: Callable[[str], bool], wanted: str) -> Verdict:
    if all(e.workflows is None for e in exchanges):
        return _no_evidence(exchanges, "executed workflows or a trace")
    for exchange in exchanges:
        for name in exchange.workflows or ():
            if matches(name):
                derived = " (read from the trace)" if exchange.workflows_derived else ""
                return Verdict.passed(
                    f"{name} was executed in exchange {exchange.index}{derived}", exchange.index
                )
    seen = _listed(name for e in exchanges for name in e.workflows or ())
    return Verdict.failed(f"{wanted} was not executed; seen: {seen}{_gaps(exchanges, lambda e: e.workflows)}")


def _listed(names: Any) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


def _tool_not_used(evaluation: ToolNotUsed, exchanges: Exchanges) -> Verdict:
    name, limit = evaluation.tool_name, evaluation.before_turn
    verdict = _opposite(_workflow(exchanges, name.__eq__, name))
    if limit is not None and verdict.evidence and verdict.evidence[0] >= limit:
        return Verdict.passed(f"{verdict.reason}, not before turn {limit}", *verdict.evidence)
    return verdict


def _param(name: str, exchanges: Exchanges) -> tuple[Exchange, JsonValue] | None:
    """The last value of the parameter that is not empty, and where it came."""
    for exchange in reversed(exchanges):
        value = (exchange.params or {}).get(name)
        if not is_empty(value):
            return exchange, value
    return None


def _param_exists(name: str, exchanges: Exchanges) -> Verdict:
    if all(e.params is None for e in exchanges):
        return _no_evidence(exchanges, "extracted parameters")
    if found := _param(name, exchanges):
        exchange, value = found
        return Verdict.passed(f"{name} = {_shown(value)} in exchange {exchange.index}", exchange.index)
    for exchange in reversed(exchanges):
        if name in exchange.named_params:
            return Verdict.passed(
                f"{name} was extracted in exchange {exchange.index}, its value is not told", exchange.index
            )
    seen = _listed(key for e in exchanges for key, value in (e.params or {}).items() if not is_empty(value))
    return Verdict.failed(f"{name} was not extracted; seen: {seen}{_gaps(exchanges, lambda e: e.params)}")


def _param_equals(evaluation: ParamEquals, exchanges: Exchanges) -> Verdict:
    name, wanted = evaluation.param_name, evaluation.param_value
    found = _param(name, exchanges)
    if found is None:
        there = _param_exists(name, exchanges)
        if there.outcome.value == "passed":
            return Verdict.undecided(Cause.NO_EVIDENCE, there.reason)
        return there
    exchange, value = found
    place = f"in exchange {exchange.index}"
    if same(value, wanted):
        return Verdict.passed(f"{name} = {_shown(value)} {place}", exchange.index)
    return Verdict.failed(f"{name} = {_shown(value)} {place}, not {_shown(wanted)}", exchange.index)


def _shown(value: JsonValue) -> str:
    # Not cut here: half a secret would be no longer known as one. Reports cut.
    return json.dumps(value, ensure_ascii=False)


def _error(exchanges: Exchanges) -> Verdict:
    if all(e.error_response is None for e in exchanges):
        return _no_evidence(exchanges, "a trace with the response's type")
    for exchange in exchanges:
        if exchange.error_response:
            detail = f": {exchange.error_detail}" if exchange.error_detail else ""
            return Verdict.passed(
                f"the agent answered with an error in exchange {exchange.index}{detail}", exchange.index
            )
    return Verdict.failed(f"no reply was an error{_gaps(exchanges, lambda e: e.error_response)}")


def _rule(code: str, exchanges: Exchanges) -> Verdict:
    if all(e.rules is None for e in exchanges):
        return _no_evidence(exchanges, "a trace of decisions")
    for exchange in exchanges:
        if code in (exchange.rules or ()):
            return Verdict.passed(f"{code} fired in exchange {exchange.index}", exchange.index)
    seen = _listed(rule for e in exchanges for rule in e.rules or ())
    return Verdict.failed(f"{code} did not fire; fired: {seen}{_gaps(exchanges, lambda e: e.rules)}")


def _integration(code: str, exchanges: Exchanges) -> Verdict:
    if all(e.integrations is None for e in exchanges):
        return _no_evidence(exchanges, "a trace of decisions")
    calls = [(e, call) for e in exchanges for call in e.integrations or () if call.code == code]
    for exchange, call in calls:
        if call.status == 200:
            return Verdict.passed(f"{code} answered 200 in exchange {exchange.index}", exchange.index)
    if calls:
        seen = "; ".join(f"{_how_called(call)} in exchange {exchange.index}" for exchange, call in calls)
        return Verdict.failed(f"{code} was {seen}, never with status 200", *(e.index for e, _ in calls))
    seen = _listed(call.code for e in exchanges for call in e.integrations or ())
    return Verdict.failed(
        f"{code} was not called; called: {seen}{_gaps(exchanges, lambda e: e.integrations)}"
    )


def _how_called(call: Integration) -> str:
    if call.status is not None:
        return f"called with status {call.status}"
    return f"called, no HTTP status{f' ({call.type})' if call.type else ''}"


def _text(evaluation: Contains | NotContains | Regex | NotRegex, exchanges: Exchanges) -> Verdict:
    """Passed if the text or pattern is found in the replies that `turn` names."""
    named = replies(evaluation.turn, exchanges)
    if isinstance(named, Verdict):
        return named
    if isinstance(evaluation, Contains | NotContains):
        wanted, pattern = repr(evaluation.text), regex.escape(evaluation.text, literal_spaces=True)
    else:
        wanted, pattern = f"/{evaluation.pattern}/", evaluation.pattern
    for exchange in named:
        try:
            found = regex.search(pattern, exchange.agent, timeout=PATTERN_SECONDS)
        except TimeoutError:
            reason = (
                f"{wanted} was searched in reply {exchange.index} for {PATTERN_SECONDS:g} s without an end"
            )
            return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        if found:
            return Verdict.passed(f"{wanted} was found in reply {exchange.index}", exchange.index)
    numbers = [e.index for e in named]
    return Verdict.failed(
        f"{wanted} was not found in {'any reply' if len(numbers) > 1 else f'reply {numbers[0]}'}", *numbers
    )


def _max_agent_turns(most: int, exchanges: Exchanges) -> Verdict:
    if not exchanges:
        return _no_evidence(exchanges, "a reply")
    count = len(exchanges)
    decided = Verdict.passed if count <= most else Verdict.failed
    return decided(f"the agent replied {times(count)}, at most {most} wanted", count)


def _max_latency(seconds: float, exchanges: Exchanges) -> Verdict:
    if not exchanges:
        return _no_evidence(exchanges, "a reply")
    slowest = max(exchanges, key=lambda e: e.latency_seconds)
    decided = Verdict.passed if slowest.latency_seconds <= seconds else Verdict.failed
    return decided(
        f"the slowest reply, in exchange {slowest.index}, took {slowest.latency_seconds:.3f} s, "
        f"at most {seconds:g} s wanted",
        slowest.index,
    )
