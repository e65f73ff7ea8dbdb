"""The part of reports about personas."""

from ci_evals.domain.results.run import Results
from ci_evals.extensions.personas.suite_keys import PERSONA_TAG
from ci_evals.reports.story.judging import StudyReport

RANK = 5
"""Its place among the reports of all extensions."""


def report(results: Results) -> StudyReport | None:
    """The report on personas, if the run has any."""
    tests = (test for suite in results.suites for test in suite.tests)
    if not any(tag.startswith(PERSONA_TAG) for test in tests for tag in test.tags):
        return None
    from ci_evals.extensions.personas.persona_report import persona_report  # noqa: PLC0415

    return persona_report(results)
