"""Whether a tool call is of the object that a claim names: by the values that both name. Pure.

It is one-sided. A value that the claim names and the call lacks is another object, so that no claim of
another object passes; a call that names its object in other words than the agent (`2026-05-21`, `in May`) may
fail a true claim.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from ci_evals.grading.quotes import folded
from ci_evals.support.redaction import MASK

_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_AFTERNOON = re.compile(r"\b([0-9]{1,2})(?=(?:[:.][0-9]{2})? ?p\.?m\b)")
_SEPARATED = re.compile(r"[.,]")
_LONG = 4
"""Characters from which a word with a digit is taken for an identifier, such as an order's number."""


def lacking(quote: str, about: str, sentences: Sequence[str], values: JsonValue) -> tuple[str, ...]:
    """Return what a claim names and a call lacks; nothing if the call is of the same object.

    Args:
        quote: The words of the claim.
        about: The object as the conversation names it; blank if nothing names it.
        sentences: The sentences that the quote stands in, folded. Identifiers in them count too, so that no
            short quote leaves the object out.
        values: All that the call was made with, and what came of it.
    """
    written = list(_texts(values))
    texts = [folded(text) for text in written]
    known = {form for text in texts for word in _WORD.findall(text) for form in _forms(word)}
    named = dict.fromkeys([*_numbers(about), *_numbers(quote)])
    for sentence in sentences:
        named |= dict.fromkeys(word for word in _numbers(sentence) if _is_identifier(word))
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


def _is_identifier(word: str) -> bool:
    return len(word) >= _LONG and not _SEPARATED.search(word)


def _forms(word: str, *, afternoon: bool = False) -> frozenset[str | Decimal]:
    """Return the word, and the numbers that it may stand for: `39,90` is 39.9, and `1,000` is 1000 or 1."""
    forms: set[str | Decimal] = {word}
    decimal_comma = word.replace(".", "").replace(",", ".")
    for written in (word.replace(",", ""), decimal_comma):
        try:
            forms.add(Decimal(written).normalize())
        except InvalidOperation:
            continue
    if afternoon:
        forms.add(Decimal(int(word) % 12 + 12))
    return frozenset(forms)


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
        case _:
            yield str(value)
