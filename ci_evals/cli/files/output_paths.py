"""The paths of reports, checked before there are any."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.journal.records import JOURNAL, RECORDING
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.reports import unfinished
from ci_evals.reports.names import JUNIT, OF_RUN, SUITE_SUMMARY

_OURS = frozenset({*OF_RUN, SUITE_SUMMARY, JOURNAL, RECORDING} - {JUNIT})
"""Names of our other files: a report under one of them would be taken for that."""
_HEAD_BYTES = 4096
"""The part of an existing file in which its first elements are looked for."""

Inputs = Mapping[str, Path | None]
"""The files that a command reads, by the option that names each."""


@dataclass(frozen=True)
class OutputPaths:
    """The folder of all reports, and the JUnit file if it is to be elsewhere."""

    folder: Path
    junit: Path | None = None

    def check(self, inputs: Inputs | None = None, suites: Iterable[str] = ()) -> None:
        """Make sure, before there is anything to report, that all of it can be written, and over no input.

        Args:
            inputs: What the command reads.
            suites: The folders of the suites' own reports, as far as they are known.

        Raises:
            UsageError: one cannot, would be written over a file that is read or is no report, or a link
                leads elsewhere.
        """
        check_folder("`output_dir=`", self.folder)
        if files.is_there(self.folder) and not files.is_folder(self.folder):
            raise UsageError(f"`output_dir=`: {str(self.folder)!r} is not a folder. Name a folder.")
        files.check_writable(self.folder)
        for name in (*OF_RUN, JOURNAL):
            check_output("`output_dir=`", self.folder / name, inputs or {})
            _check_no_link("`output_dir=`", self.folder / name)
        self._check_suites(suites)
        if self.junit:
            check_folder("`junit=`", self.junit.parent)
            self._check_junit(self.junit, inputs or {})
            _check_no_link("`junit=`", self.junit)
            files.check_writable(self.junit.parent)

    def begin(self, results: Results) -> None:
        """Put reports that say "unfinished" in the place of an earlier run's, until this run's are written.

        Args:
            results: Of the run that begins.

        Raises:
            UsageError: one cannot be written or taken away.
        """
        self._check_suites(suite.folder for suite in results.suites)
        written = unfinished.files(results)
        if self.junit:
            files.write(self.junit, written.pop(JUNIT))
        files.write_all(self.folder, written)
        outdated = {*unfinished.OUTDATED, *({JUNIT} - written.keys())}
        for name in outdated - ({JUNIT} if self._has_own_junit else set()):
            files.remove(self.folder / name)

    @property
    def _has_own_junit(self) -> bool:
        return self.junit is not None and files.is_same(self.junit, self.folder / JUNIT)

    def _check_suites(self, suites: Iterable[str]) -> None:
        files.check_inside(self.folder, (f"{suite}/{SUITE_SUMMARY}" for suite in suites))

    def _check_junit(self, path: Path, inputs: Inputs) -> None:
        check_output("`junit=`", path, inputs)
        if path.name.casefold() in _OURS:
            raise UsageError(
                f"`junit=`: {str(path)!r} has the name of another report or journal. Name it junit.xml."
            )
        for name in _OURS:
            if files.is_same(path, self.folder / name):
                raise UsageError(
                    f"`junit=`: {str(path)!r} is {name} in the output folder. Name another file."
                )
        if files.is_there(path) and not _is_junit(path):
            raise UsageError(
                f"`junit=`: {str(path)!r} exists, is not a JUnit file, and is not overwritten. Name another "
                "file, or delete it."
            )


def check_output(option: str, path: Path, inputs: Inputs) -> None:
    """Make sure that a file may be written: that it is a regular one, and none that the command reads.

    Args:
        option: The option that names it or its folder.
        path: The file.
        inputs: What the command reads.

    Raises:
        UsageError: it may not.
    """
    if why := files.unfit(path):
        raise UsageError(f"{option}: {str(path)!r} is {why}.")
    for named, read in inputs.items():
        if read is not None and files.is_same(path, read):
            raise UsageError(
                f"{option}: {str(path)!r} would be overwritten, but this command reads it ({named}). "
                "Name another path, or copy that file first."
            )


def check_folder(option: str, folder: Path) -> None:
    """Make sure that a folder for outputs is where it is named: in the working folder, if it is named there.

    Args:
        option: The option that names it.
        folder: The folder.

    Raises:
        UsageError: a link leads out of the working folder.
    """
    if files.leads_out(folder, Path.cwd()):
        raise UsageError(
            f"{option}: {str(folder)!r} leads out of the working folder through a symbolic link. Name the "
            "folder itself, or delete the link."
        )


def _check_no_link(option: str, path: Path) -> None:
    if files.is_link(path):
        raise UsageError(f"{option}: {str(path)!r} is a symbolic link. Delete it, or name another path.")


def _is_junit(path: Path) -> bool:
    """Return whether a file is empty or holds what JUnit files begin with."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        return not head.strip() or b"<testsuite" in head
    return False
