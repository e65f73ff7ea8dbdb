"""The faults that were planted in a run, and which of them its gate notices."""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from ci_evals.domain.base import Amount, CleanText, Percent, Record, Share
from ci_evals.domain.results.studies import Study


class FaultResult(Record):
    """A kind of fault."""

    kind: CleanText
    planted: Amount = Field(description="Conversations that it was planted in.")
    noticed: Amount = Field(description="Of those, in how many a criterion failed that had passed.")
    undecided: Amount = Field(description="In how many none failed, and one could no longer be decided.")
    not_asked: Amount = Field(
        description="In how many others criteria remain that need a model or code, and were not asked."
    )
    needed_share: Share | None = Field(
        description="The smallest share of conversations with the fault at which the gate fails in at least "
        "80 % of 200 drawn runs; null if there is none among those that were tried."
    )


class GateUsed(Record):
    """The gate that decided."""

    passed: bool = Field(description="Whether it passes the run without faults. If not, no share is needed.")
    options: dict[CleanText, JsonValue] = Field(description="Its options, by their names.")
    shares: tuple[Share, ...] = Field(description="The shares of conversations that were tried.")


class TestResult(Record):
    """A test in which faults stay unnoticed."""

    __test__: ClassVar[bool] = False

    suite: str
    name: str
    unnoticed: tuple[CleanText, ...] = Field(description="Kinds that were noticed in none of its trials.")


class IdleCriterion(Record):
    """A strict criterion that noticed no fault."""

    suite: str
    test: str
    criterion: str


class NullAgents(Record):
    """The scores of agents that do nothing, by strict criteria alone."""

    refuses: Percent | None = Field(description="Of one that refuses everything; null without any criteria.")
    claims: Percent | None = Field(description="Of one that claims that all is done.")


class Suggestion(Record):
    """A check that notices faults which nothing noticed."""

    suite: str = Field(description="The suite's file.")
    test: str
    kinds: tuple[CleanText, ...]
    evaluation: dict[str, JsonValue] = Field(description="The evaluation to add to the test.")


class Mutations(Study):
    """The faults that were planted in a run, and which of them its gate notices."""

    KEY: ClassVar[str] = "mutations"

    schema_version: Literal[1] = 1
    run: CleanText = Field(description="The id of the run.")
    gate: GateUsed
    faults: tuple[FaultResult, ...]
    tests: tuple[TestResult, ...] = Field(description="Tests in which some fault stays unnoticed.")
    criteria: tuple[IdleCriterion, ...] = Field(description="Strict criteria that noticed no fault.")
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
