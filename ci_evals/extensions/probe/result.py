"""The criteria that measure nothing."""

from typing import ClassVar

from pydantic import Field

from ci_evals.domain.base import Amount, Instant, Record
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study


class Probed(Record):
    """A criterion before conversations of other tests."""

    suite: str
    test: str
    criterion: str
    tried: Amount = Field(description="Conversations of other tests that decided it.")
    passed: Amount
    undecided: Amount = Field(0, description="Conversations that could not decide it.")
    share: Estimate | None = Field(description="Null if nothing was decided.")
    vacuous: bool = Field(description="Whether it passed in every conversation.")


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
