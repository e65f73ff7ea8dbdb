"""The simulated user: where it broke character, in one conversation and in a run."""

from dataclasses import dataclass, field

from ci_evals.domain.base import Amount, ResultPart
from ci_evals.domain.results.judge import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(ResultPart):
    """Words with which a simulated user broke character."""

    rule: str
    """Name of the rule, such as `repeats`; `audit` if a model found it."""
    turn: int
    """Counted from 1; one more than there are means the unsent remark."""
    text: str
    """The words that show it."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAudit(ResultPart):
    """Checks of the simulated user of one conversation."""

    violations: tuple[Violation, ...] = ()
    by_model: bool | None = None
    """Whether a model looked at it too; null if none was asked, false if it failed."""

    @property
    def valid(self) -> bool:
        """True if the user kept to its role."""
        return not self.violations


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChecks(ResultPart):
    """Checks of the simulated users of a run."""

    conversations: Amount
    """Those that were looked at, those of retried trials included."""
    rerun: Amount
    """Trials whose first simulated user broke character."""
    invalid: Amount
    """Trials that are left out, since the second one had too."""
    audited: Amount = 0
    """Conversations that a model looked at as well."""
    not_audited: Amount = 0
    """Conversations that a model should have, and could not."""
    by_rule: dict[str, Amount] = field(default_factory=dict)
    """Conversations by broken rule."""
    violation_rate: Estimate | None = None
    """Share of first conversations whose user broke character; the test is the unit."""
