"""The position of a part of promptfoo's configuration, which may be in several files."""

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.planning.documents.document import Document, Path

_HERE = PurePosixPath()


@dataclass(frozen=True)
class Place:
    """A position in a file."""

    document: Document
    path: Path = ()
    folder: PurePosixPath = _HERE
    """The folder of the file, from that of the configuration."""

    def at(self, *steps: str | int) -> "Place":
        """Return the position of a part of what is here."""
        return replace(self, path=(*self.path, *steps))

    def problem(self, message: str) -> Problem:
        """Return a problem of what is here."""
        return self.document.problem(self.path, message)

    def fault(self, message: str) -> SuiteError:
        """Return the error about what is here, to be raised."""
        return SuiteError([self.problem(message)])
