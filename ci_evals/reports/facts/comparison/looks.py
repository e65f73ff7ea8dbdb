"""How a run came to its decision: rounds, the base agent, earlier runs. In sentences; not yet sanitized."""

from collections.abc import Iterator

from ci_evals.domain.choices import BothSides
from ci_evals.domain.results.comparison import Comparison, HistoryComparison
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.scoring.gate.decision import CLOSE

_NAMED = 5


def sentences(results: Results) -> Iterator[str]:
    """Yield what the run played and why, what earlier runs say, and the tests that broke."""
    comparison = results.comparison
    yield from _rounds(results)
    if comparison is None:
        return
    if comparison.method == "both-sides":
        yield _both_sides(comparison, screened=results.run.config.get("bothSides") != BothSides.ALWAYS)
    if history := comparison.history:
        yield from _earlier_runs(history, comparison)
        yield from _names(history)


def extent(results: Results) -> str | None:
    """How much a run with the rounds of this one plays and costs; None for a run that is not in rounds."""
    rounds = results.run.rounds
    if rounds is None:
        return None
    first, last, sides = rounds.looks[0], rounds.looks[-1], 1
    if results.base_side:
        sides, spared = 2, results.run.config.get("bothSides") != BothSides.ALWAYS
        first *= 1 if spared else sides
    base = ", those of the base agent included" if sides > 1 else ""
    text = f"Such a run plays {numbers.extent(first, sides * last, str)} trials of each test{base}"
    if not results.usage.cost_usd or results.counts.taken_trials:
        return f"{text}."
    of_trial = results.usage.cost_usd / (sides * rounds.played)
    cost = numbers.extent(of_trial * first, of_trial * sides * last, numbers.money)
    return f"{text}, for about {cost}."


def _rounds(results: Results) -> Iterator[str]:
    """Why the run ended with this round; `headline.certainty` has the numbers."""
    rounds = results.run.rounds
    if rounds is None or results.gate.reasons or results.run.status != "completed":
        return
    if rounds.played < rounds.looks[-1]:
        yield "More trials could hardly change the verdict, so no further round was played."
    elif len(rounds.looks) > 1:
        yield "Earlier rounds were not clear, so all were played."


def _both_sides(comparison: Comparison, *, screened: bool) -> str:
    history = comparison.history
    if history and screened and history.p_of_trials <= CLOSE:
        runs = numbers.count(history.together, "run")
        begun = (
            f"The score looked lower than in the last {runs}, so the base agent was played beside this one"
        )
    else:
        begun = "The base agent was played beside this one, trial by trial in turns"
    if comparison.delta is None:
        return f"{begun}; no test was scored on both sides."
    chance = (
        f" ({numbers.p_value(comparison.p)})" if comparison.p is not None and comparison.delta < 0 else ""
    )
    if comparison.delta == 0:
        return f"{begun}: in this run both score the same."
    points = numbers.signed(comparison.delta).lstrip("+-")  # as where the change stands beside it
    lower = "lower" if comparison.delta < 0 else "higher"
    return f"{begun}: in this run, this agent scores {points} {lower}{chance}."


def _earlier_runs(history: HistoryComparison, comparison: Comparison) -> Iterator[str]:
    both_sides = comparison.method == "both-sides"
    branch = None if both_sides else comparison.baseline.branch
    name = branch or "the base branch"
    if history.smaller:
        runs = numbers.count(history.smaller, "earlier run")
        have, are = ("has", "is") if history.smaller == 1 else ("have", "are")
        yield f"{runs} of {name} {have} fewer tests or trials than the newest and {are} left out."
    if history.together < history.runs:
        subject, runs = branch or "The base branch", numbers.count(history.together, "run")
        yield f"{subject} changed: its last {runs} differ from those before, which are left out."
    if history.spread is None:
        return
    yield (
        f"Runs of {name} differ among themselves by {numbers.score(history.spread)} points; a drop below "
        f"{numbers.score(history.smallest_drop)} would not stand out."
    )
    if comparison.method == "history":
        yield f"p compares this run with the last {history.together} runs of {name} together."


def _names(history: HistoryComparison) -> Iterator[str]:
    broken = [test.name for test in history.broken_tests]
    probably = [test.name for test in history.probably_broken_tests]
    if broken:
        tests = numbers.count(history.tests, "test")
        yield (
            f"Broken: {numbers.listed(broken, _NAMED)} (with all {tests} looked at, a false name in at most "
            "5 % of runs)."
        )
    if probably:
        yield f"Probably broken: {numbers.listed(probably, _NAMED)} (of all such names one in ten is false)."
