"""The importer of a format: its name, its line in the help, and the function that reads a file."""

from dataclasses import dataclass
from typing import Protocol

from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.other_files import OtherFiles


class Read(Protocol):
    """Makes a suite of a foreign file."""

    def __call__(self, text: str, file: str, files: OtherFiles | None = None, /) -> ImportedSuite:
        """Read the text of a file, and the other files that it names.

        Raises:
            SuiteError: the file is not of the format, with the position.
        """


@dataclass(frozen=True)
class Importer:
    """A format that suites are made of."""

    format: str
    summary: str
    read: Read
