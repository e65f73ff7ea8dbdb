"""The best use of the next dollar: loops, votes or other tests. docs/judge-statistics.md has the formulas."""

import math
from dataclasses import dataclass
from typing import Literal

from ci_evals.extensions.noise.result import Remedy
from ci_evals.extensions.noise.sources import NoiseSources

_WHOSE = {"agent": "the agent's", "user": "the simulated user's", "judge": "the judge's"}
_FRACTIONS = {
    0.25: "A quarter",
    1 / 3: "A third",
    0.5: "Half",
    2 / 3: "Two thirds",
    0.75: "Three quarters",
}
_NEAR = 0.04
"""The greatest distance of a share from the fraction it is named by."""
_ALIKE = 1.05
"""Gains that differ by less are called alike."""


@dataclass(frozen=True)
class RunSize:
    """The size of the run whose score is to be less noisy."""

    tests: int
    loops: float
    """Scored trials of a test: the harmonic mean, as its noise is that of so many."""
    votes: int


@dataclass(frozen=True)
class TrialCosts:
    """The costs of a trial."""

    conversation: float
    vote: float
    """One vote on each judged criterion of the trial; 0 where nobody judges."""
    per: Literal["dollar", "call"]

    def trial(self, votes: int) -> float:
        """A conversation, judged by so many votes."""
        return self.conversation + votes * self.vote


@dataclass(frozen=True)
class SpendingAdvice:
    """The best use of the next dollar, for both questions that a score answers."""

    gains: dict[Remedy, float]
    """For these tests."""
    in_general: dict[Remedy, float]
    """For these tests as a sample of all possible tests."""
    best: Remedy | None
    best_in_general: Remedy | None
    standard_error: float
    """The standard error of the run's score, in points, for these tests."""
    why: str


def advice(found: NoiseSources, run: RunSize, costs: TrialCosts) -> SpendingAdvice:
    """Square points off the variance of the run's score for each dollar of one step.

    One step is one more loop of all tests, two more votes on every criterion, or one more test. The score is
    a mean of n tests with L loops and V votes; its variance is (b + (u + a + j / V) / L) / n, of which b, the
    variance between tests, is no noise to who asks whether these tests got worse (Miller, 2024).
    """
    judge, between = found.of("judge"), found.between.value
    n, loops, votes = run.tests, run.loops, run.votes
    trial = found.of("agent") + found.of("user") + judge / votes
    each = costs.trial(votes)
    gains: dict[Remedy, float] = {
        "loops": _for(trial * (1 / loops - 1 / (loops + 1)) / n, n * each),
        "votes": _for(judge * (1 / votes - 1 / (votes + 2)) / loops / n, n * loops * 2 * costs.vote),
        "tests": 0.0,
    }
    other = _for((between + trial / loops) * (1 / n - 1 / (n + 1)), loops * each)
    in_general: dict[Remedy, float] = {**gains, "tests": other}
    best, best_in_general = _largest(gains), _largest(in_general)
    if best is None and best_in_general:
        best = "tests"
    return SpendingAdvice(
        gains=gains,
        in_general=in_general,
        best=best,
        best_in_general=best_in_general,
        standard_error=math.sqrt(trial / loops / n),
        why=_why(found, gains, best, best_in_general, costs.per),
    )


def _for(gain: float, cost: float) -> float:
    return gain / cost if cost > 0 else 0.0


def _largest(gains: dict[Remedy, float]) -> Remedy | None:
    best = max(gains, key=lambda remedy: gains[remedy])
    return best if gains[best] > 0 else None


def _why(
    found: NoiseSources, gains: dict[Remedy, float], best: Remedy | None, in_general: Remedy | None, per: str
) -> str:
    if best is None:
        return "Nothing varies, neither trials of one test nor the tests: more would change nothing."
    if best == "tests":
        return "Trials of one test do not vary, so more loops and votes remove no noise."
    main = max(found.parts, key=lambda part: part.variance.value)
    share = main.share.value if main.share else 0.0
    amount = _much(share)
    if sum(part.variance.value > 0 for part in found.parts) == 1:
        amount = "All"
    largest = f"{amount} of the noise is {_WHOSE[main.source]}"
    return f"{largest}, and {_compared(gains, best, per)}.{_in_general(in_general, best)}"


def _compared(gains: dict[Remedy, float], best: Remedy, per: str) -> str:
    steps: dict[Remedy, str] = {"loops": "one more loop", "votes": "two more votes"}
    other: Remedy = "votes" if best == "loops" else "loops"
    if not gains[other]:
        return f"{steps[other]} would remove nothing"
    times = gains[best] / gains[other]
    if times < _ALIKE:
        return f"{steps[best]} and {steps[other]} remove about as much of it per {per}"
    much = f"{times:.1f}" if times < 10 else f"{times:.0f}"
    removes = "removes" if best == "loops" else "remove"
    return f"{steps[best]} {removes} {much} times as much of it per {per} as {steps[other]}"


def _in_general(best: Remedy | None, here: Remedy) -> str:
    if best is None or best == here:
        return ""
    return f" To know how good the agent is in general, beyond these tests, spend it on more {best}."


def _much(share: float) -> str:
    if share >= 0.95:
        return "Nearly all"
    near = min(_FRACTIONS, key=lambda fraction: abs(fraction - share))
    return _FRACTIONS[near] if abs(near - share) <= _NEAR else f"{math.floor(round(100 * share, 7))} %"
