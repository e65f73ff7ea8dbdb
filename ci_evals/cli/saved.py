"""Saved results, found and read for a command."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ci_evals.cli.terminal.console import environment_keys, remember
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.library import load_results
from ci_evals.library.runs import read_results
from ci_evals.reports.names import RESULTS
from ci_evals.support.redaction import Redactor


class Saved(NamedTuple):
    """Results, and where they are from."""

    named: Path
    """The path that was given: the file, or a folder that it lies in."""
    file: Path
    results: Results


def read_clean(path: Path) -> Results:
    """Recorded results, without the keys that this environment holds: whoever wrote them may not have known.

    Raises:
        UsageError: there are none, they cannot be read, or are of a run that has not finished.
    """
    return of_environment().model(load_results(path))


def read_leg(path: Path) -> Results:
    """Recorded results likewise, also those of a run that has not finished: merged, they are missing.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    return of_environment().model(read_results(path))


def of_environment() -> Redactor:
    """What takes the keys out that this environment holds."""
    redactor = Redactor(environment_keys(os.environ))
    remember(redactor)
    return redactor


def read_each(
    paths: Sequence[Path], read: Callable[[Path], Results] = read_clean, *, if_missing: str = ""
) -> Iterator[Saved]:
    """The results that the paths stand for, each file once, read when it is its turn.

    A path stands for itself, for the file in it, or for those in the folders in it. `if_missing` is what else
    to say of one that is not there.

    Raises:
        UsageError: at the end, with every path that holds none, and every file that cannot be read.
    """
    problems = []
    seen: set[Path] = set()
    for path in paths:
        try:
            files = _files(path, if_missing)
        except UsageError as error:
            problems.append(str(error))
            continue
        for file in files:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            try:
                yield Saved(path, file, read(file))
            except UsageError as error:
                problems.append(str(error))
    if problems:
        raise UsageError("\n".join(problems))


def _files(path: Path, if_missing: str) -> list[Path]:
    try:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder{if_missing}")
        if not path.is_dir():
            return [path]
        if (path / RESULTS).is_file():
            return [path / RESULTS]
        found = [folder / RESULTS for folder in sorted(path.iterdir())]
        found = [file for file in found if file.is_file()]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not found:
        raise UsageError(
            f"{path}: there is no {RESULTS} in it, nor in a folder right below it; name results files, or a "
            "folder whose folders hold them, as actions/download-artifact leaves it"
        )
    return found
