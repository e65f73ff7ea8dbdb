"""Sections of Markdown reports: lists that can be shortened, tables, and the bytes that they share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import SimpleNamespace

from tabulate import tabulate

from ci_evals.domain import numbers
from ci_evals.reports import sanitize
from ci_evals.reports.story import certainty, outcome_labels, phrases, test_words
from ci_evals.reports.story.table import Heading, Row, Table
from ci_evals.support.templates import render

REASON_LIMIT = 800
"""Characters of a reason in a summary."""
REASON_BYTES = 4_096
"""Bytes of a reason in a test's own report."""
OPEN = 5
"""Items of a list that are shown at once; the rest is folded."""
_NAMED = 5
"""Sections that the note on what is left out names."""
_LIMITS = SimpleNamespace(reason_limit=REASON_LIMIT, said_limit=300, listed=OPEN, named=80)
_WORDS = SimpleNamespace(
    COMMIT=phrases.COMMIT,
    NO_REASON=phrases.NO_REASON,
    OUTCOMES=outcome_labels.OUTCOMES,
    set_aside_facts=test_words.set_aside_facts,
    spaced=phrases.spaced,
    test_result=test_words.test_result,
)
"""The words that templates use."""
_BLANK_LINES = re.compile(r"\n\n\n+")  # `\n{3,}` begins with no text to look for, and takes ten times as long
"""Blank lines that conditions in a template leave behind. Foreign text, in quotes and code, has none."""
_NUMBER = re.compile(r"[+−±]?\d[\d.,]*( (%|of|to|s|ms|m|points) ?[+−±]?[\d.,]*)?")
"""A number with its unit, in which there is nothing to escape."""
_PADDING = re.compile(r" {2,}")
"""Padding that only aligns a table's source: cells have no such run of spaces."""
_DASHES = re.compile(r"-{3,}")


class Rank(IntEnum):
    """The importance of a section. If there is little room, the lowest numbers have it first."""

    ALWAYS = 0
    """The verdict, the scores, the baseline, the run's facts: short whatever the results are."""
    FAILING = 1
    """The first of what fails: checks, newly failing tests, failed tests."""
    TELLING = 2
    """Other facts for a reviewer: suspects, errors, flaky tests, fixed tests, cost."""
    REST = 3
    """The rest of the tests that fail."""
    DETAILS = 4
    LISTS = 5
    """All tests. They never take the place of one that failed."""


@dataclass(frozen=True)
class SummaryContext:
    """Facts about the run of a summary that do not come from its results. Addresses are trusted."""

    run_url: str | None = None
    """The run that made the results."""
    run_page: str = "job summary of the run"
    """What is there."""
    source_url: str | None = None
    """The folder of the repository at the tested commit, without a slash at its end."""
    commit: str | None = None
    """The commit that was tested: it replaces what the results claim."""
    foreign: bool = False
    """True if a fork's own workflow run wrote the results, so that they may say anything."""


NO_CONTEXT = SummaryContext()


@dataclass(frozen=True)
class Section:
    """A part of a report. Its name, for a note where it is left out, and its texts are Markdown.

    What stands between `head` and `tail` is a list that may be shortened, whole by itself with any number of
    its rows. None of the texts ends in a newline.
    """

    name: str
    head: str
    rank: Rank = Rank.ALWAYS
    rows: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    """The rows in fewer words, if not all of them have room."""
    titles: str = ""
    """A table's line of headers and the one below it."""
    tail: str = ""
    noun: str = "test"
    """The noun for a row."""
    unlisted: int = 0
    """Further rows that are only counted."""
    opens: bool = False
    """True if it opens a fold, which the next `_CLOSE` ends."""

    @property
    def says_something(self) -> bool:
        """True if there is any text in it."""
        return bool(self.head.strip() or self.rows or self.unlisted or self.tail.strip())

    @property
    def text(self) -> str:
        """All of it, ending in a newline."""
        return self._with(self.rows, len(self.rows) + self.unlisted)

    def within(self, room: int) -> str | None:
        """The section cut to `room` bytes of UTF-8; None if not even one row fits."""
        if len(self.text.encode()) <= room:
            return self.text
        rows = self.brief or self.rows
        many = len(rows) + self.unlisted
        room -= len(self._with((), many).encode())
        taken = 0
        while taken < len(rows) and (room := room - len(rows[taken].encode()) - 1) >= 0:
            taken += 1
        return self._with(rows[:taken], many) if taken else None

    def _with(self, rows: Sequence[str], many: int) -> str:
        more = ""
        if len(rows) < many:
            first = next(iter(self.brief or self.rows), "")
            mark = "- " if first.startswith("- ") else "\n"
            more = f"{mark}and {numbers.count(many - len(rows), f'more {self.noun}')}"
        body = "\n".join(part for part in (self.titles, *rows, more) if part)
        text = "\n\n".join(part for part in (self.head, body, self.tail) if part)
        return _BLANK_LINES.sub("\n\n", text).strip("\n") + "\n"


def section(template: str, **values: object) -> str:
    """The text that a template makes of `values`."""
    shared = {
        "n": numbers,
        "s": sanitize,
        "w": _WORDS,
        "t": certainty,
        "v": _LIMITS,
    }
    text = render(f"reports/templates/{template}.md.j2", **shared, **values)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def listing(whole: Section, shown: int = OPEN, rest: Rank = Rank.DETAILS) -> tuple[Section, ...]:
    """A list as its first rows, and the others folded: those are of the rank `rest`, and left out alone."""
    if len(whole.rows) <= shown + 1:
        return (whole,)
    first = replace(whole, rows=whole.rows[:shown], brief=whole.brief[:shown], unlisted=0)
    others = replace(
        whole,
        name=f"the rest of {whole.name}",
        head="",
        rank=rest,
        rows=whole.rows[shown:],
        brief=whole.brief[shown:],
    )
    more = len(others.rows) + whole.unlisted
    return first, folded(numbers.count(more, f"more {whole.noun}"), others)


def folded(title: str, inner: Section) -> Section:
    """The section behind a title, sanitized for HTML, that a reader opens."""
    head = f"<details>\n<summary>{title}</summary>\n\n{inner.head}".rstrip("\n")
    return replace(inner, head=head, tail=f"{inner.tail}\n\n</details>".lstrip("\n"))


_CLOSE = Section("the end of a fold", "</details>")


def group(name: str, title: str, inner: Sequence[Section]) -> tuple[Section, ...]:
    """Sections behind one title, sanitized for HTML, that a reader opens; none if they say nothing."""
    shown = [part for part in inner if part.says_something]
    if not shown:
        return ()
    return Section(name, f"<details>\n<summary>{title}</summary>", opens=True), *shown, _CLOSE


def tabled(inner: Section, table: Table) -> Section:
    """The section with a table, whose rows are those of the list."""
    headers, line, *rows = table_text(table).split("\n")
    titles = f"{_PADDING.sub(' ', headers)}\n{_DASHES.sub('---', line)}"
    tail = "\n\n".join(filter(None, [inner.tail, sanitize.inline(table.remark, 900)]))
    return replace(inner, titles=titles, rows=tuple(_PADDING.sub(" ", row) for row in rows), tail=tail)


def table_text(table: Table) -> str:
    """A table: numbers stand to the right, the first column and words to the left."""
    cells = [[_cell(row, at, heading) for at, heading in enumerate(table.headings)] for row in table.rows]
    titles = [sanitize.cell(heading.title, heading.limit) for heading in table.headings]
    align = ["left" if at == 0 or one.words else "right" for at, one in enumerate(table.headings)]
    # tabulate escapes nothing and, left to itself, rewrites numbers (007 becomes 7).
    return tabulate(cells, titles, tablefmt="pipe", disable_numparse=True, colalign=align if cells else None)


def _cell(row: Row, at: int, heading: Heading) -> str:
    text = row.cells[at]
    if not _NUMBER.fullmatch(text):
        text = sanitize.cell(text, heading.limit)
    if heading.unbroken:
        text = text.replace(" ", "\xa0")
    if heading.marked and row.mark:
        text = f"{row.mark.sign} {text}".rstrip()
    if at == 0 and row.note:
        text = f"{text} ({sanitize.cell(row.note)})"
    return text


def joined(sections: Iterable[Section]) -> str:
    """All sections, one after another."""
    return "\n".join(section.text for section in sections)


def truncated(sections: Sequence[Section], budget: int, elsewhere: str) -> str:
    """The sections, in their order, cut to `budget` bytes of UTF-8.

    Those of the first ranks have the room first. A list is shortened; what has no room even so leaves it to
    smaller sections, but for the lists of all tests, which stand only where all that fails does. Where
    anything is missing, a last line names it, and `elsewhere`, a sentence of Markdown, says where it is.
    Where not even that line fits, the text is empty.
    """
    text = joined(sections)
    if len(text.encode()) <= budget:
        return text
    room = budget - _longest_note(sections, elsewhere)
    if room < 0:
        return ""
    kept: dict[int, str] = {}
    left_out: dict[int, str] = {}
    for index, part in sorted(enumerate(sections), key=lambda item: item[1].rank):
        if part is _CLOSE:
            continue  # its fold has paid for it
        closing = len(_CLOSE.text) + 1 if part.opens else 0
        hidden = part.rank is Rank.LISTS and any(sections[other].rank <= Rank.REST for other in left_out)
        text_within = None if hidden else part.within(room - 1 - closing)
        if text_within is not None:
            kept[index] = text_within
            room -= len(text_within.encode()) + 1 + closing
        if text_within != part.text:
            left_out[index] = part.name if text_within is None else f"part of {part.name}"
    return "\n".join(
        [*_shown(sections, kept), _note([left_out[index] for index in sorted(left_out)], elsewhere)]
    )


def _shown(sections: Sequence[Section], kept: Mapping[int, str]) -> Iterator[str]:
    """The texts that are kept, without those in a fold that is not, and without folds in which nothing is."""
    hidden, opening = False, ""
    for index, part in enumerate(sections):
        text = kept.get(index, "")
        if part.opens:
            hidden, opening = not text, text
        elif part is _CLOSE:
            if not hidden and not opening:
                yield part.text
            hidden, opening = False, ""
        elif text and not hidden:
            if opening:
                yield opening
            opening = ""
            yield text


def _note(names: Sequence[str], elsewhere: str) -> str:
    named = numbers.listed(names, _NAMED, "part")
    return f"<sub>Left out here for lack of space: {named}. {elsewhere}</sub>\n"


def _longest_note(sections: Sequence[Section], elsewhere: str) -> int:
    """Bytes that suffice for the note whatever is left out."""
    longest = sorted(
        (f"part of {section.name}" for section in sections), key=lambda name: -len(name.encode())
    )
    more = [""] * max(0, len(sections) - _NAMED)
    return len(_note([*longest[:_NAMED], *more], elsewhere).encode())
