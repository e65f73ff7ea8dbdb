"""The run since which a test fails, by the comparison runs."""

from collections.abc import Iterable
from dataclasses import dataclass

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.facts import change
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns

_BRANCH = "refs/heads/"
_KNOWN = frozenset({TestOutcome.PASSED, TestOutcome.FAILED})
"""The outcomes that decide; runs with another one are passed over."""


@dataclass(frozen=True)
class Since:
    """The unbroken row of failures that ends with this run."""

    first: ComparisonRun | None
    """The run in which it begins; None if that is this one."""
    passed: ComparisonRun | None
    """The last run before it, in which the test passed; None if no known run is older."""
    runs: int
    """The length of the row, this run included."""


def earlier(results: Results, comparison_runs: ComparisonRuns) -> tuple[ComparisonRun, ...]:
    """The runs before this one, the newest first; the baseline is one of them.

    Not those of other branches: what fails here may never have failed there, or the other way round. And not
    those that held no conversations: they tell of a run that is there itself, or was.
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
        and _on_the_way(other.ref, run.git.ref, base)
    ]
    return tuple(sorted(before, key=lambda run: (run.at, run.id), reverse=True))


def _on_the_way(ref: str | None, here: str | None, base: str | None) -> bool:
    """True if a run of `ref` may belong to the history of one of `here`, whose baseline is of `base`."""
    if ref is None or here is None or ref in {here, base}:
        return True
    return base is None and ref.startswith(_BRANCH) and not here.startswith(_BRANCH)


def of(test: tuple[str, str, str], runs: Iterable[ComparisonRun]) -> Since | None:
    """Since when the test (suite, name, digest), which fails now, does so; None if no run has it.

    Args:
        test: Of another digest it would be another test.
        runs: Those before this one, the newest first.
    """
    first, failed = None, 1
    known = [(run, run.outcomes[test]) for run in runs if run.outcomes.get(test) in _KNOWN]
    for run, outcome in known:
        if outcome is TestOutcome.PASSED:
            return Since(first, run, failed)
        first, failed = run, failed + 1
    return Since(first, None, failed) if known else None


def words(streak: Since, baseline: str | None = None) -> str:
    """The same in a sentence or two. `baseline` is the id of the run that this one was compared with."""
    if streak.passed is None:
        return f"Failed in all {streak.runs} runs that are known, the first {_named(streak.first)}."
    when = (
        "this run"
        if streak.first is None
        else f"the run {_named(streak.first)} ({streak.runs} runs in a row)"
    )
    last = "the baseline, the run" if streak.passed.id == baseline else "the run"
    return f"Fails since {when}. Passed last in {last} {_named(streak.passed)}."


def _named(run: ComparisonRun | None) -> str:
    if run is None:
        return "this one"
    commit = f", commit {run.commit[: change.COMMIT]}" if run.commit else ""
    return f"of {change.moment(run.at)}{commit}"
