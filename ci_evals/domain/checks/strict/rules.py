"""Checks of which rules fired."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from ci_evals.domain.actions import LogicKind, LogicPart
from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.evidence import EvidenceKind, not_seen
from ci_evals.domain.checks.naming import listed
from ci_evals.domain.checks.strict_check import LastingCheck, PositiveCheck, family
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Verdict
from ci_evals.support.typography import names

RULES = EvidenceKind("rules", lambda turn: turn.rules, ("rules",))


class RuleTriggered(PositiveCheck):
    """Passes if the rule fired in any turn."""

    strict: Literal["rule_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return RULES

    def _decide(self, transcript: Transcript) -> Verdict:
        return _fired(self.rule_code, transcript)

    def covers(self) -> LogicPart:
        return LogicKind.RULE, self.rule_code

    def codes(self) -> Sequence[str]:
        return (self.rule_code,)


class RuleNotTriggered(LastingCheck):
    """Passes if the rule fired in no turn."""

    is_unhappy: ClassVar[bool] = True

    strict: Literal["rule_not_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return RULES

    def _decide(self, transcript: Transcript) -> Verdict:
        return _fired(self.rule_code, transcript).opposite()

    def codes(self) -> Sequence[str]:
        return (self.rule_code,)


FAMILY = family(RuleTriggered, RuleNotTriggered)


def _fired(code: str, transcript: Transcript) -> Verdict:
    for turn in transcript.turns:
        if names.among(code, turn.rules or ()):
            return Verdict.passed(f"{code} fired in turn {turn.index}", turn.index)
    seen = listed(rule for turn in transcript.turns for rule in turn.rules or ())
    return not_seen(f"{code} did not fire; fired: {seen}", RULES, transcript)
