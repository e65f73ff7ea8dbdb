"""Signs that look like ASCII letters and digits, and text with these in their place."""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

_ALIKE = ("lI1", "O0")
"""Letters and digits that look like each other: a sign that looks like one looks like all."""
_CHOICES: tuple[Mapping[str, str], ...] = (
    {},
    dict.fromkeys("lI1", "l") | dict.fromkeys("O0", "O"),
    dict.fromkeys("lI1", "I") | dict.fromkeys("O0", "O"),
    dict.fromkeys("lI1", "1") | dict.fromkeys("O0", "0"),
)
"""The ways to read those."""


def readings(text: str) -> tuple[str, ...]:
    """Return the text with each look-alike as the letter or digit that it looks like; nothing if it has none.

    A sign that looks like several, such as those for `l`, `I` and `1`, is read as each of them in turn.
    """
    if text.isascii():
        return ()
    apart = unicodedata.normalize("NFD", text)
    found = dict.fromkeys(apart.translate(letters) for letters in _readings())
    return tuple(unicodedata.normalize("NFC", each) for each in found if each != apart)


def reading(text: str) -> str:
    """Return the text with each look-alike as the one letter or digit that it looks like most."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_readings()[0]))


class _Letters(dict[int, str | int]):
    """The letter that each character looks like, or itself.

    Characters are added as they come: `str.translate` is slow where one is missing.
    """

    def __missing__(self, character: int) -> int:
        self[character] = character
        return character


@lru_cache(maxsize=1)
def _readings() -> tuple[_Letters, ...]:
    """Return the table of look-alikes for each way to read those that look like several letters."""
    table: dict[int, str] = {}
    for line in (files(__package__) / "look_alikes.txt").read_text(encoding="utf-8").splitlines():
        letter, tab, signs = line.partition("\t")
        if tab and not line.startswith("#"):
            table |= dict.fromkeys(map(ord, signs), letter)
    return tuple(
        _Letters({sign: choice.get(letter, letter) for sign, letter in table.items()}) for choice in _CHOICES
    )
