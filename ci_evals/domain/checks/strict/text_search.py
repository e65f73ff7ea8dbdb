"""Checks of the agent's words: a text or a pattern is searched in replies, with and without typography.

A positive check looks at the text as written and folded; a negative one also at what else a reader may see in
it. Each form of the text is searched for the same form of what is wanted.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

import regex
from pydantic import Field

from ci_evals.domain.checks.matching import PATTERN_SECONDS, PatternSearch
from ci_evals.domain.checks.replies import Turns, verdict_on_replies
from ci_evals.domain.checks.strict_check import (
    ConversationLength,
    PositiveCheck,
    ReplyCheck,
    WeakSpot,
    family,
)
from ci_evals.domain.criterion import Pattern
from ci_evals.domain.transcript import UNREAD_WORDS, Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.support.text import bare
from ci_evals.support.typography import folding, look_alikes, patterns

_How = Literal["", ", spelled with other typography", ", spelled with look-alikes"]
_AS_WRITTEN: _How = ""
_FOLDED: _How = ", spelled with other typography"
_LOOK_ALIKES: _How = ", spelled with look-alikes"


class _Question(NamedTuple):
    """A pattern, a text to search for it, and how the text is spelled if the pattern is found."""

    pattern: str
    text: str
    how: _How


class _TextCheck(ReplyCheck, ABC):
    raw: bool = Field(
        default=False,
        description="Search the text as written. By default typography does not count: quotation marks, "
        "dashes, blanks, line breaks, Markdown, and in negative checks look-alikes.",
    )

    def _is_there(self, transcript: Transcript) -> Verdict:
        """Return the verdict on whether the replies have what is wanted, or must not be there."""
        return verdict_on_replies(self.turn, transcript, self._search)

    def _search(self, turns: Turns) -> Verdict:
        target = self._target()
        search = PatternSearch()
        for turn in turns:
            is_unknown = False
            for question in self._questions(turn.agent):
                is_found = search.is_found(question.pattern, question.text)
                if is_found:
                    reason = f"{target} was found in reply {turn.index}{question.how}"
                    return Verdict.passed(reason, turn.index)
                is_unknown = is_unknown or is_found is None
            if is_unknown:
                reason = (
                    f"{target} was searched in reply {turn.index} for {PATTERN_SECONDS:g} s without an end"
                )
                return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        for turn in turns:
            if unread := turn.not_found.get(UNREAD_WORDS):
                reason = f"{target} may be in words of reply {turn.index} that were not read: {unread}"
                return Verdict.undecided(Cause.NO_EVIDENCE, reason)
        numbers = [turn.index for turn in turns]
        which = "any reply" if len(numbers) > 1 else f"reply {numbers[0]}"
        hint = self._hint(turns, search)
        return Verdict.failed(f"{target} was not found in {which}{hint}", *numbers)

    @abstractmethod
    def _target(self) -> str:
        """Return what is searched, as messages name it."""

    @abstractmethod
    def _questions(self, text: str) -> Iterator[_Question]:
        """Yield what to search in the text of a reply, until something is found."""

    def _hint(self, turns: Turns, search: PatternSearch) -> str:
        """Return what to do if nothing was found."""
        del turns, search
        return ""


class _Negative(_TextCheck, ABC):
    is_unhappy: ClassVar[bool] = True

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        return () if isinstance(self.turn, int) else later

    def _decide(self, transcript: Transcript) -> Verdict:
        return self._is_there(transcript).opposite()

    def weak_spots(self, length: ConversationLength) -> Iterator[WeakSpot]:
        if self.turn == "last" and length.most > 1:
            message = f"{self.kind()} checks only the last reply, not the ones before"
            yield WeakSpot(None, f'{message}; write "turn": "any"')


class Contains(_TextCheck, PositiveCheck):
    """Passes if the agent's text contains `text` (case counts)."""

    strict: Literal["contains"]
    text: str = Field(min_length=1, description="The text to look for.")

    def _decide(self, transcript: Transcript) -> Verdict:
        return self._is_there(transcript)

    def _target(self) -> str:
        return repr(self.text)

    def _questions(self, text: str) -> Iterator[_Question]:
        yield from _as_written(_literal(self.text), text)
        folded, keep = _folded_literal(self.text)
        if folded.strip() and not self.raw:
            yield from _folded(_literal(folded), text, keep)

    def answers(self) -> Sequence[str]:
        return (self.text,)


class NotContains(_Negative):
    """Passes if the agent's text does not contain `text`; with `any`, if no reply does."""

    strict: Literal["not_contains"]
    text: str = Field(min_length=1, description="The text that must not appear.")

    def _target(self) -> str:
        return repr(self.text)

    def _questions(self, text: str) -> Iterator[_Question]:
        yield from _as_written(_literal(self.text), text)
        folded, keep = _folded_literal(self.text)
        if folded.strip() and not self.raw:
            yield from _folded(_literal(folded), text, keep)
            reading = _literal(look_alikes.reading(folded))
            yield from _disguised(_literal(folded), reading, text, keep)


class Regex(_TextCheck, PositiveCheck):
    """Passes if the regular expression is found in the agent's text."""

    strict: Literal["regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")

    def _decide(self, transcript: Transcript) -> Verdict:
        return self._is_there(transcript)

    def _target(self) -> str:
        return f"/{self.pattern}/"

    def _questions(self, text: str) -> Iterator[_Question]:
        if self.raw:
            yield from _as_written(self.pattern, text)
        else:
            keep = folding.kept_by(patterns.literals(self.pattern))
            yield from _folded(patterns.folded(self.pattern), text, keep)

    def _hint(self, turns: Turns, search: PatternSearch) -> str:
        """Return the cure if only the text as written matches."""
        if self.raw or not any(search.is_found(self.pattern, turn.agent) for turn in turns):
            return ""
        return (
            " without its line breaks, Markdown and typography; to search the text as written, set raw: true"
        )


class NotRegex(_Negative):
    """Passes if the regular expression is not found; with `any`, in no reply."""

    strict: Literal["not_regex"]
    pattern: Pattern = Field(description="A regular expression in Python's syntax.")

    def _target(self) -> str:
        return f"/{self.pattern}/"

    def _questions(self, text: str) -> Iterator[_Question]:
        pattern = self.pattern
        yield from _as_written(pattern, text)
        if self.raw:
            return
        folded, reading = patterns.folded(pattern), patterns.reading(pattern)
        keep = folding.kept_by(patterns.literals(pattern))
        yield from _folded(folded, text, keep)
        yield from _disguised(folded, reading, text, keep)
        if keep and not patterns.refers_to_absence(pattern):
            yield from _folded(folded, text, "")
            yield from _disguised(folded, reading, text, "")


FAMILY = family(Contains, NotContains, Regex, NotRegex)


def _folded_literal(text: str) -> tuple[str, str]:
    """Return the text folded, and the characters that folding keeps for it."""
    keep = folding.kept_by(text)
    return folding.folded(text.strip("\r\n"), keep), keep


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
