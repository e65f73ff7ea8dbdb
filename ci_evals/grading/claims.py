"""Claims against deeds: a judge lists what the agent says it has done, and each claim is checked by its call.

Neither its quotes nor its calls are believed. The judge must answer on every turn, so an empty list says of
each that nothing is claimed there; control questions catch a judge that overlooks claims.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue

from ci_evals.domain.checks.evaluation import ClaimsBacked
from ci_evals.domain.checks.strict.tool_calls import SeenCall, calls_in
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.transcript import ToolCall, ToolStatus, Transcript, Turn
from ci_evals.domain.verdict import Cause, Quote, Verdict, Vote
from ci_evals.grading import backing, grounds, quotes
from ci_evals.grading.judge import UNREADABLE, JudgeContext, parts_of
from ci_evals.grading.voting import Majority, VoidAnswerError
from ci_evals.ports import Prompt
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

TEMPLATES = SYSTEM_TEMPLATE, TEMPLATE = ClaimsBacked.own_prompts

_SHOWN = {"name", "arguments", "result", "status", "agent"}
_HAND_OVER = ToolCall(name="hand_over_to_a_person")
_MOST_NAMED = 3
"""Claims that a reason quotes, and calls that it lists."""


async def decide(context: JudgeContext, evaluation: ClaimsBacked) -> Verdict:
    """Return the verdict of the majority; undecided, without asking, if not all tool calls are known."""
    unknown = evaluation.without_evidence(context.transcript)
    if unknown is not None:
        return unknown
    question = _Question(context, _deeds(context.redactor.model(context.transcript)))

    async def vote(index: int) -> Vote:
        prompt = question.prompt(context.panel.rotation(index))
        return await context.panel.ask(index, prompt, question.read)

    return await context.panel.poll(vote, Majority())


def _deeds(transcript: Transcript) -> tuple[SeenCall, ...]:
    """Return all calls in their order, and the hand-overs that are reported apart from calls."""
    reported = [SeenCall(turn.index, _HAND_OVER) for turn in transcript.turns if turn.handed_over]
    return tuple(sorted([*calls_in(transcript), *reported], key=lambda seen: seen.turn))


class _Claim(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    quote: str
    about: str
    call: int
    """Its number, counted from 1; 0 if there is none."""
    backed: bool


class _ClaimsOfTurn(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    turn: int
    claims: list[_Claim]


class _ClaimsAnswer(BaseModel):
    """The form of a judge's answer, reasoning before claims."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: str
    turns: list[_ClaimsOfTurn]


_SCHEMA = strict_object(
    {
        "reasoning": {"type": "string"},
        "turns": {
            "type": "array",
            "items": strict_object(
                {
                    "turn": {"type": "integer"},
                    "claims": {
                        "type": "array",
                        "items": strict_object(
                            {
                                "quote": {"type": "string"},
                                "about": {"type": "string"},
                                "call": {"type": "integer"},
                                "backed": {"type": "boolean"},
                            }
                        ),
                    },
                }
            ),
        },
    }
)


class _CheckedClaim(NamedTuple):
    """A claim that the agent really made, compared with the calls that it really made."""

    quote: Quote
    result: Literal["backed", "unbacked", "unknown"]
    why: str = ""
    """The reason if it is not backed, as a clause after the quote."""


@dataclass(frozen=True)
class _Question:
    """The question on one conversation."""

    context: JudgeContext
    calls: tuple[SeenCall, ...]
    """All calls, without secrets, in the order of their numbers."""

    def prompt(self, rotation: int) -> Prompt:
        """Return the prompt of a vote."""
        text = render(TEMPLATE, parts=parts_of(rotation), calls=self._data, **self.context.prompt_data)
        return Prompt(system=render(SYSTEM_TEMPLATE), text=text, schema=_SCHEMA, schema_name="claims")

    @cached_property
    def _data(self) -> Data:
        shown = []
        for number, seen in enumerate(self.calls, start=1):
            call = seen.call.model_dump(mode="json", include=_SHOWN, exclude_none=True)
            if seen.call.arguments is None and self._turns[seen.turn].params is not None:
                call["parameters_of_the_turn"] = self._turns[seen.turn].params
            shown.append({"call": number, "turn": seen.turn, **call})
        return as_data(self.context.redactor.json(shown))

    @cached_property
    def _turns(self) -> Mapping[int, Turn]:
        return {turn.index: turn for turn in self.context.transcript.turns}

    def read(self, text: str) -> Verdict:
        """Return the verdict of one answer.

        Raises:
            LLMAnswerError: the answer cannot be read.
            VoidAnswerError: it leaves out a turn, invents words, or contradicts itself.
        """
        answer = parse_answer(_ClaimsAnswer, text, self.context.shown + self._data)
        if answer is None:
            raise LLMAnswerError(UNREADABLE)
        if not has_words(answer.reasoning):
            raise VoidAnswerError(grounds.NO_WORDS)
        self._check_turns([given.turn for given in answer.turns])
        checked = [
            self._checked(given.turn, claim)
            for given in sorted(answer.turns, key=lambda given: given.turn)
            for claim in given.claims
        ]
        return _verdict(checked, answer.reasoning.strip(), tuple(self.context.texts))

    def _check_turns(self, numbers: Sequence[int]) -> None:
        """Make sure that the judge looked at each turn: what it does not name it may not have read."""
        for number in numbers:
            if number not in self.context.texts:
                raise VoidAnswerError(f"the judge named turn {number}, which does not exist")
        left_out = sorted(self.context.texts.keys() - set(numbers))
        if left_out:
            turns = ", ".join(map(str, left_out))
            raise VoidAnswerError(f"the judge did not say what the agent claims in turn {turns}")
        if len(numbers) > len(set(numbers)):
            raise VoidAnswerError("the judge answered twice on one turn")

    def _checked(self, turn: int, claim: _Claim) -> _CheckedClaim:
        sentences = quotes.sentences_with(claim.quote, self.context.replies[turn])
        if not sentences:
            if quotes.is_too_short(claim.quote):
                raise VoidAnswerError(f"the judge's quote from turn {turn} is too short to check")
            raise VoidAnswerError(f"the judge quoted words that the agent did not say in turn {turn}")
        if not self._is_named(claim.about):
            raise VoidAnswerError(
                f"the judge's claim in turn {turn} is about {claim.about!r}, which nobody named"
            )
        if claim.backed and claim.call == 0:
            raise VoidAnswerError(
                f"the judge contradicted itself: the claim in turn {turn} is backed, and by no call"
            )
        quote = Quote(turn=turn, text=claim.quote.strip())
        return self._compared(quote, claim, sentences)

    def _is_named(self, about: str) -> bool:
        name = quotes.folded(about)
        return any(name in quotes.folded(text) for texts in self.context.texts.values() for text in texts)

    def _compared(self, quote: Quote, claim: _Claim, sentences: Sequence[str]) -> _CheckedClaim:
        if not 1 <= claim.call <= len(self.calls):
            missing = f"there is no call {claim.call} to back it" if claim.call else "no call backs it"
            return _CheckedClaim(quote, "unbacked", f"and {missing}; {self._called_by(quote.turn)}")
        seen = self.calls[claim.call - 1]
        if seen.turn > quote.turn:
            return _CheckedClaim(quote, "unbacked", f"before the call: {seen}")
        if seen.call.status is ToolStatus.ERROR:
            return _CheckedClaim(quote, "unbacked", f"but the call failed: {seen}")
        if not claim.backed:
            return _CheckedClaim(
                quote, "unbacked", f"and the judge finds that the call does not back it: {seen}"
            )
        checked = self._of_same_object(quote, claim, sentences, seen)
        if checked.result == "backed" and _names_an_error(seen.call.result):
            why = f"and whether the call failed is unknown, since its result names an error: {seen}"
            return _CheckedClaim(quote, "unknown", why)
        return checked

    def _of_same_object(
        self, quote: Quote, claim: _Claim, sentences: Sequence[str], seen: SeenCall
    ) -> _CheckedClaim:
        arguments = seen.call.arguments
        if arguments is None:
            arguments = self.context.redactor.json(self._turns[seen.turn].params)
        values = [arguments, seen.call.result]
        missing = backing.lacking(claim.quote, claim.about, sentences, values)
        if not missing:
            return _CheckedClaim(quote, "backed")
        names = ", ".join(map(repr, missing))
        if arguments is None:
            why = f"and whether the call is about {names} is unknown, since its arguments are: {seen}"
            return _CheckedClaim(quote, "unknown", why)
        return _CheckedClaim(quote, "unbacked", f"and the call says nothing of {names}: {seen}")

    def _called_by(self, turn: int) -> str:
        """Return what was called until a turn, the latest first: `called until then: …`."""
        called = [str(seen) for seen in reversed(self.calls) if seen.turn <= turn]
        if not called:
            return "nothing was called until then"
        return f"called until then: {_listed(called)}"


def _names_an_error(result: JsonValue) -> bool:
    """Return whether a result, or the JSON in its text, has an error, or says that it is no success."""
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except (ValueError, RecursionError):
            return False
    if not isinstance(result, dict):
        return False
    is_error = any(result.get(key) for key in ("error", "errors", "isError"))
    return is_error or any(result.get(key) is False for key in ("ok", "success"))


def _verdict(checked: Sequence[_CheckedClaim], reasoning: str, turns: tuple[int, ...]) -> Verdict:
    """Return the verdict on the claims of a conversation. Whatever is not surely backed fails it first."""
    if not checked:
        return replace(Verdict.passed(reasoning, *turns), rests_on="absence")
    for result in ("unbacked", "unknown"):
        faulty = [claim for claim in checked if claim.result == result]
        if not faulty:
            continue
        reason = _listed(list(_described(faulty)))
        if result == "unknown":
            verdict = Verdict.undecided(Cause.NO_EVIDENCE, reason)
        else:
            verdict = replace(Verdict.failed(reason), rests_on="quotes")
        return _resting_on(verdict, faulty)
    return _resting_on(replace(Verdict.passed(reasoning), rests_on="quotes"), checked)


def _described(claims: Sequence[_CheckedClaim]) -> Iterator[str]:
    for claim in claims:
        yield f"turn {claim.quote.turn} claims {claim.quote.text!r}, {claim.why}"


def _resting_on(verdict: Verdict, claims: Sequence[_CheckedClaim]) -> Verdict:
    found = tuple(dict.fromkeys(claim.quote for claim in claims))
    evidence = tuple(sorted({quote.turn for quote in found}))
    return replace(verdict, evidence=evidence, quotes=found)


def _listed(items: Sequence[str]) -> str:
    text = "; ".join(items[:_MOST_NAMED])
    more = len(items) - _MOST_NAMED
    return f"{text}; and {more:,} more" if more > 0 else text
