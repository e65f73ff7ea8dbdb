"""Tables as values: typed columns, each declared once, and rows that every report lays out in its own way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from ci_evals.domain import numbers
from ci_evals.reports.story.outcome_labels import Tone

R = TypeVar("R")
BLANK = frozenset({""})
NO_COUNT = frozenset({"", "0"})
UNKNOWN = frozenset({"", numbers.NONE})


class Room(IntEnum):
    """The room that a table needs to show a column."""

    LITTLE = 0
    """Every report shows it."""
    SOME = 1
    """Reports of their own, such as a suite's summary and the page."""
    MUCH = 2
    """The page alone."""


@dataclass(frozen=True)
class Heading:
    """The head of a column, and how its cells are shown."""

    title: str
    words: bool = False
    """True if it holds words, which stand to the left, and no numbers."""
    unbroken: bool = False
    """True if its cells must stay on one line: an interval on three is hard to read."""
    marked: bool = False
    """True if the sign of the row stands before its cells."""
    extra: bool = False
    """True if the page shows it only on request."""
    limit: int = 300
    """Characters of a cell that are shown where there is little room."""


@dataclass(frozen=True)
class Column(Heading, Generic[R]):
    """A column: its heading, and the text of its cell in the row of an item."""

    show: Callable[[R], str] = str
    says_nothing: frozenset[str] | None = None
    """Cells without news: the column is left out if it has no others. None: it always stays."""
    key: Callable[[R], float | None] | None = None
    """The number to sort by; None if the text is."""
    room: Room = Room.LITTLE

    @property
    def heading(self) -> Heading:
        """The heading alone."""
        return Heading(self.title, self.words, self.unbroken, self.marked, self.extra, self.limit)


@dataclass(frozen=True)
class Mark:
    """The sign of a row, and whether it is good news."""

    sign: str
    tone: Tone


@dataclass(frozen=True)
class Row:
    """A row. Its first cell names it."""

    cells: tuple[str, ...]
    mark: Mark | None = None
    tone: Tone | None = None
    """The tone of the whole row, if it has one."""
    note: str = ""
    """Shown below the name where there is room."""
    keys: tuple[float | None, ...] = ()
    """Numbers to sort by, by column; empty if the table is not sorted."""


@dataclass(frozen=True)
class Table:
    """A table in plain text. Columns in which nothing is said are already left out."""

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    in_remark: bool = False
    """True if the remark on its topic has all of it."""
    long: bool = False
    """True if it has a row for each criterion or test."""
    in_console: bool = False
    """True if the console shows it without being asked for more."""
    remark: str = ""
    """The sentences below it, which a reader needs to read its cells."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the columns."""
        return tuple(heading.title for heading in self.headings)


def table_of(
    title: str,
    columns: Sequence[Column[R]],
    items: Iterable[R],
    *,
    room: Room = Room.MUCH,
    mark: Callable[[R], Mark] | None = None,
    tone: Callable[[R], Tone | None] | None = None,
    note: Callable[[R], str] | None = None,
    in_remark: bool = False,
    long: bool = False,
    remark: str = "",
) -> Table:
    """Lay out items by columns.

    Args:
        title: Of the table.
        columns: The first one names the rows.
        items: One for each row.
        room: Columns that need more are left out.
        mark: The sign of an item.
        tone: The tone of an item's row.
        note: Further words below its name.
        in_remark: Whether the remark on its topic has all of it.
        long: Whether it has a row for each criterion or test.
        remark: The sentences below it.
    """
    items = list(items)
    kept: list[Column[R]] = []
    cells: list[list[str]] = []
    for column in columns:
        if column.room > room:
            continue
        shown = [column.show(item) for item in items]
        if column.says_nothing is None or not column.says_nothing.issuperset(shown):
            kept.append(column)
            cells.append(shown)
    sorts = any(column.key for column in kept)
    rows = []
    for index, item in enumerate(items):
        rows.append(
            Row(
                cells=tuple(column[index] for column in cells),
                mark=mark(item) if mark else None,
                tone=tone(item) if tone else None,
                note=note(item) if note else "",
                keys=tuple(_key(column, item) for column in kept) if sorts else (),
            )
        )
    headings = tuple(column.heading for column in kept)
    return Table(title, headings, tuple(rows), in_remark=in_remark, long=long, remark=remark)


def _key(column: Column[R], item: R) -> float | None:
    return column.key(item) if column.key else None
