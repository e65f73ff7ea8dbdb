"""Answers compared with expected ones by meaning: the cosine between vectors of an embedding model."""

import math
from collections.abc import Sequence
from operator import mul

from ci_evals.domain.checks.replies import Turns, select_replies, unless_incomplete
from ci_evals.domain.checks.strict.expected_answers import AnswerMatches, describe_replies, shown
from ci_evals.domain.errors import LLMError
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.ports import Embedder
from ci_evals.support.redaction import Redactor


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the similarity of two vectors in direction, -1 to 1; None if they cannot be compared."""
    size = math.hypot(*one) * math.hypot(*other)
    if len(one) != len(other) or not 0 < size < math.inf:
        return None
    # Rounding would make a little less than 1 of equal vectors.
    return 1.0 if list(one) == list(other) else max(-1.0, min(1.0, sum(map(mul, one, other)) / size))


class SemanticMatcher:
    """Asks an embedding model. It sees no secret."""

    def __init__(self, embedder: Embedder, redactor: Redactor) -> None:
        self._embedder = embedder
        self._redactor = redactor

    async def decide(self, evaluation: AnswerMatches, transcript: Transcript) -> Verdict:
        """Decide by similarity; undecided (`judge_error`) if the model cannot be asked or read."""
        turns = select_replies(evaluation.turn, transcript)
        if isinstance(turns, Verdict):
            return turns
        return unless_incomplete(await self._compare(evaluation, turns), evaluation.turn, transcript)

    async def _compare(self, evaluation: AnswerMatches, turns: Turns) -> Verdict:
        numbers = [turn.index for turn in turns]
        pairs = [(turn, expected) for turn in turns if turn.agent.strip() for expected in evaluation.expected]
        if not pairs:
            return Verdict.failed(f"no answer in {describe_replies(numbers)}", *numbers)
        try:
            vectors = await self._vectors([text for turn, other in pairs for text in (turn.agent, other)])
        except LLMError as error:
            return Verdict.undecided(Cause.JUDGE_ERROR, f"the embedding model could not be asked: {error}")
        cosines = [(cosine(vectors[turn.agent], vectors[other]), turn, other) for turn, other in pairs]
        compared = [(near, turn, other) for near, turn, other in cosines if near is not None]
        if len(compared) < len(cosines):
            model = self._embedder.model
            return Verdict.undecided(
                Cause.JUDGE_ERROR, f"the embedding model {model} returned vectors that cannot be compared"
            )
        near, turn, expected = max(compared, key=lambda pair: pair[0])
        passed = near >= evaluation.least
        verb = "means" if passed else "does not mean"
        how = f"semantic; similarity {shown(near)}, at least {evaluation.least:g} required"
        reason = f"reply {turn.index} {verb} {expected!r} ({how}): {turn.agent.strip()!r}"
        return Verdict.passed(reason, turn.index) if passed else Verdict.failed(reason, *numbers)

    async def _vectors(self, texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
        """Return the vector of each text; all are asked for in one call, each once."""
        clean = {text: self._redactor.text(text) for text in texts}
        distinct = tuple(dict.fromkeys(clean.values()))
        vectors = (await self._embedder.embed(distinct)).vectors
        if len(vectors) != len(distinct):
            raise LLMError(f"it gave {len(vectors)} vectors for {len(distinct)} texts")
        by_text = dict(zip(distinct, vectors, strict=True))
        return {text: by_text[redacted] for text, redacted in clean.items()}
