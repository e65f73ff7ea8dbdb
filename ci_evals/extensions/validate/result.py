"""The criteria that measure nothing."""

from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain.base import Amount, Instant, ResultPart
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed(ResultPart):
    """A criterion before conversations of other tests."""

    suite: str
    test: str
    criterion: str
    tried: Amount
    """Conversations of other tests that decided it."""
    passed: Amount
    undecided: Amount = 0
    """Conversations that could not decide it."""
    share: Estimate | None
    """Null if nothing was decided."""
    vacuous: bool
    """Whether it passed in every conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Study):
    """The criteria that measure nothing."""

    KEY: ClassVar[str] = "probe"

    judge: JudgeUsed
    at: Instant
    criteria: tuple[Probed, ...]

    @property
    def vacuous(self) -> tuple[Probed, ...]:
        """The criteria that pass before conversations of other tests too."""
        return tuple(one for one in self.criteria if one.vacuous)


KINDS = (Probe,)
"""The types of what is kept in the results of a run."""
