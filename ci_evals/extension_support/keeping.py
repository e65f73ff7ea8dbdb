"""Findings of a study, shown on the console and kept with the results of the run."""

from dataclasses import replace
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.extension_registry import study_reports
from ci_evals.reports import columns, report_files, results_json, sanitize
from ci_evals.reports.names import RESULTS
from ci_evals.reports.story.judging import StudyReport
from ci_evals.reports.story.table import Table

_MAX_CELL = 90
"""Characters of a cell."""
_MAX_ROWS = 40
"""Rows of a table with one for each criterion or test."""


def check_whole(run: SavedRun) -> None:
    """Make sure, before anything is paid for, that a study can be kept with the results.

    Raises:
        UsageError: they are one suite's own, which are part of the run's.
    """
    if report_files.is_of_suite(run.results, run.file.resolve()):
        raise UsageError(
            f"{run.file}: these are the results of one suite; name the {RESULTS} of the whole run"
        )


def text_of(results: Results, study: Study, width: int | None, *, warnings: bool = True) -> str:
    """The tables of a study, then what it says in words."""
    report: StudyReport
    (report,) = study_reports(replace(results, studies=(study,)))
    blocks = [_table(table, width) for table in report.tables if table.rows]
    sentences = [report.remark]
    if warnings:
        sentences += report.warnings
    return "\n\n".join([*blocks, *map(sanitize.log_line, sentences)]) + "\n"


def _table(table: Table, width: int | None) -> str:
    rows = table.rows[:_MAX_ROWS] if table.long else table.rows
    cells = [[sanitize.log_line(cell, _MAX_CELL) for cell in row.cells] for row in rows]
    lines = [table.title, "", columns.table(table.titles, cells, width)]
    more = len(table.rows) - len(rows)
    if more:
        lines.append(f"and {more:,} more")
    return "\n".join(lines)


def keep(results: Results, file: Path, context: RunContext) -> None:
    """Write the results of a run, instead of the file that they were read from, and all its reports.

    Raises:
        UsageError: they cannot be written.
    """
    place = file.parent.resolve() / file.name  # beside a link, not beside what it leads to
    files.write(place, results_json.render(results))  # first: all else can be drawn from it again
    files.write_all(place.parent, report_files.redraw(results, place))
    context.show(sanitize.log_line(f"Saved in {file} and its reports"))
