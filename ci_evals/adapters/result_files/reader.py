"""The reader of a format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ci_evals.adapters.result_files.source import SourceFile
from ci_evals.domain.result_rows import OfficialScore, ResultSet, Row


@dataclass(frozen=True)
class Reader:
    """A format: its name for `--format`, and the functions that read it."""

    format: str
    title: str
    """Its name in messages: `promptfoo results (version 3)`."""
    read: Callable[[SourceFile], Sequence[ResultSet] | None]
    official: Callable[[Sequence[Row]], OfficialScore | None] | None = None
    """The tool's own score of all rows of a suite; None if only its files state it."""
