"""Quotes of a judge: whether its words occur in the text that it names."""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ci_evals.support.typography import folding

MINIMUM = 3
"""Minimum letters and digits in each part of a quote: fewer occur in any text. A character that takes two
columns, such as a Chinese one, counts as two."""

_OMISSION = re.compile(r"[\[(]?\s*\.{3,}\s*[\])]?")
_EMPHASIS = re.compile(r"[*_~`]+")
_DASH = re.compile(r"\s*-+\s*")
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_AROUND = " '.,;:"


def occurs(quote: str, texts: Sequence[str]) -> bool:
    """Return whether the quote occurs in one of these texts; `...` in it may leave out what is between.

    White space, case, the form of quotation marks and dashes, and emphasis of Markdown do not matter. A quote
    with a part of too few letters to mean anything occurs nowhere, unless it is the whole text.
    """
    return any(_occurs_in(form, text) for form in _forms(quote) for text in texts)


def is_empty(quote: str) -> bool:
    """Return whether nothing is quoted."""
    return not folded(quote)


def is_too_short(quote: str) -> bool:
    """Return whether a part of the quote has too few letters to mean anything."""
    parts = [part for part in (part.strip(_AROUND) for part in _OMISSION.split(folded(quote))) if part]
    return not all(map(_is_long_enough, parts))


@lru_cache(maxsize=256)
def folded(text: str) -> str:
    """Return the text without the differences that do not matter."""
    text = _EMPHASIS.sub("", folding.folded(text)).replace('"', "'")
    return " ".join(_DASH.sub("-", text).casefold().split())


def _forms(quote: str) -> tuple[str, ...]:
    """Return the quote, also without the escapes that a judge may copy from the JSON in its prompt."""
    if not _ESCAPE.search(quote):
        return (quote,)
    return quote, _ESCAPE.sub(lambda match: json.loads(f'"{match[0]}"'), quote)


def _occurs_in(quote: str, text: str) -> bool:
    quote, text = folded(quote), folded(text)
    if (bare_quote := quote.strip(_AROUND)) and bare_quote == text.strip(_AROUND):
        return True
    parts = [part for part in (part.strip(_AROUND) for part in _OMISSION.split(quote)) if part]
    if not parts or not all(map(_is_long_enough, parts)):
        return False
    end = 0
    for part in parts:
        start = text.find(part, end)
        if start < 0:
            return False
        end = start + len(part)
    return True


def _is_long_enough(part: str) -> bool:
    weight = 0
    for char in part:  # not to its end: quotes are as long as replies
        if char.isalnum():
            weight += 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if weight >= MINIMUM:
                return True
    return False


_SENTENCE_END = re.compile(r"(?:(?<!\bno)(?<!\bnr)\.(?! [#(]?\d)|[!?])(?= )|[。！？]")
"""No full stop after `No.`, and none before a number: both may be in the middle of a sentence."""


def sentences_with(quote: str, text: str) -> list[str]:
    """Return the sentences of a text that the quote stands in, folded: an item for each place.

    The quote must stand there in one piece: other than in `occurs` nothing may be left out. A quote of too
    few letters to mean anything stands nowhere, unless it is the whole text.
    """
    whole = folded(text)
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(whole)), len(whole)]
    found = []
    for form in _forms(quote):
        part = folded(form).strip(_AROUND)
        if not part or not (_is_long_enough(part) or part == whole.strip(_AROUND)):
            continue
        start = whole.find(part)
        while start >= 0:
            end = start + len(part)
            first = max(place for place in ends if place <= start)
            last = min(place for place in ends if place >= end)
            found.append(whole[first:last])
            start = whole.find(part, end)
    return found
