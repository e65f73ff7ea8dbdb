"""The agents that were played side by side in one run."""

from pydantic import Field

from ci_evals.domain.base import CleanText
from ci_evals.domain.results.comparison import Change
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.usage import Latency, Usage


class Arm(ScoreSummary):
    """One agent of a run that played several, with its scores."""

    name: CleanText = Field(
        description="As `--arms` names it; `head` and `base` with `--against`. The first one is tested."
    )
    usage: Usage
    latency: Latency = Latency()
    change: Change | None = Field(
        None, description="Against the first arm; null for that one, and with `--against`."
    )
    p_adjusted: float | None = Field(
        None,
        description="The chance of a change as large in either direction, adjusted for the number of arms "
        "(Holm).",
    )
    suites: tuple[SuiteResult, ...] = Field(
        (), description="Empty for the first arm: its suites are the run's own."
    )

    @classmethod
    def of(cls, name: str, numbers: ScoreSummary, *, first: bool = False) -> "Arm":
        """The arm with the numbers of a run that played it alone."""
        fields = cls.model_fields.keys() - {"name", "change", "p_adjusted"} - ({"suites"} if first else set())
        return cls(name=name, **{field: getattr(numbers, field) for field in fields})

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The tests of all suites."""
        return tuple(test for suite in self.suites for test in suite.tests)
