"""How far judge and simulated user can be trusted, in words and numbers; not yet sanitized.

Brackets behind a number hold its 95 % interval. Each part and each study has its facts in a module of its
own.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ci_evals.domain.results.run import Results
from ci_evals.reports.facts import judge, simulated_user, votes
from ci_evals.reports.facts.parts import CriterionWarning, PlainTable
from ci_evals.reports.facts.studies import attacks, calibration, noise, preference, probe


class _Remarked(Protocol):
    TOPIC: str

    def remarks(self, results: Results) -> Iterator[str]: ...


class _Tabled(Protocol):
    def tables(self, results: Results) -> Iterator[PlainTable]: ...


class _Warned(Protocol):
    def warnings(self, results: Results) -> Iterator[str]: ...


_REMARKED: tuple[_Remarked, ...] = (
    judge,
    votes,
    simulated_user,
    calibration,
    noise,
    preference,
    attacks,
    probe,
)
_TABLED: tuple[_Tabled, ...] = (votes, simulated_user, calibration, noise, preference, attacks, probe)
_WARNED: tuple[_Warned, ...] = (simulated_user, votes, calibration, probe, attacks, preference)


@dataclass(frozen=True)
class Remark:
    """The facts of one topic, in sentences."""

    topic: str
    text: str


def remarks(results: Results) -> tuple[Remark, ...]:
    """All that is known of judge and simulated user of this run."""
    return tuple(Remark(part.TOPIC, text) for part in _REMARKED for text in part.remarks(results))


def tables(results: Results) -> tuple[PlainTable, ...]:
    """The same in numbers, in the same order."""
    return tuple(table for part in _TABLED for table in part.tables(results) if table.rows)


def warnings(results: Results) -> tuple[str, ...]:
    """What a reader must know before the numbers: for each thing what it is, and what to do."""
    return tuple(warning for part in _WARNED for warning in part.warnings(results))


class CriterionWarnings:
    """The criteria of a run that are less reliable, and why."""

    def __init__(self, results: Results) -> None:
        self._by_criterion: dict[str, list[CriterionWarning]] = defaultdict(list)
        for part in (votes, probe):
            for warning in part.criterion_warnings(results):
                self._by_criterion[warning.criterion].append(warning)

    def of(self, suite: str, test: str, criterion: str) -> str:
        """The warning about this criterion of this test; empty if there is none."""
        return "; ".join(
            warning.text
            for warning in self._by_criterion.get(criterion, ())
            if warning.suite in {None, suite} and warning.test in {None, test}
        )

    def of_test(self, suite: str, test: str) -> dict[str, str]:
        """The warnings about all criteria of a test, by criterion."""
        found = ((criterion, self.of(suite, test, criterion)) for criterion in self._by_criterion)
        return {criterion: warning for criterion, warning in found if warning}
