"""What stands in a run's journal: a header, an entry for each finished trial, and marks between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ci_evals.domain.base import CleanText, Instant, Record, Seconds
from ci_evals.domain.plan import Trial
from ci_evals.domain.results import Digests, Origin, Tool, TrialResult

_OF_DIGESTS: Mapping[str, str] = {
    "suites": "the suites, or which of their tests are played (--test, --tag, --shard)",
    "agents": "the agent",
    "models": "the provider or a model",
    "user_prompt": "the audit of the user (--audit-user, --audit-model), or the version of ci-evals",
    "loops": "the number of trials (--loops)",
}


class Header(Record):
    """The run that a journal is of, and all that its results depend on."""

    journal_version: Literal[1] = 1
    tool: Tool
    run: CleanText
    started_at: Instant
    digests: Digests
    origin: Origin | None = None
    """The run whose answers these trials have; none where they were played."""
    tests: tuple[int, ...] = ()
    """How many tests of each suite are played: entries tell them by their places, which digests do not."""

    def unlike(self, other: "Header") -> tuple[str, ...]:
        """What makes results of the one none of the other, in words."""
        differing = [
            name
            for name in Digests.model_fields
            if getattr(self.digests, name) != getattr(other.digests, name)
        ]
        if "suites" in differing or self.tests != other.tests:
            differing = ["suites"]  # agents, models and loops are told suite by suite
        words = [_OF_DIGESTS.get(name, "the version of ci-evals") for name in differing]
        if self.origin != other.origin:
            words.append("where its answers are from (--replay)")
        return tuple(dict.fromkeys(words))


class Entry(Record):
    """A finished trial, by its place in the plan."""

    suite: int
    test: int
    index: int
    elapsed: Seconds
    """How long the run had gone on by then, without the time in which it was broken off."""
    result: TrialResult

    @property
    def trial(self) -> Trial:
        """The trial that it is of."""
        return Trial(suite=self.suite, test=self.test, index=self.index)


class Mark(Record):
    """Something that is true of all before it."""

    mark: Literal["outage", "ended"]
    """`outage`: the run was stopped by an agent or model that could not be used, so what had broken off is
    to be played again. `ended`: the whole plan was played, and its reports are written."""


@dataclass(frozen=True)
class Past:
    """What a journal tells of a run that is taken up again."""

    header: Header
    done: Mapping[Trial, TrialResult] = field(default_factory=dict)
    elapsed: float = 0
