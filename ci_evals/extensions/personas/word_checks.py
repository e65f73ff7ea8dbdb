"""Checks that compare words of a reply: in another language they may decide for the wrong reason."""

import re
from collections.abc import Iterator, Sequence

from ci_evals.domain.checks.strict.expected_answers import AnswerMatches
from ci_evals.domain.checks.strict.text_search import Contains, NotContains, NotRegex, Regex
from ci_evals.domain.criterion import Criterion

_MISSES = "looks for words that a reply in {languages} may not have, so it can fail there for no reason"
_PASSES = "forbids words that a reply in {languages} may say otherwise, so it can pass there whatever is said"
_WORD = re.compile(r"[^\W\d_]{3,}")
_NO_WORD = re.compile(r"\{\{[^{}]*\}\}|\\[pP]\{[^}]*\}|\\.")
"""Names of canaries, and classes and escapes of patterns."""


def word_checks(evaluations: Sequence[Criterion]) -> Iterator[tuple[int, str]]:
    """Yield the index of each check of a reply's words, and what it may do in `{languages}`."""
    for index, check in enumerate(evaluations):
        match check:
            case Contains():
                texts, fault = [check.text], _MISSES
            case Regex():
                texts, fault = [check.pattern], _MISSES
            case AnswerMatches() if check.match not in {"numeric", "semantic"}:
                texts, fault = [*check.expected], _MISSES
            case NotContains():
                texts, fault = [check.text], _PASSES
            case NotRegex():
                texts, fault = [check.pattern], _PASSES
            case _:
                continue
        if any(_WORD.search(_NO_WORD.sub(" ", text)) for text in texts):
            yield index, fault
