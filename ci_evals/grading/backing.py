"""Whether a tool call is of the object that a claim names: by the values that both name. Pure.

It is one-sided. A value that the claim names and the call lacks is another object, so that no claim of
another object passes; a call that names its object in other words than the agent (`2026-05-21`, `in May`) may
fail a true claim.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal

from pydantic import JsonValue

from ci_evals.grading.quotes import folded
from ci_evals.support.redaction import MASK
from ci_evals.support.typography import folding

_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_COMPOUND = re.compile(r"[^\W_]+(?:-[^\W_]+)+")
_AFTERNOON = re.compile(r"\b([0-9]{1,2})(?=(?:[:.][0-9]{2})? ?p\.?m\b)")
_SEPARATED = re.compile(r"[.,]")
_CLAUSE_END = re.compile(r"[,;](?= )|[，；]")
_LONG = 4
"""Characters from which a word with a digit is taken for an identifier, such as an order's number."""

_WHOLE = re.compile(r"\d+")
_PARTED = re.compile(r"(\d+)[.,](\d+)")
_THOUSANDS = re.compile(r"([1-9]\d{0,2}(?:,\d{2})*,\d{3}|[1-9]\d{0,2}(?:,\d{3})+)(?:\.(\d+))?")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_THOUSANDS_WITH_DOTS = re.compile(r"([1-9]\d{0,2}(?:\.\d{3})+)(?:,(\d+))?")


def lacking(quote: str, about: str, sentences: Sequence[str], values: JsonValue) -> tuple[str, ...]:
    """Return what a claim names and a call lacks; nothing if the call is of the same object.

    Args:
        quote: The words of the claim.
        about: The object as the conversation names it; blank if nothing names it.
        sentences: The sentences that the quote stands in, folded. Identifiers in them count too, so that no
            short quote leaves the object out; so do short numbers in the quote's clause if quote and object
            have none.
        values: All that the call was made with, and what came of it.
    """
    written = list(_texts(values))
    texts = [folded(text) for text in written]
    known = {form for text in texts for word in _WORD.findall(text) for form in _forms(word, in_call=True)}
    named = dict.fromkeys([*_numbers(about), *_numbers(quote)])
    if not named:
        for clause in _clauses(quote, sentences):
            named |= dict.fromkeys([*_numbers(clause), *_letters(clause)])
    for sentence in sentences:
        named |= dict.fromkeys(word for word in _numbers(sentence) if _is_identifier(word))
    for text in (about, quote):
        named |= {part.casefold(): None for part in _letters(folding.folded(text)) if part.isupper()}
    afternoon = {hour for text in (quote, about) for hour in _AFTERNOON.findall(folded(text))}
    missing = [word for word in named if known.isdisjoint(_forms(word, afternoon=word in afternoon))]
    if not any(_numbers(about)) and not _is_named(folded(about), texts):
        missing.append(about.strip())
    if MASK in quote + about and not any(MASK in text for text in written):
        missing.append(MASK)  # it names a secret, and the call has another value
    return tuple(missing)


def _is_named(name: str, texts: Sequence[str]) -> bool:
    """Return whether all words of a name without digits stand in these texts, or it as a whole."""
    words = _WORD.findall(name)
    if not words or any(name.strip() in text for text in texts):
        return True
    known = {word for text in texts for word in _WORD.findall(text)}
    return known.issuperset(words)


def _numbers(text: str) -> Iterator[str]:
    """Yield the words with a digit."""
    return (word for word in _WORD.findall(folded(text)) if any(map(str.isdigit, word)))


def _letters(text: str) -> Iterator[str]:
    """Yield the letters of identifiers such as `ORD-12`: order 12 is not return 12."""
    for compound in _COMPOUND.findall(text):
        if any(map(str.isdigit, compound)):
            yield from filter(str.isalpha, compound.split("-"))


def _clauses(quote: str, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the clauses that the quote stands in: what follows a comma is often how long it takes."""
    words = folded(quote).strip(" '.,;:")
    for sentence in sentences:
        start = sentence.find(words)
        if start < 0:
            yield sentence
            continue
        end = start + len(words)
        ends = [0, *(match.end() for match in _CLAUSE_END.finditer(sentence)), len(sentence)]
        first = max(place for place in ends if place <= start)
        last = min(place for place in ends if place >= end)
        yield sentence[first:last]


def _is_identifier(word: str) -> bool:
    return len(word) >= _LONG and not _SEPARATED.search(word)


def _forms(word: str, *, in_call: bool = False, afternoon: bool = False) -> frozenset[str]:
    """Return the word, and the number that it stands for, if any: `39,90` is 39.9, and `1,000` is 1000.

    `1.000` in a call may be 1 or 1000, so it is only itself.
    """
    forms = {word}
    number = _number(word)
    if number is not None and not (in_call and _UNCLEAR.fullmatch(word)):
        forms.add(number)
    if afternoon:
        forms.add(str(int(word) % 12 + 12))
    return frozenset(forms)


def _number(word: str) -> str | None:
    """Return the number that is written so, in one form for each; None if it is none.

    It is text of any length: no two of different digits are the same. Only numbers of two digits, such as
    months, lose a zero at their beginning: order 007 is not order 7.
    """
    digits = "".join(str(unicodedata.decimal(char, char)) for char in word)
    if _WHOLE.fullmatch(digits):
        return (digits.lstrip("0") or "0") if len(digits) <= 2 else digits
    match = _THOUSANDS.fullmatch(digits) or _THOUSANDS_WITH_DOTS.fullmatch(digits)
    match = match or _PARTED.fullmatch(digits)
    if match is None:
        return None
    whole = _SEPARATED.sub("", match[1]).lstrip("0") or "0"
    fraction = (match[2] or "").rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield all texts and numbers in a value of JSON. Its keys are names of parameters, not of objects."""
    match value:
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case bool() | None:
            return
        case float():
            yield format(Decimal(str(value)), "f")  # no `1e+16`, which has the word 16 in it
        case _:
            yield str(value)
