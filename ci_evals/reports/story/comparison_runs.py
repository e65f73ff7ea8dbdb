"""The runs beside a run: the whole baseline, the numbers of others, and since when a test fails."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ci_evals.domain.base import Interval
from ci_evals.domain.results.comparison import Baseline
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.story import gate, phrases
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.scoring.usage import agent_models, cost_of_trial

_BRANCH = "refs/heads/"


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


def earlier(results: Results, comparison_runs: ComparisonRuns) -> tuple[ComparisonRun, ...]:
    """The runs before this one, the newest first; the baseline is one of them.

    Runs of other branches are left out: what fails here may never have failed there, or the other way round.
    So are replays and rejudged runs: the run that held their conversations is there itself, or was.
    """
    baseline = (ComparisonRun.of(comparison_runs.baseline, "baseline"),) if comparison_runs.baseline else ()
    runs = {run.id: run for run in (*comparison_runs.others, *baseline)}
    run, base = results.run, baseline[0].ref if baseline else None
    began = run.origin.started_at if run.origin else run.started_at
    before = [
        other
        for other in runs.values()
        if other.at < began
        and other.original
        and other.id != run.id
        and _in_history(other.ref, run.git.ref, base)
    ]
    return tuple(sorted(before, key=lambda run: (run.at, run.id), reverse=True))


def _in_history(ref: str | None, here: str | None, base: str | None) -> bool:
    """True if a run of `ref` may belong to the history of one of `here`, whose baseline is of `base`."""
    if ref is None or here is None or ref in {here, base}:
        return True
    return base is None and ref.startswith(_BRANCH) and not here.startswith(_BRANCH)


def failing_since(
    test: tuple[str, str, str], runs: Iterable[ComparisonRun], baseline: str | None = None
) -> str | None:
    """Since when a test fails that fails now; None if no earlier run has it.

    Args:
        test: Its suite, name and digest: with another digest it would be another test.
        runs: Those before this one, the newest first.
        baseline: The id of the run that this one was compared with.
    """
    failed: list[ComparisonRun] = []
    for run in runs:
        match run.outcomes.get(test):
            case TestOutcome.FAILED:
                failed.append(run)
            case TestOutcome.PASSED:
                last = f"{'in the baseline, ' if run.id == baseline else ''}{moment(run)}"
                if not failed:
                    return f"First failed in this run; last passed {last}."
                row = f"{len(failed) + 1} runs in a row"
                return f"Failing since {moment(failed[-1])}, {row}; last passed {last}."
    return f"Failed in all {len(failed) + 1} known runs, the first {moment(failed[-1])}." if failed else None


def moment(run: ComparisonRun | Baseline) -> str:
    """The time and the commit of a run: `2026-11-20 09:30 UTC (1aaaaaa)`."""
    commit = phrases.commit_name(run)
    return f"{phrases.moment(run.at)} ({commit})" if commit else phrases.moment(run.at)
