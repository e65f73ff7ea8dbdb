"""The runs that are shown beside a run on its page: the whole baseline, and the numbers of others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ci_evals.domain.base import Interval
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.story import gate
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.scoring.usage import agent_models, cost_of_trial


@dataclass(frozen=True)
class ComparisonRun:
    """Another run in numbers, without its conversations."""

    label: str
    """The folder or file that it was read from, as a reader knows it."""
    id: str
    at: datetime
    """The time at which it began."""
    commit: str | None
    score: float | None
    """0 to 100."""
    interval: Interval | None
    cost_usd: float | None
    """US dollars a trial, of all that has a price. None if it is unknown."""
    run_outcome: RunOutcome
    models: tuple[str, ...] = ()
    """The models of its agent and its judge, as far as they are known."""
    uncommitted_changes: bool = False
    """True if files differed from the commit."""
    ref: str | None = None
    """Its branch, or what else it was made of."""
    original: bool = True
    """False for a replay, and for a run that judged another one's conversations again."""
    outcomes: Mapping[tuple[str, str, str], TestOutcome] = field(default_factory=dict)
    """The outcome of each test, by suite, name and digest: one that was defined differently is another."""

    @classmethod
    def of(cls, results: Results, label: str, *, outcomes: bool = True) -> "ComparisonRun":
        """The row that a results file makes; `outcomes`: whether it has those of all tests."""
        git = results.run.git
        return cls(
            label=label,
            id=results.run.id,
            at=results.run.started_at,
            commit=git.head_commit or git.commit,
            uncommitted_changes=git.uncommitted_changes,
            score=results.score,
            interval=results.interval,
            cost_usd=cost_of_trial(results.own_usage, results.counts.played_trials),
            run_outcome=gate.run_outcome(results),
            models=_models(results),
            ref=git.ref,
            original=results.run.origin is None,
            outcomes={
                (suite.name, test.name, test.digest): test.outcome
                for suite in (results.suites if outcomes else ())
                for test in suite.tests
            },
        )


def _models(results: Results) -> tuple[str, ...]:
    judges = {judge for suite in results.suites for judge in suite.models.judges}
    return tuple(sorted({*agent_models(results.usage), *judges}))


@dataclass(frozen=True)
class ComparisonRuns:
    """The runs that are shown beside one."""

    baseline: Results | None = None
    """The run that it was compared with, without secrets; its conversations stand beside this run's."""
    others: tuple[ComparisonRun, ...] = ()
    """Other runs, for cost against quality and for the trend; in any order, this one not among them."""


ALONE = ComparisonRuns()
