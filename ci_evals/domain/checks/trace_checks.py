"""Checks of what the agent did besides answering, in the words of `@aui.io/evals`."""

from typing import Literal

from pydantic import Field

from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.criterion import Criterion, TurnNumber
from ci_evals.domain.checks.matcher import MatcherField


class Escalated(Criterion):
    """Passes if the agent forwarded the conversation to a person."""

    strict: Literal["escalated"]


class NotEscalated(Criterion):
    """Passes if the agent did not forward the conversation to a person."""

    strict: Literal["not_escalated"]


class ToolUsed(Criterion):
    """Passes if the workflow was executed."""

    strict: Literal["tool_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")


class ToolNotUsed(Criterion):
    """Passes if the workflow was not executed (before turn `beforeTurn`, if given)."""

    strict: Literal["tool_not_used"]
    tool_name: NonBlank = Field(description="A workflow's name, as in `executed_workflows`.")
    before_turn: TurnNumber | None = Field(
        None, description="Counted from 1. Used at this turn or later, the workflow does no harm."
    )


class ParamEquals(Criterion):
    """Passes if the parameter's last non-empty value equals `paramValue`."""

    strict: Literal["param_equals"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")
    param_value: MatcherField = Field(
        description="The value wanted, or an object with conditions. Numbers and booleans also match as text."
    )


class ParamExists(Criterion):
    """Passes if the parameter was extracted with a value that is not empty."""

    strict: Literal["param_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")


class ParamNotExists(Criterion):
    """Passes if the parameter was not extracted, or only empty."""

    strict: Literal["param_not_exists"]
    param_name: NonBlank = Field(description="The code of an extracted parameter.")


class EscalatedDueToError(Criterion):
    """Passes if the agent answered with an error response."""

    strict: Literal["escalated_due_to_error"]


class NotEscalatedDueToError(Criterion):
    """Passes if no reply of the agent was an error response."""

    strict: Literal["not_escalated_due_to_error"]


class RuleTriggered(Criterion):
    """Passes if the rule fired in any turn."""

    strict: Literal["rule_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")


class RuleNotTriggered(Criterion):
    """Passes if the rule fired in no turn."""

    strict: Literal["rule_not_triggered"]
    rule_code: NonBlank = Field(description="A rule's code, as in `decisions[].rule.code`.")


class IntegrationCalled(Criterion):
    """Passes if the integration was called and answered with HTTP status 200."""

    strict: Literal["integration_called"]
    integration_code: NonBlank = Field(
        description="An integration's code, as in `decisions[].integration.code`."
    )
