"""The working folder: what a client names must lie in it, also where links lead."""

from collections.abc import Iterable
from pathlib import Path

from ci_evals.adapters import suite_paths
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.reports.names import RESULTS

DEFAULT_RESULTS = "results"


def check_suites(names: Iterable[str], root: Path) -> None:
    """Refuse suites that are not in the folder `root`.

    Raises:
        UsageError: a name leads elsewhere, or there is no such suite.
    """
    for name in names:
        if is_bundled(name):
            continue
        _check(suite_paths.fixed_folder(name), name, root)
        for file in suite_paths.files(name):
            _check(file, str(file), root)


def results_path(name: str | None, root: Path) -> Path:
    """Return the path of a run's results.

    Raises:
        UsageError: it leads out of the folder `root`.
    """
    path = Path(name or DEFAULT_RESULTS)
    _check(path, str(path), root)
    _check(path / RESULTS, str(path), root)
    return path


def _check(path: Path, name: str, root: Path) -> None:
    try:
        is_inside = path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a null character
        is_inside = False
    if not is_inside:
        raise UsageError(f"{name!r} is outside of the working folder {str(root)!r}. Name a path in it.")
