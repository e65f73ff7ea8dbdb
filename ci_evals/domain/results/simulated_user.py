"""The simulated user: where it broke character, in one conversation and in a run."""

from pydantic import Field

from ci_evals.domain.base import Amount, Record
from ci_evals.domain.results.judge import Estimate


class Breach(Record):
    """Where a simulated user broke its role."""

    rule: str = Field(description="Which rule of the ledger, such as `repeats`; `audit` is the model's.")
    turn: int = Field(description="Counted from 1; one more than there are stands for the unsent remark.")
    text: str = Field(description="The words that show it.")
    reason: str


class UserAudit(Record):
    """What was made of the simulated user of one conversation."""

    breaches: tuple[Breach, ...] = ()
    by_model: bool | None = Field(
        None,
        description="Whether a model looked at it too; null where none was asked, false where it failed.",
    )

    @property
    def valid(self) -> bool:
        """Whether the user kept to its role."""
        return not self.breaches


class UserLedger(Record):
    """What became of the simulated users of a run."""

    conversations: Amount = Field(description="Those that were looked at, the ones played again included.")
    played_again: Amount = Field(description="Trials whose first user had broken its role.")
    invalid: Amount = Field(description="Trials that are left out, since the second one had too.")
    audited: Amount = Field(0, description="Conversations that a model looked at as well.")
    not_audited: Amount = Field(0, description="Conversations that a model should have, and could not.")
    by_rule: dict[str, Amount] = Field(default_factory=dict, description="Conversations by broken rule.")
    broken: Estimate | None = Field(
        None,
        description="Of first conversations, the share whose user broke its role; the test is the unit.",
    )
