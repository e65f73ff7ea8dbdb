"""Search of a reply for what a text check names, with and without typography.

A positive check looks at the text as written and folded; a negative one also at what else a reader may see in
it. Each form of the text is searched for the same form of what is wanted.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import regex

from ci_evals.domain.checks.text_checks import Contains, NotContains, NotRegex, Regex
from ci_evals.domain.transcript import Transcript, Turn
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading.matching import PATTERN_SECONDS, PatternSearch
from ci_evals.grading.replies import Turns, verdict_on_replies
from ci_evals.support.text import bare
from ci_evals.support.typography import folding, look_alikes, patterns

TextCheck = Contains | NotContains | Regex | NotRegex

_How = Literal["", ", spelled with other typography", ", spelled with look-alikes"]
_AS_WRITTEN: _How = ""
_FOLDED: _How = ", spelled with other typography"
_LOOK_ALIKES: _How = ", spelled with look-alikes"


class _Question(NamedTuple):
    """A pattern, a text to search for it, and how the text is spelled if the pattern is found."""

    pattern: str
    text: str
    how: _How


def is_there(check: TextCheck, transcript: Transcript) -> Verdict:
    """Return the verdict on whether the replies have what is wanted, or must not be there."""
    return verdict_on_replies(check.turn, transcript, partial(_search, check))


def _search(check: TextCheck, named: Turns) -> Verdict:
    target = repr(check.text) if isinstance(check, Contains | NotContains) else f"/{check.pattern}/"
    search = PatternSearch()
    for turn in named:
        unknown = False
        for question in _questions(check, turn):
            found = search.is_found(question.pattern, question.text)
            if found:
                reason = f"{target} was found in reply {turn.index}{question.how}"
                return Verdict.passed(reason, turn.index)
            unknown = unknown or found is None
        if unknown:
            reason = f"{target} was searched in reply {turn.index} for {PATTERN_SECONDS:g} s without an end"
            return Verdict.undecided(Cause.NO_EVIDENCE, reason)
    numbers = [turn.index for turn in named]
    which = "any reply" if len(numbers) > 1 else f"reply {numbers[0]}"
    return Verdict.failed(f"{target} was not found in {which}{_hint(check, named, search)}", *numbers)


def _hint(check: TextCheck, named: Turns, search: PatternSearch) -> str:
    """Return the cure if only the text as written matches."""
    if not isinstance(check, Regex) or check.raw:
        return ""
    if any(search.is_found(check.pattern, turn.agent) for turn in named):
        return (
            " without its line breaks, Markdown and typography; to search the text as written, set raw: true"
        )
    return ""


def _questions(check: TextCheck, turn: Turn) -> Iterator[_Question]:
    text = turn.agent
    if isinstance(check, Contains | NotContains):
        yield from _of_literal(check, text)
    else:
        yield from _of_pattern(check, text)


def _of_literal(check: Contains | NotContains, text: str) -> Iterator[_Question]:
    wanted, keep = check.text, folding.kept_by(check.text)
    yield from _as_written(_literal(wanted), text)
    folded = folding.folded(wanted.strip("\r\n"), keep)
    if check.raw or not folded.strip():
        return
    yield from _folded(_literal(folded), text, keep)
    if isinstance(check, NotContains):
        yield from _disguised(_literal(folded), _literal(look_alikes.reading(folded)), text, keep)


def _of_pattern(check: Regex | NotRegex, text: str) -> Iterator[_Question]:
    pattern = check.pattern
    if check.raw or isinstance(check, NotRegex):
        yield from _as_written(pattern, text)
    if check.raw:
        return
    folded, keep = patterns.folded(pattern), folding.kept_by(patterns.literals(pattern))
    yield from _folded(folded, text, keep)
    if isinstance(check, NotRegex):
        yield from _disguised(folded, patterns.reading(pattern), text, keep)
        if keep and not patterns.refers_to_absence(pattern):
            yield from _folded(folded, text, "")
            yield from _disguised(folded, patterns.reading(pattern), text, "")


def _as_written(pattern: str, text: str) -> Iterator[_Question]:
    """Ask for a pattern as written; signs that nobody sees neither hide nor split words."""
    for each in dict.fromkeys((text, bare(text))):
        yield _Question(pattern, each, _AS_WRITTEN)


def _folded(pattern: str, text: str, keep: str) -> Iterator[_Question]:
    for form in folding.forms(text, keep):
        yield _Question(pattern, form, _AS_WRITTEN if form == text else _FOLDED)


def _disguised(folded: str, reading: str, text: str, keep: str) -> Iterator[_Question]:
    for form, is_reading in folding.disguises(text, keep):
        if is_reading:
            yield _Question(reading, form, _LOOK_ALIKES)
        else:
            yield _Question(folded, form, _FOLDED)


def _literal(text: str) -> str:
    return regex.escape(text, literal_spaces=True)
