"""Checks that are code: a function of the suite's author decides."""

from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.domain.checks.evaluation import PASS_AT
from ci_evals.domain.checks.replies import NO_REPLY
from ci_evals.domain.checks.strict.functions import NO_CODE, PythonCheck
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, DimensionGrade, Grade, Verdict
from ci_evals.ports import CallFunction, FunctionError


async def decide(evaluation: PythonCheck, transcript: Transcript, call: CallFunction | None) -> Verdict:
    """Return what the function decides; undecided if it cannot be called or returns something else.

    It is not called if a message got no reply: nobody knows what it should look at.
    """
    if call is None:
        return NO_CODE
    if not transcript.turns:
        return NO_REPLY
    if transcript.unanswered is not None:
        reason = f"message {transcript.unanswered} got no reply: the conversation is not complete"
        return Verdict.undecided(Cause.NO_EVIDENCE, reason)
    try:
        returned = await call(evaluation.function, arguments_of(transcript))
    except FunctionError as error:
        return Verdict.undecided(Cause.NO_EVIDENCE, f"{evaluation.function} {error}")
    return _verdict(evaluation.function, returned)


def arguments_of(transcript: Transcript) -> dict[str, JsonValue]:
    """Return what a function may ask for by its parameters' names, and why probes failed (`probe_errors`)."""
    whole = transcript.model_dump(mode="json", by_alias=True)
    turns, probes = whole["turns"], whole.pop("probes")
    for turn in turns:
        turn.pop("raw")
    trace: JsonValue = [{"turn": turn["index"], "trace": turn.pop("trace")} for turn in turns]
    return {
        "transcript": whole,
        "trace": trace,
        "probes": {name: result["value"] for name, result in probes.items() if result["error"] is None},
        "probe_errors": {name: result["error"] for name, result in probes.items() if result["error"]},
    }


class _Returned(NamedTuple):
    value: JsonValue
    reason: str | None


def _verdict(function: str, returned: JsonValue) -> Verdict:
    value, reason = _parts(returned)
    if reason is not None and not reason.strip():
        reason = None
    match value:
        case bool():
            if value:
                return Verdict.passed(reason or f"{function} returned true")
            return Verdict.failed(reason or f"{function} returned false")
        case int() | float() if 0 <= value <= 1:
            told = reason or f"{function} returned {value:g}"
            part = DimensionGrade(name=function, level=f"{value:g}", score=value, reason=told)
            grade = Grade.of(PASS_AT, (part,))
            decided = Verdict.passed if grade.passes() else Verdict.failed
            return replace(decided(told), grade=grade)
    wanted = "true, false, a share from 0 to 1, or a pair of one of these and a reason"
    return Verdict.undecided(Cause.NO_EVIDENCE, f"{function} returned {_named(returned)}, not {wanted}")


def _parts(returned: JsonValue) -> _Returned:
    """Split a pair; JSON has it as a list."""
    match returned:
        case [value, str() as reason]:
            return _Returned(value, reason)
        case [value, None]:
            return _Returned(value, None)
    return _Returned(returned, None)


def _named(value: JsonValue) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)} items"
        case str():
            return "a text"
    return f"{value:g}"
