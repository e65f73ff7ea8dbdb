"""Where reports go, made sure of before there are any."""

from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.domain.errors import UsageError


@dataclass(frozen=True)
class Places:
    """Where reports are written: the folder of all, and the JUnit file where it is to be elsewhere."""

    folder: Path
    junit: Path | None = None

    def check(self) -> None:
        """Makes sure, before there is anything to report, that every report can be written.

        Raises:
            UsageError: one cannot.
        """
        files.check_writable(self.folder)
        if self.junit:
            if files.is_folder(self.junit):
                raise UsageError(f"--junit: {str(self.junit)!r} is a folder; name a file")
            files.check_writable(self.junit.parent)
