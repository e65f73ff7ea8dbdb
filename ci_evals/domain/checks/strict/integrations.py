"""Checks of which integrations the agent called."""

from typing import Literal

from pydantic import Field

from ci_evals.domain.actions import LogicKind, LogicPart
from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.evidence import EvidenceKind, not_seen
from ci_evals.domain.checks.naming import listed
from ci_evals.domain.checks.strict_check import PositiveCheck, family
from ci_evals.domain.transcript import Integration, Transcript
from ci_evals.domain.verdict import Verdict
from ci_evals.support.typography import names

INTEGRATIONS = EvidenceKind("integrations", lambda turn: turn.integrations, ("integrations",))


class IntegrationCalled(PositiveCheck):
    """Passes if the integration was called and answered with HTTP status 200."""

    strict: Literal["integration_called"]
    integration_code: NonBlank = Field(
        description="An integration's code, as in `decisions[].integration.code`."
    )

    @classmethod
    def evidence(cls) -> EvidenceKind:
        return INTEGRATIONS

    def _decide(self, transcript: Transcript) -> Verdict:
        code = self.integration_code
        all_calls = []
        calls = []
        for turn in transcript.turns:
            for call in turn.integrations or ():
                all_calls.append(call)
                if names.same(call.code, code):
                    calls.append((turn.index, call))
        for turn_number, call in calls:
            if call.status == 200:
                return Verdict.passed(f"{code} answered 200 in turn {turn_number}", turn_number)
        if calls:
            outcomes = [f"{_outcome(call)} in turn {number}" for number, call in calls]
            reason = f"{code} was {'; '.join(outcomes)}, never with status 200"
        else:
            reason = f"{code} was not called; called: {listed(call.code for call in all_calls)}"
        return not_seen(reason, INTEGRATIONS, transcript, *(number for number, _ in calls))

    def covers(self) -> LogicPart:
        return LogicKind.INTEGRATION, self.integration_code


FAMILY = family(IntegrationCalled)


def _outcome(call: Integration) -> str:
    if call.status is not None:
        return f"called with status {call.status}"
    kind = f" ({call.type})" if call.type else ""
    return f"called, no HTTP status{kind}"
