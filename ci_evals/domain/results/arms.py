"""The agents that were played side by side in one run."""

from pydantic import Field

from ci_evals.domain.base import CleanText, Interval, Points
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.usage import Latency, Usage


class Arm(ScoreSummary):
    """One agent of a run that played several, with its scores."""

    name: CleanText = Field(description="As the file of `arms` names it; `head` and `base` with `against`.")
    gated: bool = Field(
        default=False, description="Whether the gate is about this one: its suites are the run's own."
    )
    delta: Points | None = Field(
        None,
        description="The change from the first arm; null for that one, and with `against`. So are the next "
        "three.",
    )
    delta_interval: Interval | None = Field(None, description="95 % interval of delta.")
    p: float | None = Field(
        None, description="How often chance alone shows a change as large, in either direction."
    )
    p_adjusted: float | None = Field(None, description="p, adjusted for the number of arms (Holm).")
    usage: Usage
    latency: Latency = Latency()
    suites: tuple[SuiteResult, ...] = Field(
        (), description="Empty for the one that the gate is about: its suites are the run's own."
    )

    @classmethod
    def of(cls, name: str, numbers: ScoreSummary, *, gated: bool = False) -> "Arm":
        """The arm with the numbers of a run that played it alone."""
        fields = [*ScoreSummary.model_fields, "usage", "latency", *([] if gated else ["suites"])]
        return cls(name=name, gated=gated, **{field: getattr(numbers, field) for field in fields})

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The tests of all suites."""
        return tuple(test for suite in self.suites for test in suite.tests)
