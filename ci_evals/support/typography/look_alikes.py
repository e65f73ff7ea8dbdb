"""Signs that look like ASCII letters and digits, and text with these in their place."""

import unicodedata
from functools import lru_cache
from importlib.resources import files

_ALIKE = ("lI1", "O0")
"""Letters and digits that look like each other: a sign that looks like one looks like all."""


def readings(text: str) -> tuple[str, ...]:
    """Return the text with each look-alike as the letter or digit that it looks like; nothing if it has none.

    A sign that looks like several, such as those for `l`, `I` and `1`, is read as each of them in turn.
    """
    if text.isascii():
        return ()
    apart = unicodedata.normalize("NFD", text)
    found = {apart.translate(table) for table in _tables()}
    return tuple(sorted(unicodedata.normalize("NFC", reading) for reading in found - {apart}))


def reading(text: str) -> str:
    """Return the text with each look-alike as the one letter or digit that it looks like most."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_tables()[0]))


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, str], ...]:
    """Return the table of look-alikes, and the same with each choice among letters that look alike."""
    table: dict[int, str] = {}
    for line in (files(__package__) / "look_alikes.txt").read_text(encoding="utf-8").splitlines():
        letter, tab, signs = line.partition("\t")
        if tab and not line.startswith("#"):
            table |= dict.fromkeys(map(ord, signs), letter)
    choices = [dict(zip(_ALIKE, pair, strict=True)) for pair in ("lO", "IO", "10")]
    return table, *({sign: _chosen(letter, choice) for sign, letter in table.items()} for choice in choices)


def _chosen(letter: str, choice: dict[str, str]) -> str:
    return next((choice[alike] for alike in _ALIKE if letter in alike), letter)
