"""The run since which a test fails, by the comparison runs."""

from collections.abc import Iterable

from ci_evals.domain.results.comparison import Baseline
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.story import phrases
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns

_BRANCH = "refs/heads/"


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


def sentence(
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
