"""Whether words that a judge quotes stand where it says they do."""

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ci_evals.support.text import bare

LEAST = 3
"""Letters and digits that each part of a quote must have: fewer stand in any text. A sign that takes two
columns, as those of Chinese do, says as much as two letters."""

_LEFT_OUT = re.compile(r"[\[(]?\s*\.{3,}\s*[\])]?")
_SAME = str.maketrans(dict.fromkeys('‘’‚‛′`´“”„‟″«»‹›「」『』"', "'") | dict.fromkeys("‐‑‒–—―−﹘﹣", "-"))
_EMPHASIS = re.compile(r"[*_~`]+")
_DASH = re.compile(r"\s*-+\s*")
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_ROUND = " '.,;:"


def occurs(quote: str, texts: Sequence[str]) -> bool:
    """Whether the quote stands in one of these texts, in this order; `...` may leave out what is between.

    White space, case, the form of quotation marks and dashes, and emphasis of Markdown are all one. A quote
    of which a part has too few letters to mean anything stands nowhere, unless it is all that was said.
    """
    return any(_occurs_in(form, text) for form in _forms(quote) for text in texts)


def is_empty(quote: str) -> bool:
    """Whether nothing is quoted."""
    return not folded(quote)


@lru_cache(maxsize=256)
def folded(text: str) -> str:
    """The text with all that is one made the same."""
    # Emphasis goes first: a grave accent is that, and no quotation mark.
    text = _EMPHASIS.sub("", unicodedata.normalize("NFKC", bare(text)))
    return " ".join(_DASH.sub("-", text.translate(_SAME)).casefold().split())


def _forms(quote: str) -> tuple[str, ...]:
    """The quote, and what it is where a judge has copied the escapes of the JSON that it was shown."""
    if not _ESCAPE.search(quote):
        return (quote,)
    return quote, _ESCAPE.sub(lambda found: json.loads(f'"{found[0]}"'), quote)


def _occurs_in(quote: str, text: str) -> bool:
    here, whole = folded(quote).strip(_ROUND), folded(text)
    if here and here == whole.strip(_ROUND):
        return True
    parts = [part.strip(_ROUND) for part in _LEFT_OUT.split(folded(quote))]
    parts = [part for part in parts if part]
    if not parts or not all(map(_says_enough, parts)):
        return False
    place = 0
    for part in parts:
        found = whole.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


def _says_enough(part: str) -> bool:
    """Whether a part has as many letters as it must."""
    weight = 0
    for char in part:  # not to its end: quotes are as long as replies
        if char.isalnum():
            weight += 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if weight >= LEAST:
                return True
    return False
