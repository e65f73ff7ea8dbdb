"""The grounds of a judge's answer: the words or turns that it rests on, checked against the conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.verdict import Outcome, Quote, RestsOn, Verdict
from ci_evals.grading import quotes
from ci_evals.grading.voting import VoidAnswerError
from ci_evals.support.json_text import strict_object

NO_WORDS = "the judge gave an empty reason"
NOTHING = (
    "the judge passed it without evidence: it quoted nothing, and named no turns that it searched for what "
    "is absent"
)
NOT_EVERY_TURN = (
    "the judge passed it because of what is absent, and did not look for it in every turn: turn {turns} was "
    "left out"
)
CONTRADICTION = 'the judge contradicted itself: its verdict is {verdict!r}, and "met" is {met}'

CITATIONS_SCHEMA: dict[str, object] = {
    "type": "array",
    "items": strict_object({"turn": {"type": "integer"}, "quote": {"type": "string"}}),
}
GROUNDS_SCHEMA: dict[str, object] = {
    "rests_on": {"type": "string", "enum": ["quotes", "absence"]},
    "looked_at": {"type": "array", "items": {"type": "integer"}},
}
"""The properties of an answer in which a judge states its grounds."""


class Citation(BaseModel):
    """Words of a turn that the judge rests on; empty ones are no grounds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    turn: int
    quote: str


class StatedGrounds(BaseModel):
    """The grounds that a judge states."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rests_on: Literal["quotes", "absence"]
    looked_at: list[int]
    """The turns in which it looked for what is absent."""


class Grounds(NamedTuple):
    """The grounds of an answer, checked against the conversation."""

    rests_on: RestsOn | None
    """None if the answer rests on nothing that counts."""
    turns: tuple[int, ...]
    quotes: tuple[Quote, ...]
    missing: str = NOTHING
    """Why they are none, if `rests_on` is None."""

    def of(self, verdict: Verdict) -> Verdict:
        """Return the verdict with these grounds."""
        rests_on = None if verdict.outcome is Outcome.UNDECIDED else self.rests_on
        return replace(verdict, evidence=self.turns, quotes=self.quotes, rests_on=rests_on)


def check(
    stated: StatedGrounds, citations: Sequence[Citation], texts: Mapping[int, Sequence[str]]
) -> Grounds:
    """Return the grounds of an answer.

    Args:
        stated: The grounds that the judge states.
        citations: Its citations.
        texts: The texts of each turn, as the judge was shown them.

    Raises:
        VoidAnswerError: it names a turn that does not exist, or quotes words that do not occur there.
    """
    found = _quotes(citations, texts)
    cited = {citation.turn for citation in citations}
    if stated.rests_on == "absence":
        for turn in stated.looked_at:
            if turn not in texts:
                raise VoidAnswerError(f"the judge looked at turn {turn}, which does not exist")
        turns = tuple(sorted({*cited, *stated.looked_at}))
        # What is not in one turn may be in another: an absence is one from the whole conversation.
        left_out = sorted(texts.keys() - set(stated.looked_at))
        if not left_out:
            return Grounds("absence", turns, found)
        if stated.looked_at:
            reason = NOT_EVERY_TURN.format(turns=", ".join(map(str, left_out)))
            return Grounds(None, turns, found, reason)
    return Grounds("quotes" if found else None, tuple(sorted(cited)), found)


def _quotes(citations: Sequence[Citation], texts: Mapping[int, Sequence[str]]) -> tuple[Quote, ...]:
    """Return each quote once, in order of turns. A judge that invents one has not read the conversation."""
    found: dict[Quote, None] = {}
    for citation in citations:
        if citation.turn not in texts:
            raise VoidAnswerError(f"the judge named turn {citation.turn}, which does not exist")
        if quotes.is_empty(citation.quote):
            continue
        if not quotes.occurs(citation.quote, texts[citation.turn]):
            if quotes.is_too_short(citation.quote):
                raise VoidAnswerError(f"the judge's quote from turn {citation.turn} is too short to check")
            raise VoidAnswerError(f"the judge quoted words that are not in turn {citation.turn}")
        found[Quote(turn=citation.turn, text=citation.quote.strip())] = None
    return tuple(sorted(found, key=lambda quote: quote.turn))
