import math

import builders as build
import fakes
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

CAPITALS = {"Paris": (1, 0), "the capital": (0.8, 0.6), "Berlin": (0.6, 0.8), "Rome": (0, 1)}


def check(*expected: str, **fields) -> AnswerMatches:
    fixed = {"criterion": "c", "strict": "answer_matches", "match": "semantic", "expected": expected}
    return AnswerMatches.model_validate(fixed | fields)


def transcript_of(*replies: str) -> Transcript:
    turns = tuple(build.turn(index, agent=text) for index, text in enumerate(replies, start=1))
    return Transcript(turns=turns, status=EndState.COMPLETED)


async def decide(
    evaluation, *replies, vectors=CAPITALS, redactor=None
) -> tuple[Verdict, fakes.ScriptedEmbedder]:
    embedder = fakes.ScriptedEmbedder(vectors)
    matcher = SemanticMatcher(embedder, redactor or Redactor())
    return await matcher.decide(evaluation, transcript_of(*replies)), embedder


async def test_similarity_equal_to_or_above_threshold_passes():
    verdict, _ = await decide(check("Paris"), "the capital")
    reason = "reply 1 means 'Paris' (semantic; similarity 0.800, at least 0.8 required): 'the capital'"
    assert verdict == Verdict.passed(reason, 1)
    verdict, _ = await decide(check("Paris", "Rome", threshold=0.9), "Berlin")
    reason = "reply 1 does not mean 'Rome' (semantic; similarity 0.800, at least 0.9 required): 'Berlin'"
    assert verdict == Verdict.failed(reason, 1)


async def test_distinct_redacted_texts_but_no_empty_replies_are_embedded_in_one_call():
    verdict, embedder = await decide(check("Paris", "Rome", turn="any"), "Rome", "Berlin", "", "Rome")
    assert (verdict.evidence, embedder.asked) == ((1,), [("Rome", "Paris", "Berlin")])
    redactor = Redactor(keys=["key-123456"])
    settings = {"vectors": lambda _: (1, 1), "redactor": redactor}
    verdict, embedder = await decide(check("Paris"), "key-123456 Paris", **settings)
    assert embedder.asked == [("*** Paris", "Paris")]
    assert verdict.outcome is Outcome.PASSED
    verdict, embedder = await decide(check("Paris"), "Paris", " \n")
    assert (verdict, embedder.asked) == (Verdict.failed("no answer in reply 2", 2), [])
    verdict, embedder = await decide(check("Paris", turn=3), "Paris")
    assert (verdict.cause, embedder.asked) == (Cause.NO_EVIDENCE, [])


async def test_unusable_vectors_leave_semantic_check_undecided_or_are_a_judge_error():
    for error in (LLMError("it is down"), LLMAnswerError("it is odd"), LLMAccessError("no")):
        verdict, _ = await decide(check("Paris"), "Paris", vectors=error)
        reason = f"the embedding model could not be asked: {error}"
        assert (verdict.cause, verdict.reason) == (Cause.JUDGE_ERROR, reason)

    class Forgetful(fakes.ScriptedEmbedder):
        async def embed(self, texts):
            return await super().embed(texts[:1])

    matcher = SemanticMatcher(Forgetful(CAPITALS), Redactor())
    verdict = await matcher.decide(check("Paris"), transcript_of("Rome"))
    assert verdict.cause is Cause.JUDGE_ERROR
    assert verdict.reason.endswith("it gave 1 vectors for 2 texts")
    for vectors in ((0, 0), (), (math.nan, 1), (math.inf, 1), (1e200, 1e200)):
        verdict, _ = await decide(check("Paris"), "Rome", vectors={"Paris": (1, 0), "Rome": vectors})
        assert verdict.outcome is (Outcome.FAILED if vectors == (1e200, 1e200) else Outcome.UNDECIDED)


async def test_outcomes_of_semantic_matches_agree_with_the_docs():
    evaluation = check("Paris")

    async def verdict_of(text: str, **fields) -> Verdict:
        return (await decide(evaluation, text, **fields))[0]

    verdicts = {
        "the similarity is `threshold` or more": await verdict_of("the capital"),
        "it is less": await verdict_of("Berlin"),
        "the reply is empty": await verdict_of(""),
        "there is no embedding model": (await graded(evaluation))[0],
        "the model cannot be reached, or its answer cannot be read": (
            await verdict_of("x", vectors=LLMError("down"))
        ),
        "the provider refuses the key": await verdict_of("x", vectors=LLMAccessError("no")),
    }
    rows = table("semantic: case", (ROOT / "docs" / "answers.md").read_text())
    assert [case for case, _ in rows] == list(verdicts)
    for case, text in rows:
        verdict = verdicts[case]
        expected = [verdict.outcome.value, *([verdict.cause.value] if verdict.cause else [])]
        assert [code(part) for part in text.split(", ")][: len(expected)] == expected


async def graded(*evaluations, **models):
    test = Test(name="t", guidelines="g", turns=[{"user": "x"}], evaluations=evaluations)
    return await grade(test, test.turns, transcript_of("Paris"), NO_JUDGE, **models)


async def test_only_semantic_matches_need_an_embedding_model():
    meaning, text = await graded(check("Paris"), check("Paris", match="exact"))
    assert (meaning.kind, meaning.strict, meaning.cause) == ("strict", "answer_matches", Cause.NO_MODEL)
    assert text.outcome is Outcome.PASSED
    matcher = SemanticMatcher(fakes.ScriptedEmbedder(CAPITALS), Redactor())
    (finding,) = await graded(check("Paris"), semantic_matcher=matcher)
    assert finding.outcome is Outcome.PASSED


vector = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=4)


@given(vector, vector)
def test_cosine_is_symmetric_and_bounded(one, other):
    result = cosine(one, other)
    assert result == cosine(other, one)
    assert result is None or -1 <= result <= 1
    assert cosine(one, one) in {None, 1}
