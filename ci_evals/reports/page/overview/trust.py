"""What the page tells of judge and simulated user: how far to trust them, in sentences, charts and tables."""

from dataclasses import dataclass

from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.facts import reliability
from ci_evals.reports.facts.parts import PlainTable
from ci_evals.reports.page.overview.table import Table, table

_TEXT = 1_000
"""Characters of a remark."""


@dataclass(frozen=True)
class Trust:
    """All of it, in plain text."""

    remarks: tuple[tuple[str, str], ...]
    """Of each thing its topic and what is known of it."""
    tables: tuple[Table, ...]
    """Those that are told whole."""
    long: tuple[Table, ...]
    """Those with a row for each criterion or test."""


def of(results: Results) -> Trust | None:
    """None where nothing is known of them."""
    found = reliability.remarks(results)
    if not found:
        return None
    grids = reliability.tables(results)
    return Trust(
        remarks=tuple((remark.topic, sanitize.one_line(remark.text, _TEXT)) for remark in found),
        tables=tuple(_table(grid) for grid in grids if not grid.long),
        long=tuple(_table(grid) for grid in grids if grid.long),
    )


def _table(grid: PlainTable) -> Table:
    return table(
        grid.title,
        grid.headers,
        grid.rows,
        texts=grid.texts,
        tones=["bad" if bad else "" for bad in grid.bad or [False] * len(grid.rows)],
    )
