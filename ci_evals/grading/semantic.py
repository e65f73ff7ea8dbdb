"""Answers against expected ones by their meaning: the cosine between vectors that a model gives to texts."""

import math
from collections.abc import Sequence
from operator import mul

from ci_evals.domain.errors import LLMError
from ci_evals.domain.evaluation import AnswerMatches
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.grading.answer_matching import place, shown
from ci_evals.grading.replies import Turns, if_all_came, replies
from ci_evals.ports import Embedder
from ci_evals.support.redaction import Redactor


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """How near two vectors are in direction, -1 to 1; None where one has none, or they cannot be compared."""
    size = math.hypot(*one) * math.hypot(*other)
    if len(one) != len(other) or not 0 < size < math.inf:
        return None
    # Of equal vectors rounding would make a little less than 1.
    return 1.0 if list(one) == list(other) else max(-1.0, min(1.0, sum(map(mul, one, other)) / size))


class SemanticMatcher:
    """Asks an embedding model. It sees no secret."""

    def __init__(self, embedder: Embedder, redactor: Redactor) -> None:
        self._embedder = embedder
        self._redactor = redactor

    async def decide(self, evaluation: AnswerMatches, transcript: Transcript) -> Verdict:
        """By similarity; undecided (`judge_error`) where the model cannot be asked or its answer not read."""
        named = replies(evaluation.turn, transcript)
        if isinstance(named, Verdict):
            return named
        return if_all_came(await self._compare(evaluation, named), evaluation.turn, transcript)

    async def _compare(self, evaluation: AnswerMatches, named: Turns) -> Verdict:
        numbers = [turn.index for turn in named]
        pairs = [(turn, expected) for turn in named if turn.agent.strip() for expected in evaluation.expected]
        if not pairs:
            return Verdict.failed(f"no answer in {place(numbers)}", *numbers)
        try:
            vectors = await self._vectors([text for one, other in pairs for text in (one.agent, other)])
        except LLMError as error:
            return Verdict.undecided(Cause.JUDGE_ERROR, f"the embedding model could not be asked: {error}")
        found = [(cosine(vectors[one.agent], vectors[other]), one, other) for one, other in pairs]
        alike = [(near, one, other) for near, one, other in found if near is not None]
        if len(alike) < len(found):
            model = self._embedder.model
            return Verdict.undecided(
                Cause.JUDGE_ERROR, f"the embedding model {model} gave vectors that cannot be compared"
            )
        near, turn, expected = max(alike, key=lambda one: one[0])
        passed = near >= evaluation.least
        verb = "means" if passed else "does not mean"
        how = f"semantic; similarity {shown(near)}, wanted {evaluation.least:g}"
        reason = f"reply {turn.index} {verb} {expected!r} ({how}): {turn.agent.strip()!r}"
        return Verdict.passed(reason, turn.index) if passed else Verdict.failed(reason, *numbers)

    async def _vectors(self, texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
        """The vector of each text, all asked for in one call, each text once."""
        sent = {text: self._redactor.text(text) for text in texts}
        different = tuple(dict.fromkeys(sent.values()))
        vectors = (await self._embedder.embed(different)).vectors
        if len(vectors) != len(different):
            raise LLMError(f"it gave {len(vectors)} vectors for {len(different)} texts")
        by_text = dict(zip(different, vectors, strict=True))
        return {text: by_text[clean] for text, clean in sent.items()}
