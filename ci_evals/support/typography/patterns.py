"""Regular expressions that are to be found in folded text."""

import re
from collections.abc import Callable
from functools import lru_cache

import regex

from ci_evals.support.typography import folding, look_alikes

_TOKEN = re.compile(
    r"""
    (?P<code>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))
    | (?P<line>\\[nrt])
    | (?P<named>\\[pPN]\{[^}]*\})
    | (?P<escape>\\.)
    | (?P<set>\[\^?\]?(?:\\.|\[:[^\]]*:\]|[^\]\\])*\])
    | (?P<group>\(\?[^)]*?[:>=!)])
    | (?P<literal>[^\\\[]\u0300-\u036f*)
    """.replace("\\u0300-\\u036f*", "[\u0300-\u036f]*"),
    re.VERBOSE | re.DOTALL,
)
_VERBOSE = re.compile(r"\(\?[a-zA-Z]*x")
_BLANK = " "
_CLASS = re.compile(r"\\(?:[a-zA-Z0-9]|(.))")
"""An escape within a set: a class or code, else a sign."""


@lru_cache(maxsize=256)
def folded(pattern: str) -> str:
    """Return a pattern with its letters and signs as folded text has them; itself if that is no pattern."""
    return _usable(_each_literal(pattern, folding.folded), pattern)


@lru_cache(maxsize=256)
def reading(pattern: str) -> str:
    """Return a folded pattern with each look-alike as the letter or digit that it looks like."""
    return _usable(_each_literal(folded(pattern), look_alikes.reading), pattern)


@lru_cache(maxsize=256)
def literals(pattern: str) -> str:
    """Return the characters that a pattern names, those of its sets included: what it is about."""
    found = []
    for match in _TOKEN.finditer(pattern):
        text = match[0]
        if match["literal"] and text[0] not in "*+?.^$|(){}":
            found.append(text)
        elif match["escape"] and not text[1].isalnum():
            found.append(text[1])
        elif match["code"]:
            found.append(_decoded(text))
        elif match["set"] and text[1] != "^":
            found.append(_CLASS.sub(r"\1", text[1:-1]))
    return "".join(found)


def _each_literal(pattern: str, change: Callable[[str], str]) -> str:
    """Return the pattern with each literal changed that is outside of a set."""
    if _VERBOSE.search(pattern):
        return pattern
    parts: list[str] = []
    for match in _TOKEN.finditer(pattern):
        part = match[0]
        if match["line"]:
            part = change(_LINES[part])
        elif match["code"]:
            part = change(_decoded(part))
        elif match["literal"] and not (part.isascii() or _is_index(part, parts)):
            part = change(part)
        elif match["set"] and not part.isascii():
            part = _with_folded(part, change)
        if part == " " and parts and parts[-1] == _BLANK:
            continue
        parts.append(_written(part, match))
    return "".join(parts)


def _is_index(literal: str, before: list[str]) -> bool:
    """Return whether a literal is an exponent or the mark of a note, which folded text has as written."""
    return literal in folding.INDICES and bool(before) and before[-1].isdigit()


def _with_folded(characters: str, change: Callable[[str], str]) -> str:
    """Return a set of characters with the folded ones too."""
    added = {change(character) for character in characters if not character.isascii()} - set(characters)
    return characters[:-1] + "".join(regex.escape(one) for one in sorted(added) if len(one) == 1) + "]"


_LINES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}


def _written(part: str, match: re.Match[str]) -> str:
    """Return a changed literal as a part of a pattern."""
    if part == " ":
        return _BLANK
    if match["set"] or (part == match[0] and not match["code"]):
        return part
    if len(part) == 1:
        return regex.escape(part)
    return f"(?:{regex.escape(part)})"


def _decoded(code: str) -> str:
    return chr(min(int(code.lstrip("\\xuU"), 16), 0x10FFFF))


def refers_to_absence(pattern: str) -> bool:
    """Return whether a pattern can match because something is not there."""
    return "(?!" in pattern or "(?<!" in pattern


def _usable(changed: str, pattern: str) -> str:
    try:
        regex.compile(changed)
    except regex.error:
        return pattern
    return changed
