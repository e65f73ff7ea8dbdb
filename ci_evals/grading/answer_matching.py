"""Answers against expected ones: one pure function for each way of comparing. docs/answers.md explains them.

An empty answer, and one that nothing is left of, never matches.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor
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
from ci_evals.domain.evaluation import AnswerMatches
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading.replies import Turns, if_all_came, replies

NO_MODEL = Verdict.undecided(
    Cause.NO_MODEL,
    "meanings cannot be compared: name an embedding model by --embedding-model, such as local:NAME "
    "(pip install 'ci-evals[local]'), or run with --provider=openai",
)

_FINAL = re.compile(r"\bfinal answer[\s*_]*:", re.IGNORECASE)
_EMPHASIS = " \t\r\n*_`"


def bidirectional(answer: str, expected: str) -> bool:
    """Whether one contains the other, as lower-case words without punctuation."""
    here, there = words(answer), words(expected)
    return bool(here.strip() and there.strip()) and (here in there or there in here)


def gaia(answer: str, expected: str) -> bool:
    """What the scorer of the GAIA leaderboard says, which goes by the form of the expected answer.

    A number is compared with the answer without `$`, `%` and `,`. What holds a comma or semicolon is a list:
    as many items are wanted, numbers being compared as numbers, others without case and white space. All else
    is compared without case, white space and ASCII punctuation. Against the original, nothing empty matches,
    and `inf` and `nan` are words.
    """
    if as_float(expected) is not None:
        return _as_amount(answer) == as_float(expected)
    items = listed(expected)
    if len(items) == 1:
        return bool(squeezed(expected)) and squeezed(answer) == squeezed(expected)
    found = listed(answer)
    filled = any(squeezed(item, punctuated=True) for item in items)
    return filled and len(found) == len(items) and all(map(_same_item, found, items))


def final_answer(text: str) -> str:
    """What follows the last `FINAL ANSWER:`, with which GAIA's prompt has answers end, else all of `text`.

    Emphasis of Markdown round it is no part of it.
    """
    found = list(_FINAL.finditer(text))
    return text[found[-1].end() :].strip(_EMPHASIS) if found else text


def exact(answer: str, expected: str) -> bool:
    """Whether both are the same but for case and white space."""
    return bool(folded(answer)) and folded(answer) == folded(expected)


def contains(answer: str, expected: str) -> bool:
    """Whether the expected text stands in the answer, case and white space apart."""
    return bool(folded(expected)) and folded(expected) in folded(answer)


def similarity(answer: str, expected: str) -> Fraction:
    """The share of characters that both have in common, 0 to 1, case and white space apart.

    One minus the Levenshtein distance over the length of the longer one: a slip in ten characters makes 0.9.
    It takes the texts as wholes and in their order, so that a wrong word in a long answer is not forgiven
    because the rest of it is right, as ratios of parts or of sorted words would. Nothing is like nothing: 0.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415  # 0.1 s, and few suites need it

    here, there = folded(answer), folded(expected)
    longer = max(len(here), len(there))
    return 1 - Fraction(Levenshtein.distance(here, there), longer) if here and there else Fraction(0)


def fuzzy(answer: str, expected: str, threshold: float) -> bool:
    """Whether they are at least so similar."""
    filled = folded(answer) and folded(expected)
    return bool(filled) and similarity(answer, expected) >= as_written(threshold)


def numeric(answer: str, expected: str, tolerance: float | None, rel_tolerance: float | None) -> bool:
    """Whether the last number in the answer is the expected one, or within one of the tolerances of it."""
    found, wanted = last_number(answer), whole_number(expected)
    if not found or not wanted:
        return False
    allowed = max(as_written(tolerance or 0), as_written(rel_tolerance or 0) * abs(wanted.value))
    return abs(found.value - wanted.value) <= allowed


def decide(evaluation: AnswerMatches, transcript: Transcript) -> Verdict:
    """The verdict of an `answer_matches`; of one that compares meanings, that nobody is there to do it."""
    if evaluation.match == "semantic":
        return NO_MODEL
    named = replies(evaluation.turn, transcript)
    if isinstance(named, Verdict):
        return named
    return if_all_came(_match(evaluation, named), evaluation.turn, transcript)


def _match(evaluation: AnswerMatches, named: Turns) -> Verdict:
    mode, matches = evaluation.match, _matcher(evaluation)
    found = [(turn.index, _found(mode, turn.agent)) for turn in named]
    pairs = [_Pair(*answer, text) for answer in found if answer[1] for text in evaluation.expected]
    for pair in pairs:
        if matches(pair.found, pair.expected):
            return Verdict.passed(f"reply {pair.reply} matches {pair.told(mode)}", pair.reply)
    numbers = [turn.index for turn in named]
    if not pairs:
        what = "number" if mode == "numeric" else "answer"
        return Verdict.failed(f"no {what} in {place(numbers)}", *numbers)
    nearest = max(pairs, key=_Pair.nearness if mode == "numeric" else _Pair.likeness)
    # Of numbers it says nothing how similar their digits are.
    alike = "" if mode == "numeric" else f"; similarity {shown(nearest.likeness())}"
    return Verdict.failed(f"reply {nearest.reply} does not match {nearest.told(mode + alike)}", *numbers)


def place(numbers: Sequence[int]) -> str:
    """`reply 3`, or `any of 4 replies`."""
    return f"reply {numbers[0]}" if len(numbers) == 1 else f"any of {len(numbers)} replies"


def shown(alike: float | Fraction) -> str:
    """A similarity with three decimals, never rounded up to a threshold."""
    return f"{floor(alike * 1000) / 1000:.3f}"


def as_written(number: float) -> Fraction:
    """A number of a suite as its author wrote it: 0.1 is a tenth, not the nearest binary number."""
    return Fraction(repr(number))


@dataclass(frozen=True)
class _Pair:
    """What a reply answers, and one of the expected answers."""

    reply: int
    found: str
    expected: str

    def told(self, how: str) -> str:
        """Both, the answer last since reports cut what is long (here it would leave half a secret)."""
        return f"{self.expected!r} ({how}): {self.found!r}"

    def likeness(self) -> Fraction:
        """How similar both are as texts."""
        return similarity(self.found, self.expected)

    def nearness(self) -> Fraction:
        """How near both are as numbers: 0 where they are equal, else below."""
        found, wanted = last_number(self.found), whole_number(self.expected)
        return -abs(found.value - wanted.value) if found and wanted else Fraction(0)


def _matcher(evaluation: AnswerMatches) -> Callable[[str, str], bool]:
    match evaluation.match:
        case "bidirectional":
            return bidirectional
        case "gaia":
            return gaia
        case "exact":
            return exact
        case "contains":
            return contains
        case "fuzzy":
            return partial(fuzzy, threshold=evaluation.least)
        case "numeric":
            return partial(numeric, tolerance=evaluation.tolerance, rel_tolerance=evaluation.rel_tolerance)
        case "semantic":
            raise ValueError("meanings are compared by a model")
        case mode:
            assert_never(mode)


def _found(mode: Mode, text: str) -> str:
    """The answer in a reply's text; empty where there is none."""
    if mode == "gaia":
        return final_answer(text).strip()
    if mode == "numeric":
        number = last_number(text)
        return number.text if number else ""
    return text.strip()


def _as_amount(text: str) -> float | None:
    return as_float(text.replace("$", "").replace("%", "").replace(",", ""))


def _same_item(found: str, wanted: str) -> bool:
    if as_float(wanted) is not None:
        return _as_amount(found) == as_float(wanted)
    return squeezed(found, punctuated=True) == squeezed(wanted, punctuated=True)
