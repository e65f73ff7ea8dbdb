"""The simulated user: where it broke character, in one conversation and in a run."""

from pydantic import Field

from ci_evals.domain.base import Amount, Record
from ci_evals.domain.results.judge import Estimate


class Violation(Record):
    """Words with which a simulated user broke character."""

    rule: str = Field(description="Name of the rule, such as `repeats`; `audit` if a model found it.")
    turn: int = Field(description="Counted from 1; one more than there are means the unsent remark.")
    text: str = Field(description="The words that show it.")
    reason: str


class UserAudit(Record):
    """Checks of the simulated user of one conversation."""

    violations: tuple[Violation, ...] = ()
    by_model: bool | None = Field(
        None,
        description="Whether a model looked at it too; null if none was asked, false if it failed.",
    )

    @property
    def valid(self) -> bool:
        """True if the user kept to its role."""
        return not self.violations


class UserChecks(Record):
    """Checks of the simulated users of a run."""

    conversations: Amount = Field(description="Those that were looked at, those of retried trials included.")
    rerun: Amount = Field(description="Trials whose first simulated user broke character.")
    invalid: Amount = Field(description="Trials that are left out, since the second one had too.")
    audited: Amount = Field(0, description="Conversations that a model looked at as well.")
    not_audited: Amount = Field(0, description="Conversations that a model should have, and could not.")
    by_rule: dict[str, Amount] = Field(default_factory=dict, description="Conversations by broken rule.")
    violation_rate: Estimate | None = Field(
        None,
        description="Share of first conversations whose user broke character; the test is the unit.",
    )
