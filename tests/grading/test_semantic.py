import math

import builders as build
import fakes
import pytest
from doc_pages import ROOT, code, table
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.checks.strict.expected_answers import AnswerMatches
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Outcome, Verdict
from ci_evals.grading.grade import NO_JUDGE, grade
from ci_evals.grading.semantic import SemanticMatcher, cosine
from ci_evals.support.redaction import Redactor

CAPITALS = {
    "Paris": (1, 0),
    "the capital": (0.8, 0.6),
    "Berlin": (0.6, 0.8),
    "Rome": (0, 1),
    "nothing": (0, 0),
}


def check(*expected: str, **fields) -> AnswerMatches:
    fields = {
        "criterion": "c",
        "strict": "answer_matches",
        "match": "semantic",
        "expected": expected,
    } | fields
    return AnswerMatches.model_validate(fields)


async def decide(
    evaluation, *texts, vectors=CAPITALS, redactor=None
) -> tuple[Verdict, fakes.ScriptedEmbedder]:
    embedder = fakes.ScriptedEmbedder(vectors)
    turns = tuple(build.turn(i, agent=text) for i, text in enumerate(texts, start=1))
    transcript = Transcript(turns=turns, status=EndState.COMPLETED)
    return await SemanticMatcher(embedder, redactor or Redactor()).decide(evaluation, transcript), embedder


async def test_near_enough():
    """The threshold belongs to what passes; the reason holds the similarity and what was wanted."""
    verdict, _ = await decide(check("Paris"), "the capital")
    assert verdict == Verdict.passed(
        "reply 1 means 'Paris' (semantic; similarity 0.800, at least 0.8 required): 'the capital'", 1
    )
    verdict, _ = await decide(check("Paris", "Rome", threshold=0.9), "Berlin")
    assert verdict == Verdict.failed(
        "reply 1 does not mean 'Rome' (semantic; similarity 0.800, at least 0.9 required): 'Berlin'", 1
    )


async def test_one_call_for_all_texts():
    """Each once, and nothing where there is no answer."""
    verdict, embedder = await decide(check("Paris", "Rome", turn="any"), "Rome", "Berlin", "", "Rome")
    assert verdict.evidence == (1,)
    assert embedder.asked == [("Rome", "Paris", "Berlin")]
    verdict, embedder = await decide(check("Paris"), "Paris", " \n")
    assert verdict == Verdict.failed("no answer in reply 2", 2)
    assert embedder.asked == []
    verdict, embedder = await decide(check("Paris", turn=3), "Paris")
    assert (verdict.cause, embedder.asked) == (Cause.NO_EVIDENCE, [])


async def test_it_sees_no_secret():
    """What would be a key in a prompt would be one here."""
    redactor = Redactor(keys=["key-123456"])
    verdict, embedder = await decide(
        check("Paris"), "key-123456 Paris", vectors=lambda _: (1, 1), redactor=redactor
    )
    assert embedder.asked == [("*** Paris", "Paris")]
    assert verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize("error", [LLMError("it is down"), LLMAnswerError("it is odd"), LLMAccessError("no")])
async def test_a_model_that_fails(error):
    """Nobody knows then."""
    verdict, _ = await decide(check("Paris"), "Paris", vectors=error)
    assert (verdict.cause, verdict.reason) == (
        Cause.JUDGE_ERROR,
        f"the embedding model could not be asked: {error}",
    )


@pytest.mark.parametrize("vectors", [(0, 0), (), (math.nan, 1), (math.inf, 1), (1e200, 1e200)])
async def test_vectors_that_say_nothing(vectors):
    """A vector of zeros has no direction: that is neither near nor far."""
    verdict, _ = await decide(check("Paris"), "Rome", vectors={"Paris": (1, 0), "Rome": vectors})
    assert verdict.outcome is (Outcome.FAILED if vectors == (1e200, 1e200) else Outcome.UNDECIDED)


async def test_too_few_vectors():
    """They could belong to any of the texts."""

    class Forgetful(fakes.ScriptedEmbedder):
        async def embed(self, texts):
            return await super().embed(texts[:1])

    semantic_matcher = SemanticMatcher(Forgetful(CAPITALS), Redactor())
    verdict = await semantic_matcher.decide(
        check("Paris"), Transcript(turns=(build.turn(1, agent="Rome"),), status=EndState.COMPLETED)
    )
    assert (verdict.cause, verdict.reason.endswith("it gave 1 vectors for 2 texts")) == (
        Cause.JUDGE_ERROR,
        True,
    )


async def test_what_the_page_says_of_each_case():
    """Row by row."""
    evaluation = check("Paris")
    played = {
        "the similarity is `threshold` or more": (await decide(evaluation, "the capital"))[0],
        "it is less": (await decide(evaluation, "Berlin"))[0],
        "the reply is empty": (await decide(evaluation, ""))[0],
        "there is no embedding model": (await graded(evaluation))[0],
        "the model cannot be reached, or its answer cannot be read": (
            await decide(evaluation, "x", vectors=LLMError("down"))
        )[0],
        "the provider refuses the key": (await decide(evaluation, "x", vectors=LLMAccessError("no")))[0],
    }
    rows = table("semantic: case", (ROOT / "docs" / "answers.md").read_text())
    assert [what for what, _ in rows] == list(played)
    for what, text in rows:
        verdict = played[what]
        texts = [verdict.outcome.value, *([verdict.cause.value] if verdict.cause else [])]
        assert [code(part) for part in text.split(", ")][: len(texts)] == texts


async def graded(*evaluations, **models):
    test = Test(name="t", guidelines="g", turns=[{"user": "x"}], evaluations=evaluations)
    transcript = Transcript(turns=(build.turn(1, agent="Paris"),), status=EndState.COMPLETED)
    return await grade(test, test.turns, transcript, NO_JUDGE, **models)


async def test_without_a_model():
    """Only meanings need one; the others are decided."""
    meaning, text = await graded(check("Paris"), check("Paris", match="exact"))
    assert (meaning.kind, meaning.strict, meaning.cause) == ("strict", "answer_matches", Cause.NO_MODEL)
    assert text.outcome is Outcome.PASSED
    (finding,) = await graded(
        check("Paris"), semantic_matcher=SemanticMatcher(fakes.ScriptedEmbedder(CAPITALS), Redactor())
    )
    assert finding.outcome is Outcome.PASSED


vector = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=4)


@given(vector, vector)
def test_the_cosine(one, other):
    """Symmetric, within its bounds, and 1 for a vector with itself; it never raises."""
    found = cosine(one, other)
    assert found == cosine(other, one)
    assert found is None or -1 <= found <= 1
    assert cosine(one, one) in {None, 1}
