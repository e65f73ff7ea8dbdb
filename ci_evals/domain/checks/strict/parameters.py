"""Checks of the parameters that the agent extracted."""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from ci_evals.domain.actions import LogicKind, LogicPart
from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.evidence import EvidenceKind, find_gap, not_seen
from ci_evals.domain.checks.matcher import Matcher, MatcherField
from ci_evals.domain.checks.matching import PATTERN_SECONDS, described, meets, shown
from ci_evals.domain.checks.naming import listed
from ci_evals.domain.checks.strict_check import LastingCheck, PositiveCheck, family
from ci_evals.domain.transcript import Transcript, Turn, is_empty
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.support.typography import names

PARAMS = EvidenceKind(
    "parameters",
    lambda turn: None if turn.tool_calls_partial else turn.params,
    ("params", "toolCalls"),
)


class ParamEquals(LastingCheck):
    """Passes if the parameter's last non-empty value equals `paramValue`."""

    strict: Literal["param_equals"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")
    param_value: MatcherField = Field(
        description="The value wanted, or an object with conditions. Numbers and booleans also match as text."
    )

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return PARAMS

    def _decide(self, transcript: Transcript) -> Verdict:
        """Decide by the last value that is not empty; earlier turns do not matter.

        Undecided if a later turn may have changed it: its parameters are unknown, or it names the parameter
        without the value.
        """
        name = self.param_name
        for turn in reversed(transcript.turns):
            value = _value(name, turn)
            if not is_empty(value):
                return _compare(name, value, self.param_value, turn, transcript)
            if names.among(name, turn.named_params):
                return Verdict.undecided(Cause.NO_EVIDENCE, _without_value(name, turn), turn.index)
        return _extracted(name, transcript)

    def covers(self) -> LogicPart:
        return LogicKind.PARAMETER, self.param_name

    def reads_values(self) -> bool:
        return True


class ParamExists(PositiveCheck):
    """Passes if the parameter was extracted with a value that is not empty."""

    strict: Literal["param_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return PARAMS

    def _decide(self, transcript: Transcript) -> Verdict:
        return _extracted(self.param_name, transcript)

    def covers(self) -> LogicPart:
        return LogicKind.PARAMETER, self.param_name


class ParamNotExists(LastingCheck):
    """Passes if the parameter was not extracted, or only empty."""

    is_unhappy: ClassVar[bool] = True

    strict: Literal["param_not_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return PARAMS

    def _decide(self, transcript: Transcript) -> Verdict:
        return _extracted(self.param_name, transcript).opposite()


FAMILY = family(ParamEquals, ParamExists, ParamNotExists)


def _extracted(name: str, transcript: Transcript) -> Verdict:
    for turn in reversed(transcript.turns):
        value = _value(name, turn)
        if not is_empty(value):
            return Verdict.passed(_with_value(name, value, turn), turn.index)
    for turn in reversed(transcript.turns):
        if names.among(name, turn.named_params):
            return Verdict.passed(_without_value(name, turn), turn.index)
    seen = []
    for turn in transcript.turns:
        seen += [key for key, value in (turn.params or {}).items() if not is_empty(value)]
    return not_seen(f"{name} was not extracted; seen: {listed(seen)}", PARAMS, transcript)


def _compare(name: str, value: JsonValue, wanted: Matcher, turn: Turn, transcript: Transcript) -> Verdict:
    """Return the verdict on the last value that is known."""
    seen = _with_value(name, value, turn)
    if gap := find_gap(PARAMS, transcript, after=turn.index):
        reason = f"{seen}, which may have changed: {gap.reason}"
        return Verdict.undecided(gap.cause, reason, *gap.turns)
    is_met = meets(value, wanted)
    if is_met is None:
        search = f"{described(wanted)} was searched for {PATTERN_SECONDS:g} s without an end"
        return Verdict.undecided(Cause.NO_EVIDENCE, f"{seen}, in which {search}", turn.index)
    if is_met:
        return Verdict.passed(seen, turn.index)
    return Verdict.failed(f"{seen}, not {described(wanted)}", turn.index)


def _value(name: str, turn: Turn) -> JsonValue:
    """Return the value of a parameter, the last one that is not empty if several have that name."""
    last: JsonValue = None
    for key, value in (turn.params or {}).items():
        if names.same(name, key) and not is_empty(value):
            last = value
    return last


def _with_value(name: str, value: JsonValue, turn: Turn) -> str:
    return f"{name} = {shown(value)} in turn {turn.index}"


def _without_value(name: str, turn: Turn) -> str:
    return f"{name} was extracted in turn {turn.index}, its value is not reported"
