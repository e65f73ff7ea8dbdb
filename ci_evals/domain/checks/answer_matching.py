"""Answers compared with expected ones: one pure function for each mode. docs/answers.md explains them.

An empty answer, and one that nothing is left of, never matches.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import assert_never

from ci_evals.domain.answers import (
    Mode,
    as_float,
    folded,
    last_number,
    listed,
    squeezed,
    whole_number,
    words,
)
from ci_evals.domain.checks.matcher import ExpectedAnswer

_FINAL = re.compile(r"\bfinal answer[\s*_]*:", re.IGNORECASE)
_EMPHASIS = " \t\r\n*_`"


def bidirectional(answer: str, expected: str) -> bool:
    """Return whether one contains the other, as lower-case words without punctuation."""
    one, other = words(answer), words(expected)
    return bool(one.strip() and other.strip()) and (one in other or other in one)


def gaia(answer: str, expected: str) -> bool:
    """Return the verdict of the GAIA leaderboard's scorer, which depends on the form of the expected answer.

    A number is compared with the answer without `$`, `%` and `,`. Text with a comma or semicolon is a list:
    the answer needs as many items; numbers are compared as numbers, others without case and white space. All
    else is compared without case, white space and ASCII punctuation. Unlike in the original, nothing empty
    matches, and `inf` and `nan` are words.
    """
    if as_float(expected) is not None:
        return _as_amount(answer) == as_float(expected)
    items = listed(expected)
    if len(items) == 1:
        return bool(squeezed(expected)) and squeezed(answer) == squeezed(expected)
    answered = listed(answer)
    filled = any(squeezed(item, punctuated=True) for item in items)
    return filled and len(answered) == len(items) and all(map(_is_same_item, answered, items))


def final_answer(text: str) -> str:
    """Return what follows the last `FINAL ANSWER:`, as GAIA's prompt asks for, else all of `text`.

    Emphasis of Markdown around it is removed.
    """
    labels = list(_FINAL.finditer(text))
    return text[labels[-1].end() :].strip(_EMPHASIS) if labels else text


def exact(answer: str, expected: str) -> bool:
    """Return whether both are the same except for case and white space."""
    return bool(folded(answer)) and folded(answer) == folded(expected)


def contains(answer: str, expected: str) -> bool:
    """Return whether the answer contains the expected text, ignoring case and white space."""
    return bool(folded(expected)) and folded(expected) in folded(answer)


def similarity(answer: str, expected: str) -> Fraction:
    """Return one minus the Levenshtein distance over the length of the longer one, 0 to 1.

    One typo in ten characters makes 0.9; case and white space do not count. Texts are compared as wholes and
    in order, so that a wrong word in a long answer is not forgiven because the rest is right, as ratios of
    parts or of sorted words would. An empty text is similar to none.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415  # 0.1 s, and few suites need it

    one, other = folded(answer), folded(expected)
    longer = max(len(one), len(other))
    return 1 - Fraction(Levenshtein.distance(one, other), longer) if one and other else Fraction(0)


def fuzzy(answer: str, expected: str, threshold: float) -> bool:
    """Return whether they are at least this similar."""
    filled = folded(answer) and folded(expected)
    return bool(filled) and similarity(answer, expected) >= as_written(threshold)


def numeric(answer: str, expected: str, tolerance: float | None, rel_tolerance: float | None) -> bool:
    """Return whether the last number in the answer is the expected one, or within one of the tolerances."""
    number, target = last_number(answer), whole_number(expected)
    if not number or not target:
        return False
    allowed = max(as_written(tolerance or 0), as_written(rel_tolerance or 0) * abs(target.value))
    return abs(number.value - target.value) <= allowed


def answers(text: str, wanted: ExpectedAnswer) -> bool:
    """Return whether a text answers what was expected, by a mode that needs no model."""
    answer, matches = answer_in(wanted.match, text), matcher(wanted)
    return bool(answer) and any(matches(answer, expected) for expected in wanted.expected)


def as_written(number: float) -> Fraction:
    """Return a number of a suite as its author wrote it: 0.1 is a tenth, not the nearest binary number."""
    return Fraction(repr(number))


def matcher(wanted: ExpectedAnswer) -> Callable[[str, str], bool]:
    """Return the function that compares an answer with an expected one.

    Raises:
        ValueError: a model compares them.
    """
    match wanted.match:
        case "bidirectional":
            return bidirectional
        case "gaia":
            return gaia
        case "exact":
            return exact
        case "contains":
            return contains
        case "fuzzy":
            return partial(fuzzy, threshold=wanted.least)
        case "numeric":
            return partial(numeric, tolerance=wanted.tolerance, rel_tolerance=wanted.rel_tolerance)
        case "semantic":
            raise ValueError("meanings are compared by a model")
        case mode:
            assert_never(mode)


def answer_in(mode: Mode, text: str) -> str:
    """Return the part of a reply that is its answer; an empty text if there is none."""
    if mode == "gaia":
        return final_answer(text).strip()
    if mode == "numeric":
        number = last_number(text)
        return number.text if number else ""
    return text.strip()


def _as_amount(text: str) -> float | None:
    return as_float(text.replace("$", "").replace("%", "").replace(",", ""))


def _is_same_item(item: str, expected: str) -> bool:
    if as_float(expected) is not None:
        return _as_amount(item) == as_float(expected)
    return squeezed(item, punctuated=True) == squeezed(expected, punctuated=True)
