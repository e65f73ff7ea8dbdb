"""The saved results that a command reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.library.runs import finished, read_results, results_file
from ci_evals.reports.names import RESULTS
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class SavedRun:
    """The results of a run, and the file they were read from."""

    file: Path
    results: Results
    path: Path
    """The path that was given: the file, or a folder that it is in."""

    @classmethod
    def open(
        cls,
        path: Path,
        redactor: Redactor | None,
        *,
        unfinished: bool = False,
        earlier_version: bool = False,
    ) -> Self:
        """Read the results that a path stands for, without the secrets that the redactor knows.

        Args:
            path: The file, or the folder that holds it.
            redactor: Takes out secrets, which whoever wrote the results may not have known; None leaves them.
            unfinished: Whether results of a run that has not finished are read too.
            earlier_version: Whether results of the version before this one are read too.

        Raises:
            UsageError: there are none, they cannot be read, or are of a run that has not finished.
        """
        results = read_results(path, earlier_version=earlier_version)
        if not unfinished:
            finished(results, results_file(path))
        return cls(results_file(path), redactor.model(results) if redactor else results, path)

    @classmethod
    def open_each(
        cls,
        paths: Sequence[Path],
        redactor: Redactor | None,
        *,
        unfinished: bool = False,
        earlier_version: bool = False,
        if_missing: str = "",
    ) -> Iterator[Self]:
        """Read the results that the paths stand for, each file once, when it is its turn.

        A path stands for itself, for the file in it, or for those in the folders in it. `if_missing` is
        added to the message about one that does not exist.

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
                    saved = cls.open(file, redactor, unfinished=unfinished, earlier_version=earlier_version)
                    yield replace(saved, path=path)
                except UsageError as error:
                    problems.append(str(error))
        if problems:
            raise UsageError("\n".join(problems))


def without_trials(results: Results) -> Results:
    """Return the results without conversations: redacting these takes as long as reading them."""
    suites = tuple(
        replace(suite, tests=tuple(replace(test, trials=()) for test in suite.tests))
        for suite in results.suites
    )
    return replace(results, suites=suites)


def _files(path: Path, if_missing: str) -> list[Path]:
    try:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder{if_missing}")
        if not path.is_dir():
            return [path]
        if (path / RESULTS).is_file():
            return [path / RESULTS]
        files = [folder / RESULTS for folder in sorted(path.iterdir())]
        files = [file for file in files if file.is_file()]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not files:
        raise UsageError(
            f"{path}: contains no {RESULTS}, nor does a folder in it. Name results files, or a folder of "
            "their folders, as actions/download-artifact leaves it."
        )
    return files
