"""A model with a cache before it: one answer for one question, and only where the answer was of use."""

import asyncio
import json
from dataclasses import replace

import builders as build
import fakes
import pytest
from fakes import ScriptedLLM
from plans import make_plan

from ci_evals.adapters.answer_cache import AnswerCache
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.grading.judge import Judge
from ci_evals.metering import MeteredLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

PROMPT = Prompt(system="You judge.", text="Is it so?", schema={"a": 1, "b": 2}, sample_id="1/0/0")
WHO = ("run", "openai", "https://models.example/v1")


def cached_llm(folder, llm, who=WHO):
    return CachedLLM(llm, AnswerCache(folder / "cache", Redactor(), b"signs"), *who)


def ask_cached(folder, llm, prompt=PROMPT, who=WHO, *, accept=True):
    completion = asyncio.run(cached_llm(folder, llm, who).complete(prompt))
    if accept:
        completion.accept()
    return completion


def test_equal_question_is_answered_from_the_cache_at_no_cost(tmp_path):
    first, second = ScriptedLLM(["yes"]), ScriptedLLM(["no"])
    assert ask_cached(tmp_path, first) == Completion("yes", input_tokens=100, output_tokens=10)
    assert ask_cached(tmp_path, second) == Completion("yes", cost_usd=0.0, cached=True)
    assert second.prompts == []


def test_cached_answer_is_not_used_for_changed_question_or_judge(tmp_path):
    """Its words, its form, the vote, the trial and the attempt; its model, provider, address and purpose."""
    ask_cached(tmp_path, ScriptedLLM(["yes"]))
    for change in [
        *({"system": "You judge strictly."}, {"text": "Is it not so?"}, {"schema_name": "verdict"}),
        *({"schema": {"b": 2, "a": 1}}, {"schema": None}),
        *({"sample_id": "1/0/1"}, {"sample_id": "1/1/0"}, {"sample_id": "2/0/0"}),
    ]:
        assert ask_cached(tmp_path, ScriptedLLM(["no"]), replace(PROMPT, **change)).text == "no", change
    for model, who in [
        ("other-model", WHO),
        ("scripted-model", ("run", "anthropic", WHO[2])),
        ("scripted-model", ("run", "openai", "https://other.example/v1")),
        ("scripted-model", ("rejudge", *WHO[1:])),
    ]:
        assert ask_cached(tmp_path, ScriptedLLM(["no"], model=model), who=who).text == "no", (model, who)


def test_rejected_answers_and_errors_are_not_cached(tmp_path):
    ask_cached(tmp_path, ScriptedLLM(["gibberish"]), accept=False)
    with pytest.raises(LLMAnswerError):
        ask_cached(tmp_path, ScriptedLLM([LLMAnswerError("refuses")]))
    assert ask_cached(tmp_path, ScriptedLLM(["yes"])).text == "yes"


def answer(verdict, quote="All is well"):
    return fakes.judge_answer(verdict, "So it is.", (1, quote))


PASS, FAIL = answer("pass"), answer("fail")
VOID, CANNOT = answer("pass", "Nobody said this"), answer("cannot_tell")


def judge_trial(folder, llm, sample_id="1", votes=1):
    """The outcome and cause of a verdict on a small conversation, and what it took."""
    test = make_plan({"name": "t", "guidelines": "g", "maxTurns": 1, "evaluations": [{"criterion": "c"}]})
    suite = test.suites[0].suite
    transcript = Transcript(turns=(build.turn(1, agent="All is well."),), status=EndState.COMPLETED)
    meter = MeteredLLM(cached_llm(folder, llm), "judge", lambda _: None)
    judge = Judge([meter], Redactor(), votes=votes, sample_id=sample_id)
    context = judge.context(suite.tests[0], suite.turns_of(suite.tests[0]), transcript)
    verdict = asyncio.run(context.decide(suite.tests[0].evaluations[0]))
    return verdict.outcome, verdict.cause, meter.usage


@pytest.mark.parametrize("first", ["no JSON", VOID, CANNOT, LLMAnswerError("refuses")], ids=str)
def test_undecided_or_invalid_judge_answer_is_not_cached(tmp_path, first):
    """One that cannot be read, rests on words that were never said, or does not decide is asked again."""
    judge_trial(tmp_path, ScriptedLLM([first]))
    outcome, _, usage = judge_trial(tmp_path, ScriptedLLM([PASS]))
    assert (outcome, usage.cached) == ("passed", 0)
    outcome, _, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached, usage.cost_usd) == ("passed", 1, 1, 0.0)


def test_retry_after_void_judge_answer_is_cached_separately(tmp_path):
    """The void first answer is asked for again, and the good second one is still there."""
    judge_trial(tmp_path, ScriptedLLM([VOID, FAIL]))
    outcome, _, usage = judge_trial(tmp_path, ScriptedLLM([VOID]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 2, 1)


def test_forged_cache_entry_is_ignored(tmp_path):
    """It has no good signature, so that the judge is asked."""
    judge_trial(tmp_path, ScriptedLLM([FAIL]))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"answer": PASS}))
    outcome, _, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 1, 0)


def test_cached_answer_is_checked_against_the_conversation(tmp_path):
    """It is asked again if it says nothing of it."""
    cache = AnswerCache(tmp_path / "cache", Redactor(), b"signs")
    judge_trial(tmp_path, ScriptedLLM([PASS]))
    (file,) = tmp_path.rglob("*.json")
    cache.keep(file.stem, "scripted-model", VOID)
    outcome, _, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 2, 1)


def test_trials_and_votes_have_separate_cache_entries(tmp_path):
    """One answer for two equal conversations would hide the judge's noise."""
    assert judge_trial(tmp_path, ScriptedLLM([PASS]), sample_id="1")[0] == "passed"
    assert judge_trial(tmp_path, ScriptedLLM([FAIL]), sample_id="2")[0] == "failed"
    votes = ScriptedLLM([FAIL, PASS, FAIL])
    judge_trial(tmp_path, votes, sample_id="3", votes=3)
    assert len(votes.prompts) == 3
    again = judge_trial(tmp_path, ScriptedLLM([PASS]), sample_id="3", votes=3)
    assert (again[0], again[2].cached) == ("failed", 3)
