"""The scores of a run and its suites, each with its interval, its minimum and the baseline's."""

from dataclasses import dataclass

from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import is_floor
from ci_evals.gate.rule import IF_UNDECIDED_FAILED, wanting
from ci_evals.reports.story import certainty

UNDECIDED_FAILED = IF_UNDECIDED_FAILED
"""The words for a score that decides and is not the one that is shown."""


@dataclass(frozen=True)
class Scored:
    """A part of a run."""

    name: str
    score: float | None
    interval: Interval | None = None
    base: float | None = None
    """The baseline's score over the tests that both runs share."""
    floor: GateCheck | None = None

    @property
    def missed(self) -> bool:
        """True if the score is below its floor."""
        return self.floor is not None and self.floor.passed is False

    @property
    def decisive(self) -> float | None:
        """The score that its floor was compared with, if verdicts are undecided."""
        if self.floor and self.missed and wanting(self.floor):
            return self.floor.seen_if_undecided_failed
        return self.score


def scored_parts(results: Results) -> tuple[Scored, ...]:
    """Return the run and its suites; none if no suite has a score.

    Of a single suite it is that one, unless the run has a minimum of its own.
    """
    comparison = results.comparison if results.comparison and results.comparison.comparable else None
    suites = comparison.suites if comparison else ()
    parts = []
    for place, suite in enumerate(results.suites):
        base = suites[place] if place < len(suites) and suites[place].name == suite.name else None
        floor = _floor(results, suite_number=place + 1)
        if len(results.suites) == 1:
            floor = floor or _floor(results)
        base_score = base.base if base and base.comparable else None
        too_little = certainty.too_little_decided(suite)
        score, interval = (None, None) if too_little else (suite.score, suite.interval)
        parts.append(Scored(suite.name, score, interval, base_score, floor))
    if all(part.score is None for part in parts):
        return ()
    if len(parts) > 1 or (parts[0].floor and parts[0].floor.suite_number and _floor(results)):
        base_score = comparison.base if comparison else None
        score = None if certainty.too_little_decided(results) else results.score
        parts.insert(0, Scored("All suites", score, results.interval, base_score, _floor(results)))
    return tuple(parts)


def _floor(results: Results, suite_number: int | None = None) -> GateCheck | None:
    floors = [
        check
        for check in results.gate.checks
        if is_floor(check) and check.test is None and check.suite_number == suite_number
        if suite_number or check.selector is None
    ]
    return max(floors, key=lambda check: check.required or 0, default=None)
