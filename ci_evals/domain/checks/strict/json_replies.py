"""Checks of replies that are JSON."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Literal

from pydantic import Field, JsonValue, field_validator
from pydantic_core import PydanticCustomError

from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.replies import Turns, verdict_on_replies
from ci_evals.domain.checks.strict_check import PositiveCheck, family
from ci_evals.domain.criterion import TurnChoice
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.support import json_schema
from ci_evals.support.json_schema_keywords import UnboundedError


class JsonSchema(PositiveCheck):
    """Passes if the reply is JSON and valid under a JSON Schema."""

    strict: Literal["json_schema"]
    schema_: dict[str, JsonValue] | NonBlank = Field(
        alias="schema", description="The schema, or the path of its file next to the suite."
    )
    turn: TurnChoice = Field("last", description="Which reply of the agent: its number, `last`, or `any`.")

    @field_validator("schema_")
    @classmethod
    def _is_schema(cls, schema: dict[str, JsonValue] | str) -> dict[str, JsonValue] | str:
        if isinstance(schema, dict) and (fault := json_schema.fault(schema)):
            raise PydanticCustomError("no_schema", "is not a JSON Schema: {fault}", {"fault": fault})
        return schema

    @classmethod
    def evidence(cls) -> None:
        return None

    def _decide(self, transcript: Transcript) -> Verdict:
        schema = self.schema_
        if isinstance(schema, str):
            return Verdict.undecided(Cause.NO_EVIDENCE, f"the schema {schema} was not read")
        return verdict_on_replies(self.turn, transcript, partial(_first_valid, schema))


FAMILY = family(JsonSchema)


def _first_valid(schema: Mapping[str, JsonValue], turns: Turns) -> Verdict:
    reasons = []
    for turn in turns:
        try:
            value = json.loads(turn.agent, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            reasons.append(f"reply {turn.index} is not JSON")
            continue
        try:
            violation = json_schema.violation(schema, value)
        except UnboundedError as error:
            reason = f"reply {turn.index} could not be checked: {error}"
            return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        if violation is None:
            reason = f"reply {turn.index} is JSON that matches the schema"
            return Verdict.passed(reason, turn.index)
        reasons.append(f"reply {turn.index} is not valid: {violation}")
    return Verdict.failed("; ".join(reasons), *(turn.index for turn in turns))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
