"""A table as the page shows it: plain cells, made safe to be shown."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ci_evals.reports import sanitize

_LONGEST = 400
"""Characters of a cell."""


@dataclass(frozen=True)
class Table:
    """Cells of plain text, not yet escaped. The first cell of a row names it."""

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: frozenset[str]
    """The columns, beside the first, that hold words and no numbers."""
    tones: tuple[str, ...]
    """The tone of each row: `good`, `bad`, `open`, or nothing."""
    notes: tuple[str, ...]
    """Below each row's name, or nothing."""

    @property
    def columns(self) -> tuple[bool, ...]:
        """True for each column that holds numbers, which are aligned to the right."""
        return tuple(index > 0 and header not in self.texts for index, header in enumerate(self.headers))


def table(
    caption: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: Collection[str] = (),
    tones: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Table:
    """A table of these cells, one line each. Columns with nothing in any cell are left out."""
    kept = [index for index in range(len(headers)) if index == 0 or any(row[index] for row in rows)]
    return Table(
        sanitize.one_line(caption),
        tuple(headers[index] for index in kept),
        tuple(tuple(sanitize.one_line(row[index], _LONGEST) for index in kept) for row in rows),
        frozenset(texts),
        tuple(tones) or ("",) * len(rows),
        tuple(map(sanitize.one_line, notes)) or ("",) * len(rows),
    )
