"""What Markdown reports are made of: sections out of templates, and tables."""

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

from tabulate import tabulate

from ci_evals.reports import change, highlights, numbers, sanitize
from ci_evals.templates import render

REASON_LIMIT = 800
"""Characters of a reason in a summary; the test's own report has 4 KB of it."""
_LIMITS = SimpleNamespace(reason_limit=REASON_LIMIT, said_limit=600, reason_bytes=4_096, listed=20)
_BLANK_LINES = re.compile(r"\n{3,}")
"""What conditions in a template leave behind. Foreign text has none: it stands in quotes and in JSON."""
_EMPTY = {"note": {""}}
"""What counts as nothing in an optional column, where that is not a zero too: a note may be `0`."""
_TEXTS = frozenset({"result", "ended", "verdicts", "required", "seen", "holds", "note"})
"""Columns that hold no numbers."""
_UNBROKEN = frozenset({"95 %", "min to max"})
"""Columns whose cells a browser must not break: an interval on three lines is hard to read."""
_OPTIONAL = frozenset({"95 %", "p", "tests compared", "undecided", "unsound trials", "flaky", "note"})
"""Columns that are left out where there is nothing in them: tables are to be narrow."""


class Section(NamedTuple):
    """A part of a summary: its name, for a note where it is left out, and its text with a newline.

    Both are Markdown, whole by themselves.
    """

    name: str
    text: str


def section(template: str, **values: object) -> str:
    """The text that a template makes of `values`."""
    shared = {"n": numbers, "s": sanitize, "h": highlights, "c": change, "v": _LIMITS}
    text = render(f"reports/templates/{template}.md.j2", **shared, **values)
    return _BLANK_LINES.sub("\n\n", text).strip("\n") + "\n"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of sanitised cells: numbers stand to the right, the first column and texts to the left."""
    places = [
        place
        for place, header in enumerate(headers)
        if header not in _OPTIONAL or any(row[place] not in _EMPTY.get(header, {"", "0"}) for row in rows)
    ]
    headers = [headers[place] for place in places]
    cells = [
        [
            row[place].replace(" ", "\xa0") if header in _UNBROKEN else row[place]
            for place, header in zip(places, headers, strict=True)
        ]
        for row in rows
    ]
    # tabulate escapes nothing and, left to itself, reads numbers anew (007 becomes 7).
    align = ["left", *["left" if header in _TEXTS else "right" for header in headers[1:]]]
    return tabulate(
        cells, headers, tablefmt="github", disable_numparse=True, colalign=align if rows else None
    )
