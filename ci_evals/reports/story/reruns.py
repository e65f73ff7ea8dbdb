"""Earlier attempts at the same commit: what they came to, and what all trials together show."""

from collections.abc import Iterable, Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import PooledRun, Results, UnpooledRun
from ci_evals.reports.story import gate
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.phrases import capitalized, sentence

_SHOWN = 3
"""Attempts that are not pooled and that reports name; of more their number is given."""


def headline(results: Results) -> str:
    """`Rerun 2 of this commit: 36 trials in all`; empty if no earlier attempt is pooled."""
    reruns = len(results.run.pooled)
    if not reruns:
        return ""
    return f"Rerun {reruns} of this commit: {numbers.count(results.counts.trials, 'trial')} in all"


def notes(results: Results) -> Iterator[str]:
    """Yield what earlier attempts came to, what all trials together show, and which do not count."""
    if pooled := results.run.pooled:
        beginning = f"{headline(results)} ({results.counts.played_trials:,} of them new)."
        parts = [beginning, _first(pooled[0]), _together(results)]
        yield " ".join(filter(None, parts))
    reruns = results.run.reruns
    yield from not_pooled(reruns.not_pooled if reruns else ())


def not_pooled(runs: Iterable[UnpooledRun]) -> Iterator[str]:
    """Yield why attempts do not count."""
    everyone = tuple(runs)
    for run in everyone[:_SHOWN]:
        problem = "cannot be read" if run.unread else "is not pooled"
        yield sentence(f"{capitalized(run.source)} {problem}: {run.why}")
    more = len(everyone) - _SHOWN
    if more > 0:
        yield f"Not counted: {numbers.count(more, 'more earlier attempt')} at this commit."


def _first(run: PooledRun) -> str:
    score = "" if run.score is None else f", score {numbers.score(run.score)}"
    match run.passed:
        case True:
            return f"The first attempt passed{score}."
        case False:
            return f"The first attempt failed{score}."
        case None:
            return f"The first attempt had no verdict{score}."


def _together(results: Results) -> str:
    before = [run.passed for run in results.run.pooled]
    match gate.run_outcome(results):
        case RunOutcome.PASSED | RunOutcome.UNCHECKED:
            if False in before:
                return "All trials together pass: what failed before was chance."
            return "All trials together pass."
        case RunOutcome.FAILED:
            if False in before:
                return "All trials together fail: it was not chance."
            return "All trials together fail."
        case _:
            return ""
