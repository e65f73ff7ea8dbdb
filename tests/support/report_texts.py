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


# Names used before
_BEFORE = {"files": "files_of_run", "joined": "join_parts", "dump": "results_json_text"}


def __getattr__(name):
    if name not in _BEFORE:
        raise AttributeError(name)
    return globals()[_BEFORE[name]]
