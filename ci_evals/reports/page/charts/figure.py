"""A chart as the page shows it: a drawing, what it says, and its numbers for those who cannot see it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One chart. Its texts are plain, neither sanitized nor escaped."""

    id: str
    """The id of the element, `chart-scores`."""
    title: str
    says: str
    """A description of it, in one sentence with the numbers that matter."""
    reading: str
    """How to read it: what the marks mean."""
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    """The drawn numbers as a table."""
    svg: str = ""
    """Markup, made by the drawing library."""
