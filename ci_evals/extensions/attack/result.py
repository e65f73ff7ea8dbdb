"""The effect of prompt injection on a judge."""

from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain.base import Amount, Instant, ResultPart, Share
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackKind(ResultPart):
    """The outcome of one kind of attack."""

    name: str
    tried: Amount
    """Verdicts that were given again, each attack by itself."""
    turned: Amount
    """Of these, those that became a pass."""
    undecided: Amount = 0
    """Verdicts that could not be given again."""
    share: Estimate | None
    """Null if nothing was tried."""
    p: Share | None = None
    """How likely the judge's own changes would turn as many: a permutation test against the
    control. Null if there is nothing to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacks(Study):
    """The effect of instructions in an agent's replies on failed verdicts."""

    KEY: ClassVar[str] = "attacks"

    judge: JudgeUsed
    at: Instant
    verdicts: Amount = 0
    """Failed verdicts that were attacked."""
    kinds: tuple[AttackKind, ...]
    whole: AttackKind
    control: AttackKind
    """The same verdicts given again without attack: as they were, and with harmless words."""

    @property
    def beyond_noise(self) -> tuple[AttackKind, ...]:
        """The kinds that turn more verdicts than the judge changes by itself; 5 % for an error in any."""
        level = 0.05 / max(1, len(self.kinds))
        return tuple(kind for kind in self.kinds if kind.p is not None and kind.p <= level)


KINDS = (Attacks,)
"""The types of what is kept in the results of a run."""
