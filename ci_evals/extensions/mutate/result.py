"""The faults that were planted in a run, and which of them its gate notices."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import JsonValue

from ci_evals.domain.base import Amount, CleanText, Dollars, Percent, ResultPart, Share
from ci_evals.domain.results.studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultResult(ResultPart):
    """A kind of fault."""

    kind: CleanText
    planted: Amount
    """Conversations that it was planted in."""
    noticed: Amount
    """Of those, in how many a criterion failed that had passed."""
    undecided: Amount
    """In how many none failed, and one could no longer be decided."""
    not_asked: Amount
    """In how many others criteria remain that need a judge or code, and were not asked."""
    needed_share: Share | None
    """The smallest share of conversations with the fault at which the gate fails in at least 80 %
    of 200 drawn runs; null if there is none among those that were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateUsed(ResultPart):
    """The gate that decided."""

    passed: bool
    """Whether it passes the run without faults. If not, no share is needed."""
    options: dict[CleanText, JsonValue]
    """Its options, by their names."""
    shares: tuple[Share, ...]
    """The shares of conversations that were tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult(ResultPart):
    """A test in which faults stay unnoticed."""

    __test__: ClassVar[bool] = False

    suite: str
    name: str
    unnoticed: tuple[CleanText, ...]
    """Kinds that were noticed in none of its trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCriterion(ResultPart):
    """A strict criterion that noticed no fault."""

    suite: str
    test: str
    criterion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NullAgents(ResultPart):
    """The scores of agents that do nothing, by strict criteria alone."""

    refuses: Percent | None
    """Of one that refuses everything; null without any criteria."""
    claims: Percent | None
    """Of one that claims that all is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion(ResultPart):
    """A check that notices faults which nothing noticed."""

    suite: str
    """The suite's file."""
    test: str
    kinds: tuple[CleanText, ...]
    evaluation: dict[str, JsonValue]
    """The evaluation to add to the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuestions(ResultPart):
    """The questions to a judge about faults that no strict check noticed."""

    asked: Amount
    not_asked: Amount
    """Those that were left because of the limit of costs."""
    cost_usd: Dollars | None
    """Null if a price is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutations(Study):
    """The faults that were planted in a run, and which of them its gate notices."""

    KEY: ClassVar[str] = "mutations"

    schema_version: Literal[1] = 1
    run: CleanText
    """The id of the run."""
    gate: GateUsed
    judge: JudgeQuestions | None = None
    """Null if nobody was asked."""
    faults: tuple[FaultResult, ...]
    tests: tuple[TestResult, ...]
    """Tests in which some fault stays unnoticed."""
    criteria: tuple[IdleCriterion, ...]
    """Strict criteria that noticed no fault."""
    null_agents: NullAgents
    suggestions: tuple[Suggestion, ...]

    @property
    def planted(self) -> int:
        """The number of faults that were planted."""
        return sum(fault.planted for fault in self.faults)

    @property
    def noticed(self) -> int:
        """The number of faults that were noticed."""
        return sum(fault.noticed for fault in self.faults)


KINDS = (Mutations,)
"""The types of what reports show of a run."""
