"""A report within a budget of bytes: which of its sections stay, and a line that names what did not."""

from collections.abc import Iterable, Sequence

from ci_evals.reports import numbers
from ci_evals.reports.markdown.sections import Rank, Section

_NAMED = 5
"""How many of the sections that are left out the note names."""


def whole(sections: Iterable[Section]) -> str:
    """All sections, one after another."""
    return "\n".join(section.text for section in sections)


def fitted(sections: Sequence[Section], budget: int, elsewhere: str) -> str:
    """As much of the sections, in their order, as fits into `budget` bytes of UTF-8.

    Those of the first ranks have the room first. A list is shortened; what has no room even so leaves it to
    smaller sections, but for the lists of all tests, which stand only where all that fails does. Where
    anything is missing, a last line names it, and `elsewhere`, a sentence of Markdown, says where it is.
    Where not even that line fits, the text is empty.
    """
    text = whole(sections)
    if len(text.encode()) <= budget:
        return text
    room = budget - _longest_note(sections, elsewhere)
    if room < 0:
        return ""
    kept: dict[int, str] = {}
    left_out: dict[int, str] = {}
    for place, section in sorted(enumerate(sections), key=lambda item: item[1].rank):
        hidden = section.rank is Rank.LISTS and any(sections[other].rank <= Rank.REST for other in left_out)
        found = None if hidden else section.within(room - 1)
        if found is not None:
            kept[place] = found
            room -= len(found.encode()) + 1
        if found != section.text:
            left_out[place] = section.name if found is None else f"part of {section.name}"
    shown = [kept[place] for place in sorted(kept)]
    return "\n".join([*shown, _note([left_out[place] for place in sorted(left_out)], elsewhere)])


def _note(names: Sequence[str], elsewhere: str) -> str:
    more = len(names) - _NAMED
    named = "; ".join(names[:_NAMED]) + (f"; and {numbers.count(more, 'more part')}" if more > 0 else "")
    return f"<sub>Left out here for want of room: {named}. {elsewhere}</sub>\n"


def _longest_note(sections: Sequence[Section], elsewhere: str) -> int:
    """Bytes that suffice for the note whatever is left out."""
    longest = sorted(
        (f"part of {section.name}" for section in sections), key=lambda name: -len(name.encode())
    )
    more = [""] * max(0, len(sections) - _NAMED)
    return len(_note([*longest[:_NAMED], *more], elsewhere).encode())
