"""Answers in the form in which they are compared: texts by mode, and numbers."""

import math
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from string import punctuation
from typing import Literal

import regex

Mode = Literal["bidirectional", "gaia", "exact", "contains", "fuzzy", "numeric", "semantic"]
"""The ways to compare an answer with the expected ones: see docs/answers.md."""

MOST_DIGITS = 100
"""A longer row of digits is not a number that anybody answers with."""
MOST_SEARCHED = 50_000
"""Characters from a text's end in which its last number is looked for: more would hold up the program."""

_SPACES = "'\u2019\u00a0\u2009\u202f"
"""Between thousands, as in 1'234 or 1 234: apostrophes, and spaces that do not break a line."""

_NUMBER = regex.compile(
    r"(?:(?<![\p{L}\p{M}\p{N}_)\]%])(?P<sign>[-+\u2212])\p{Sc}?)?"  # in 2020-2024 the hyphen is no sign
    rf"(?<![\p{{L}}\p{{M}}_][-\u2010\u2011]?)(?<!\d[.,{_SPACES}]?)"  # H2O, GPT-4, v1.2.3
    rf"(?P<digits>\d+(?:[.,{_SPACES}]\d+)*|(?<![.,])\.\d+)"
    r"(?:[eE](?P<power>[-+\u2212]?\d{1,3})(?![\p{L}\p{N}_]))?"
    r"(?:\s?[\u00d7x*]\s?10\^(?P<ten>[-+\u2212]?\d{1,3})(?!\d))?"
)
_AROUND = regex.compile(r"^[\s\p{Sc}%]+|[\s\p{Sc}%]+$")
_NO_WORD = regex.compile(r"[^\w\s]")
_LIST = regex.compile("[,;]")
_GROUPS = regex.compile(r"[1-9]\d{0,2}(?:\D\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}")
_UNPUNCTUATED = str.maketrans("", "", punctuation)


@dataclass(frozen=True)
class Number:
    """A number as it was written, and what it is."""

    text: str
    value: Fraction


def folded(text: str) -> str:
    """`text` without differences of case and white space."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def words(text: str) -> str:
    """`text` in the form of `bidirectional`: lower case, single spaces, then no punctuation."""
    lower = unicodedata.normalize("NFC", text).lower()
    return _NO_WORD.sub("", " ".join(lower.split()))


def squeezed(text: str, *, punctuated: bool = False) -> str:
    """`text` in the form of `gaia`: lower case, no white space, no ASCII punctuation unless it is to stay."""
    lower = "".join(unicodedata.normalize("NFC", text).split()).lower()
    return lower if punctuated else lower.translate(_UNPUNCTUATED)


def as_float(text: str) -> float | None:
    """The number that `text` is to `gaia`, or None. Infinity and NaN are words here."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def listed(text: str) -> list[str]:
    """The items of a list as `gaia` has it, split at commas and semicolons."""
    return _LIST.split(text)


def whole_number(text: str) -> Number | None:
    """The number that the whole of `text` is, a currency or percent sign beside it, or None."""
    text = text.strip()
    match = _NUMBER.fullmatch(_AROUND.sub("", text)) if len(text) <= 4 * MOST_DIGITS else None
    value = _value(match) if match else None
    return None if match is None or value is None else Number(match[0], value)


def last_number(text: str) -> Number | None:
    """The last number in `text`, or None; see `MOST_SEARCHED`."""
    last = None
    for match in _NUMBER.finditer(text, max(0, len(text) - MOST_SEARCHED)):
        value = _value(match)
        if value is not None:
            last = Number(match[0], value)
        elif "," in match["digits"]:  # 1,2,3 is a list
            item = match["digits"].rpartition(",")[2]
            read = _read(item)
            last = last if read is None else Number(item, Fraction(read))
    return last


def comparable(text: str, mode: Mode) -> bool:
    """Return whether anything is left of an expected answer to be compared."""
    match mode:
        case "numeric":
            return whole_number(text) is not None
        case "bidirectional":
            return bool(words(text).strip())
        case "gaia" if as_float(text) is None and len(listed(text)) > 1:
            return any(squeezed(item, punctuated=True) for item in listed(text))
        case "gaia":
            return bool(squeezed(text))
        case _:
            return bool(folded(text))


def _value(match: "regex.Match[str]") -> Fraction | None:
    digits = _read(match["digits"])
    if digits is None:
        return None
    power = sum(int(match[name].replace("\u2212", "-")) for name in ("power", "ten") if match[name])
    sign = -1 if match["sign"] in {"-", "\u2212"} else 1
    return sign * Fraction(digits) * Fraction(10) ** power


def _read(digits: str) -> Decimal | None:
    """Digits with separators as a number. The last of two kinds of separator is the decimal sign.

    A comma alone divides thousands where three digits follow it (1,234), else it is the decimal sign (1,5);
    a point alone is the decimal sign.
    """
    if len(digits) > MOST_DIGITS:
        return None
    marks = [mark for mark in digits if not mark.isdigit()]
    last = marks[-1] if marks else ""
    grouped = _GROUPS.fullmatch(digits) is not None and len(set(marks)) == 1
    if not marks or (grouped and (len(marks) > 1 or last != ".")):
        return Decimal("".join(mark for mark in digits if mark.isdigit()))
    if last not in {".", ","} or marks.count(last) > 1:
        return None
    whole, _, part = digits.rpartition(last)
    if len(set(marks)) > 2 or (len(marks) > 1 and not _GROUPS.fullmatch(whole)):
        return None
    return Decimal("".join(mark for mark in whole if mark.isdigit()) + "." + part)
