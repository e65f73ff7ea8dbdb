"""Calls compared with a list of wanted ones, by what openevals calls trajectory match modes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

SequenceMode = Literal["in_order", "strict", "unordered", "subset", "superset"]

Table = Sequence[Sequence[bool]]
"""True where a call (row) is one of those wanted (column)."""


def _in_order(table: Table, wanted: int) -> bool:
    """Return whether the calls hold those wanted as a subsequence."""
    rows = iter(table)
    return all(any(row[column] for row in rows) for column in range(wanted))


def _within(table: Table, wanted: int) -> bool:
    """Return whether the calls are a subsequence of those wanted."""
    columns = iter(range(wanted))
    return all(any(row[column] for column in columns) for row in table)


def _same(table: Table, wanted: int) -> bool:
    return len(table) == wanted and all(table[index][index] for index in range(wanted))


def _subset(table: Table, wanted: int) -> bool:
    """Return whether each call can be given a wanted one, each another."""
    return paired(table, wanted) == len(table)


def _superset(table: Table, wanted: int) -> bool:
    return paired(table, wanted) == wanted


def _unordered(table: Table, wanted: int) -> bool:
    return len(table) == wanted and _subset(table, wanted)


def paired(table: Table, wanted: int) -> int:
    """Return how many calls can be paired with wanted ones, one to one: augmenting paths (Kuhn 1955)."""
    holder: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in range(wanted):
            if table[row][column] and column not in tried:
                tried.add(column)
                if column not in holder or place(holder[column], tried):
                    holder[column] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(table)))


@dataclass(frozen=True)
class SequenceRule:
    """The meaning of a mode."""

    words: str
    """What is expected; `{}` stands for the wanted calls."""
    fits: Callable[[Table, int], bool]
    """Whether the calls are those wanted, of which there are so many."""
    could_fit: Callable[[Table, int], bool] | None = None
    """Whether calls that were not seen might still make it fit; None if no further call can make it fail."""


RULES: Mapping[SequenceMode, SequenceRule] = {
    "in_order": SequenceRule("{} in this order", _in_order),
    "strict": SequenceRule("just {} in this order", _same, could_fit=_within),
    "unordered": SequenceRule("just {} in any order", _unordered, could_fit=_subset),
    "subset": SequenceRule("nothing but {}", _subset, could_fit=_subset),
    "superset": SequenceRule("at least {} in any order", _superset),
}
