"""Whole texts of report files, which the product writes in parts."""

from collections.abc import Iterable, Mapping

from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files, results_json


def files(results: Results) -> dict[str, str]:
    """Return every file of a run, by its path."""
    return joined(report_files.files(results))


def joined(files: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the files with the parts of each joined."""
    return {path: "".join(parts) for path, parts in files.items()}


def dump(results: Results) -> str:
    """Return the text of `_results.json`."""
    return "".join(results_json.render(results))
