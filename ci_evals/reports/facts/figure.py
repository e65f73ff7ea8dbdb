"""A chart as the page shows it: a drawing, what it says, and its numbers for those who cannot see it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One chart. Its texts are plain and not yet escaped; `svg` is markup, made by the drawing library."""

    id: str
    """The id of the element, `chart-scores`."""
    title: str
    says: str
    """A description of it, in one sentence with the numbers that matter."""
    svg: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The drawn numbers as a table."""
