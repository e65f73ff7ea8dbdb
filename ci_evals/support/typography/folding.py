"""Text folded for searches. docs/strict-checks.md says what that means.

`keep` names signs that the search is about: in a search for `**` they are no typography.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import pairwise

from ci_evals.support.text import bare
from ci_evals.support.typography import look_alikes, markdown_marks

SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u00b4\u02b9\u02bc\u055a\u2039\u203a\uff07\u02c8"
DOUBLE_QUOTES = (
    "\u201c\u201d\u201e\u201f\u2033\u02ba\u00ab\u00bb\u300c\u300d\u300e\u300f\uff02\u301d\u301e\u301f"
)
DASHES = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u058a\u05be\u1806"
    "\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63\uff0d"
)
SIGNS = (
    dict.fromkeys(SINGLE_QUOTES, "'")
    | dict.fromkeys(DOUBLE_QUOTES, '"')
    | dict.fromkeys(DASHES, "-")
    | dict.fromkeys("\u2044\u2215", "/")
)
"""Quotation marks, dashes and slashes, as those of ASCII."""
_SIGN = re.compile(f"[{''.join(SIGNS)}]")

_PLAIN = re.compile(r"[!-%'-)+-;=?-\[\]^a-z{-} ]*")
"""ASCII without what is folded; two blanks in a row are looked for separately."""
_ENTITY = re.compile(r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
_LETTERLESS = re.compile("[\u2800\u3164\uffa0\u115f\u1160]")
"""Letters and signs that are drawn as nothing, as wide as a blank or not at all."""
_FILLERS = re.compile("[\u3164\uffa0\u115f\u1160]")
_THIN = re.compile("[\u2006\u2009\u200a\u202f\u205f]")
"""Blanks that are hard to see within a word."""
_FORMAT = re.compile(
    "[\u070f\u180b-\u180f\u2060-\u206f\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
_ORDINARY = re.compile("[\t\n -~\xa0-\xac\xae-\u02ff\u0370-\u052f\u2010-\u2027\u20a0-\u20c0]*")
"""Text in which everything is seen."""
_KEYCAP = "\u20e3"
_BLANKS = re.compile(r" [\s\u2800]+|[^\S ][\s\u2800]*|\u2800[\s\u2800]*")
"""Blanks, but for a single ordinary one."""
INDICES = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089\u2460-\u249b\u24ea"
_INDEX = re.compile(f"(?<=[0-9])([{INDICES}]+)|([{INDICES}]+)(?=[0-9])")
"""Digits above, below or in circles next to others: an exponent or a note, not one more digit."""
_FRACTION = re.compile("(?<=[0-9])(?=[\u00bc-\u00be\u2150-\u215f\u2189])")
_MARKS = "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
_STACKED = re.compile(rf"([^\W_]){_MARKS}+")
_SUSPECT = re.compile(
    rf"[<&\u2800\u3164\uffa0\u115f\u1160\u2006\u2009\u200a\u202f\u205f\u202e\U000e0020-\U000e007e]"
    rf"|{_MARKS}|\]\(|^[ \t]*[>#]|[{INDICES}\u00bc-\u00be\u2150-\u215f\u2189]",
    re.MULTILINE,
)
"""What a text has that a reader may see otherwise than its folded form, apart from look-alikes."""
_OVERRIDE = re.compile("\u202e([^\u202c\u2028\u2029\n]*)")
_TAGS = re.compile("[\U000e0020-\U000e007e]")
_TAG_OFFSET = 0xE0000
_TIMES_ENCODED = 3
"""Times that entities are decoded: `&amp;#104;` is one within one."""


def forms(text: str, keep: str = "") -> tuple[str, ...]:
    """Return a text in the forms that positive and negative checks search.

    There is a second one if it has fillers, which some fonts draw as a blank and others not at all.
    """
    without = text if text.isascii() else _FILLERS.sub("", text)
    return tuple(dict.fromkeys((folded(text, keep), folded(without, keep))))


@lru_cache(maxsize=256)
def folded(text: str, keep: str = "") -> str:
    """Return a text with typography folded, and fillers as blanks."""
    if _is_plain(text):
        return text
    text = _letterless_as(" ", _decoded(text, keep, 1))
    text = markdown_marks.removed(seen(text), keep)
    return _spaced(_composed(_signed(text), apart=True))


def disguises(text: str, keep: str = "") -> Iterator[tuple[str, bool]]:
    """Return what else a reader may see in a text; with true for readings of its look-alikes."""
    return iter(_disguises(text, keep))


def kept_by(wanted: str) -> str:
    """Return the signs of Markdown and HTML in what is searched for, which are then no typography."""
    return "".join(sign for sign in "*_~`\\<>[" if sign in wanted) + ("&" if _ENTITY.search(wanted) else "")


def seen(text: str) -> str:
    """Return the text without signs that nobody sees."""
    if _ORDINARY.fullmatch(text):
        return text
    text = bare(text)
    return text if text.isascii() else _FORMAT.sub("", text).replace(_KEYCAP, "")


@lru_cache(maxsize=64)
def _disguises(text: str, keep: str) -> tuple[tuple[str, bool], ...]:
    if _is_plain(text):
        return ()
    plainly = folded(text, keep)
    suspect = _SUSPECT.search(text) or markdown_marks.MARK.search(plainly)
    forms = dict.fromkeys(_shown(text, keep) if suspect else (plainly,), False)
    for form in tuple(forms):
        for reading in look_alikes.readings(form):
            forms.setdefault(reading, True)
    forms.pop(plainly, None)
    return tuple(forms.items())


def _shown(text: str, keep: str) -> Iterator[str]:
    """Yield the ways in which a text may be shown, without typography."""
    decoded = _decoded(text, keep, _TIMES_ENCODED)
    yield from _rendered(decoded, keep)
    if "\u202e" in decoded:
        yield from _rendered(_OVERRIDE.sub(lambda match: match[1][::-1], decoded), keep)
    if _TAGS.search(decoded):
        yield from _rendered(_TAGS.sub(lambda match: chr(ord(match[0]) - _TAG_OFFSET), decoded), keep)


def _rendered(text: str, keep: str) -> Iterator[str]:
    """Return the text as a browser may show it, with thin blanks as such and as nothing."""
    text = markdown_marks.rendered(text, keep)
    yield _finished(_letterless_as(" ", text), keep)
    if _LETTERLESS.search(text) or _THIN.search(text):
        yield _finished(_THIN.sub("", _letterless_as("", text)), keep)


def _finished(text: str, keep: str) -> str:
    text = markdown_marks.removed(seen(text), keep, loose=True)
    text = _composed(_signed(text), apart=False)
    return _spaced(text if text.isascii() else _STACKED.sub(_unstacked, text))


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and "  " not in text and "](" not in text


def _decoded(text: str, keep: str, times: int) -> str:
    if "&" not in text:
        return text
    for _ in range(times):
        text = _ENTITY.sub(partial(_character, keep), text)
    return text


def _character(keep: str, match: re.Match[str]) -> str:
    """Return what an entity stands for, itself if that is what is searched for."""
    character = html.unescape(match[0])
    return match[0] if character in keep else character


def _letterless_as(blank: str, text: str) -> str:
    return text if text.isascii() else _LETTERLESS.sub(blank, text)


def _composed(text: str, *, apart: bool) -> str:
    """Return the NFKC form; with `apart`, indices and fractions stay apart from the digits next to them."""
    if text.isascii():
        return text
    if unicodedata.is_normalized("NFKC", text):
        return text
    if not apart:
        return _signed(unicodedata.normalize("NFKC", text))
    text = _FRACTION.sub(" ", text)
    ends = [0, *(end for match in _INDEX.finditer(text) for end in match.span()), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends)]
    parts[::2] = [_signed(unicodedata.normalize("NFKC", part)) for part in parts[::2]]
    return "".join(parts)


def _signed(text: str) -> str:
    return text if text.isascii() else _SIGN.sub(lambda match: SIGNS[match[0]], text)


def _unstacked(match: re.Match[str]) -> str:
    """Return an ASCII letter or digit without marks that make no letter with it."""
    base = unicodedata.normalize("NFD", match[1])[0]
    return base if base.isascii() else match[0]


def _spaced(text: str) -> str:
    return _BLANKS.sub(" ", text)
