"""The command `report`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.report.settings import ReportSettings


def _formats() -> Iterable[tuple[str, str]]:
    from ci_evals.reports.names import rows_of_help

    return rows_of_help()


_FACTS = CommandFacts(after="schema", formats=_formats, is_supervised=False)


@takes("ci_evals.extensions.report.settings", "ReportSettings", _FACTS)
def report(settings: "ReportSettings", context: RunContext) -> None:
    """Write the reports of a saved run again, next to its results.

    Plays and judges nothing. Further runs are shown in report.html for comparison: cost, score and trend.

    \b
    FORMATS

    \b
    ci-evals report results --open
    ci-evals report results past/ --baseline=main/_results.json
    ci-evals report past/ --format=html,badge      (the newest run in past/)
    """
    from ci_evals.extensions.report.rewriting import report as work

    work(settings, context)


COMMANDS = (report,)
