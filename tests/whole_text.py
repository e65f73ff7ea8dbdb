"""What a run's files hold, whole: reports make their texts in parts."""

from collections.abc import Iterable, Mapping

from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files, results_json


def files(results: Results) -> dict[str, str]:
    """Every file of a run, by its path."""
    return joined(report_files.files(results))


def joined(files: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The files with the parts of each as one."""
    return {path: "".join(parts) for path, parts in files.items()}


def dump(results: Results) -> str:
    """Their `_results.json`."""
    return "".join(results_json.render(results))
