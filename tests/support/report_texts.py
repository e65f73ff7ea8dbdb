"""Whole texts of report files, which the product writes in parts."""

from collections.abc import Iterable, Mapping

from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files, results_json


def files_of_run(results: Results) -> dict[str, str]:
    """Return every file of a run, by its path."""
    return join_parts(report_files.files(results))


def join_parts(files: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {path: "".join(parts) for path, parts in files.items()}


def results_json_text(results: Results) -> str:
    return "".join(results_json.render(results))
