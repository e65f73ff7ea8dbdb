"""Checks of a reply against expected answers. `ci_evals.grading.semantic` asks a model for meanings."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import ClassVar, Literal, TypeGuard

from ci_evals.domain.answers import last_number, whole_number
from ci_evals.domain.checks.answer_matching import answer_in, matcher, similarity
from ci_evals.domain.checks.matcher import ExpectedAnswer
from ci_evals.domain.checks.replies import Turns, verdict_on_replies
from ci_evals.domain.checks.strict_check import PositiveCheck, ReplyCheck, family
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.support.documentation import extra

NO_MODEL = Verdict.undecided(
    Cause.NO_MODEL,
    "meanings cannot be compared: name an embedding model with embedding-model, such as local:NAME "
    f"({extra('local')}), or run with provider openai",
)


class AnswerMatches(ExpectedAnswer, ReplyCheck, PositiveCheck):
    """Passes if the agent's text answers what was expected, compared as `match` says."""

    is_quiz: ClassVar[bool] = True

    strict: Literal["answer_matches"]

    def decide(self, transcript: Transcript) -> Verdict:
        """Return the verdict; undecided for a check that needs an embedding model."""
        return NO_MODEL if compares_meanings(self) else super().decide(transcript)

    def _decide(self, transcript: Transcript) -> Verdict:
        return verdict_on_replies(self.turn, transcript, self._compare)

    def _compare(self, turns: Turns) -> Verdict:
        mode, matches = self.match, matcher(self)
        pairs = self._pairs(turns)
        for pair in pairs:
            if matches(pair.answer, pair.expected):
                return Verdict.passed(f"reply {pair.turn} matches {pair.describe(mode)}", pair.turn)
        numbers = [turn.index for turn in turns]
        if not pairs:
            missing = "number" if mode == "numeric" else "answer"
            return Verdict.failed(f"no {missing} in {describe_replies(numbers)}", *numbers)
        if mode == "numeric":
            # How similar the digits of numbers are says nothing.
            nearest = max(pairs, key=_Pair.nearness)
            how: str = mode
        else:
            nearest = max(pairs, key=_Pair.similarity)
            how = f"{mode}; similarity {shown(nearest.similarity())}"
        reason = f"reply {nearest.turn} does not match {nearest.describe(how)}"
        return Verdict.failed(reason, *numbers)

    def _pairs(self, turns: Turns) -> list["_Pair"]:
        pairs = []
        for turn in turns:
            answer = answer_in(self.match, turn.agent)
            if answer:
                pairs += [_Pair(turn.index, answer, expected) for expected in self.expected]
        return pairs

    def answers(self) -> Sequence[str]:
        return self.expected


FAMILY = family(AnswerMatches)


def compares_meanings(evaluation: Criterion) -> TypeGuard[AnswerMatches]:
    """Return whether an embedding model is asked to decide it."""
    return isinstance(evaluation, AnswerMatches) and evaluation.match == "semantic"


def describe_replies(numbers: Sequence[int]) -> str:
    """Return `reply 3`, or `any of 4 replies`."""
    return f"reply {numbers[0]}" if len(numbers) == 1 else f"any of {len(numbers)} replies"


def shown(likeness: float | Fraction) -> str:
    """Return a similarity with three decimals, never rounded up to a threshold."""
    return f"{floor(likeness * 1000) / 1000:.3f}"


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
