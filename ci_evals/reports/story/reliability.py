"""The reliability of judge and simulated user, in words and numbers; not yet sanitized.

Brackets behind a number hold its 95 % interval. Each part has its facts in a module of its own, and each
study in its folder.
"""

from collections import defaultdict
from dataclasses import dataclass

from ci_evals.domain.results.run import Results
from ci_evals.extension_registry import study_reports
from ci_evals.reports.story.judging import judge, simulated_user, votes
from ci_evals.reports.story.judging.parts import CriterionWarning, StudyReport
from ci_evals.reports.story.table import Table


@dataclass(frozen=True)
class Remark:
    """The facts of one topic, in sentences."""

    topic: str
    text: str


def remarks(results: Results) -> tuple[Remark, ...]:
    """All that is known of judge and simulated user of this run."""
    parts = (judge, votes, simulated_user)
    of_run = [Remark(part.TOPIC, text) for part in parts for text in part.remarks(results)]
    return (*of_run, *(Remark(study.topic, study.remark) for study in studies(results)))


def tables(results: Results) -> tuple[Table, ...]:
    """The tables behind the remarks, in the same order."""
    of_run = (*votes.tables(results), *simulated_user.tables(results))
    found = (*of_run, *(table for study in studies(results) for table in study.tables))
    return tuple(table for table in found if table.rows)


def warnings(results: Results) -> tuple[str, ...]:
    """Warnings that a reader needs before the numbers, each with what to do."""
    of_run = (*simulated_user.warnings(results), *votes.warnings(results))
    return (*of_run, *(warning for study in studies(results) for warning in study.warnings))


def studies(results: Results) -> tuple[StudyReport, ...]:
    """The report of each study on this run."""
    return tuple(study_reports(results)) if results.studies else ()


class CriterionWarnings:
    """The criteria of a run that are less reliable, and why."""

    def __init__(self, results: Results) -> None:
        self._by_criterion: dict[str, list[CriterionWarning]] = defaultdict(list)
        of_studies = (warning for study in studies(results) for warning in study.criterion_warnings)
        for warning in (*votes.criterion_warnings(results), *of_studies):
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
