"""Answers compared with expected ones: one pure function for each mode. docs/answers.md explains them.

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
from ci_evals.domain.checks.matcher import ExpectedAnswer
from ci_evals.domain.checks.text_checks import AnswerMatches
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading.replies import Turns, verdict_on_replies

NO_MODEL = Verdict.undecided(
    Cause.NO_MODEL,
    "meanings cannot be compared: name an embedding model with --embedding-model, such as local:NAME "
    "(pip install 'ci-evals[local]'), or run with --provider=openai",
)

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


def decide(evaluation: AnswerMatches, transcript: Transcript) -> Verdict:
    """Return the verdict of an `answer_matches`; undecided for one that needs an embedding model."""
    if evaluation.match == "semantic":
        return NO_MODEL
    return verdict_on_replies(evaluation.turn, transcript, partial(_match, evaluation))


def answers(text: str, wanted: ExpectedAnswer) -> bool:
    """Return whether a text answers what was expected, by a mode that needs no model."""
    answer, matches = _answer_in(wanted.match, text), _matcher(wanted)
    return bool(answer) and any(matches(answer, expected) for expected in wanted.expected)


def _match(evaluation: AnswerMatches, turns: Turns) -> Verdict:
    mode, matches = evaluation.match, _matcher(evaluation)
    answers = [(turn.index, answer) for turn in turns if (answer := _answer_in(mode, turn.agent))]
    pairs = [_Pair(turn, answer, text) for turn, answer in answers for text in evaluation.expected]
    for pair in pairs:
        if matches(pair.answer, pair.expected):
            return Verdict.passed(f"reply {pair.turn} matches {pair.describe(mode)}", pair.turn)
    numbers = [turn.index for turn in turns]
    if not pairs:
        missing = "number" if mode == "numeric" else "answer"
        return Verdict.failed(f"no {missing} in {describe_replies(numbers)}", *numbers)
    nearest = max(pairs, key=_Pair.nearness if mode == "numeric" else _Pair.similarity)
    # Numbers: how similar their digits are says nothing.
    similar = "" if mode == "numeric" else f"; similarity {shown(nearest.similarity())}"
    reason = f"reply {nearest.turn} does not match {nearest.describe(mode + similar)}"
    return Verdict.failed(reason, *numbers)


def describe_replies(numbers: Sequence[int]) -> str:
    """Return `reply 3`, or `any of 4 replies`."""
    return f"reply {numbers[0]}" if len(numbers) == 1 else f"any of {len(numbers)} replies"


def shown(likeness: float | Fraction) -> str:
    """Return a similarity with three decimals, never rounded up to a threshold."""
    return f"{floor(likeness * 1000) / 1000:.3f}"


def as_written(number: float) -> Fraction:
    """Return a number of a suite as its author wrote it: 0.1 is a tenth, not the nearest binary number."""
    return Fraction(repr(number))


@dataclass(frozen=True)
class _Pair:
    """The answer in a reply, and one of the expected answers."""

    turn: int
    answer: str
    expected: str

    def describe(self, how: str) -> str:
        """Return both, the answer last since reports cut long text (here it would leave half a secret)."""
        return f"{self.expected!r} ({how}): {self.answer!r}"

    def similarity(self) -> Fraction:
        """Return how similar both are as texts."""
        return similarity(self.answer, self.expected)

    def nearness(self) -> Fraction:
        """Return how near both are as numbers: 0 if they are equal, else below."""
        number, target = last_number(self.answer), whole_number(self.expected)
        return -abs(number.value - target.value) if number and target else Fraction(0)


def _matcher(evaluation: ExpectedAnswer) -> Callable[[str, str], bool]:
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


def _answer_in(mode: Mode, text: str) -> str:
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
