"""The agents that were played side by side in one run."""

from dataclasses import dataclass

from ci_evals.domain.base import CleanText, Interval, Points
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.usage import Latency, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm(ScoreSummary):
    """One agent of a run that played several, with its scores."""

    name: CleanText
    """As the file of `arms` names it; `head` and `base` with `against`."""
    gated: bool = False
    """True for the arm that the gate is about: its suites are the run's own."""
    delta: Points | None = None
    """The change from the first arm; null for that one, and with `against`. So are the next
    three."""
    delta_interval: Interval | None = None
    """95 % interval of delta."""
    p: float | None = None
    """How often chance alone shows a change as large, in either direction."""
    p_adjusted: float | None = None
    """p, adjusted for the number of arms (Holm)."""
    usage: Usage
    latency: Latency = Latency()
    suites: tuple[SuiteResult, ...] = ()
    """Empty for the one that the gate is about: its suites are the run's own."""

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The tests of all suites."""
        return tuple(test for suite in self.suites for test in suite.tests)
