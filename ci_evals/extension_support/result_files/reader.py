"""The reader of a format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile


@dataclass(frozen=True)
class Reader:
    """A format: its name, the functions that read it, and its rows in `docs/gate-files.md`."""

    format: str
    title: str
    """Its name in messages: `promptfoo results (version 3)`."""
    read: Callable[[SourceFile], Sequence[ResultSet] | None]
    official: Callable[[Sequence[Row]], OfficialScore | None] | None = None
    """The tool's own score of all rows of a suite; None if only its files state it."""
    files: str = field(kw_only=True)
    """The files of the format, in Markdown; with `¹` if they do not name the model."""
    tried_with: str = ""
    """Versions of tools whose files were read, in Markdown."""
    compared: str = ""
    """Totals in the files that are compared with their rows, in Markdown."""
