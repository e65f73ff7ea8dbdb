"""The sources of noise in scores."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ci_evals.domain.base import Amount, Dollars, Instant, ResultPart
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study

SOURCES = {"agent": "the agent", "user": "the simulated user", "judge": "the judge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseShare(ResultPart):
    """One source of the noise of a trial's score."""

    source: Literal["agent", "user", "judge"]
    variance: Estimate
    """In square points, of one trial and one vote; 0 if the estimate is negative."""
    share: Estimate | None
    """Of the variance of trials of one test, 0 to 1; together they are 1. Null if nothing
    varies."""


Remedy = Literal["loops", "votes", "tests"]
"""Ways to spend money on less noisy scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise(Study):
    """The sources of noise in scores."""

    KEY: ClassVar[str] = "noise"

    judge: JudgeUsed | None
    """Null if nobody judged."""
    at: Instant
    tests: Amount
    """Those that it was estimated from."""
    tests_left_out: Amount = 0
    """Those with fewer than two scores of a kind."""
    plays: Amount
    """Conversations that the study played."""
    judgments: Amount
    """Conversations that were judged again for it."""
    left_out: Amount = 0
    """Of both, those that errored, were excluded or have no score."""
    cost_usd: Dollars | None = None
    """Its cost; null if a price is unknown."""
    parts: tuple[NoiseShare, ...]
    """Agent, user, judge."""
    between_tests: Estimate
    """Variance of the tests' own scores, in square points."""
    standard_error: float | None = None
    """Of the run's score, in points, as long as the tests stay these."""
    best: Remedy | None
    """What the next dollar is best spent on for these tests, which is what a gate is about; `tests`
    if more loops and votes take no noise away, null if nothing varies."""
    gains: dict[Remedy, float] = field(default_factory=dict)
    """By remedy: square points that a dollar takes off the variance of the run's score (a call, if
    costs are unknown). Other tests take nothing away from the noise of these."""
    best_in_general: Remedy | None = None
    """The same if these tests are a sample of all that users may ask: how good is the agent in
    general?"""
    gains_in_general: dict[Remedy, float] = field(default_factory=dict)
    gains_per: Literal["dollar", "call"] = "dollar"
    why: str
    """Why the next dollar belongs in `best`, in a sentence or two."""


KINDS = (Noise,)
"""The types of what is kept in the results of a run."""
