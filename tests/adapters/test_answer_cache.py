"""The cache of answers, and a model behind it: what was accepted comes back, and nothing else ever does."""

import asyncio
import hmac
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import builders as build
import fakes
import pytest
from fakes import ScriptedLLM
from plans import make_plan

from ci_evals.adapters.answer_cache import MAX_CHARACTERS, MAX_DAYS, AnswerCache
from ci_evals.adapters.models.cached_llm import CachedLLM
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.grading.judge import Judge
from ci_evals.metering import MeteredLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

SIGNS, MODEL = b"signs", "judge"
KEY, OTHER = "ab" * 32, "cd" * 32
ANSWER = '{"reasoning": "So it is. \\u00e9 \ud83d", "verdict": "pass"}'
DAY = 86_400


def open_cache(folder, **options):
    return AnswerCache(folder / "cache", options.pop("redactor", Redactor()), SIGNS, **options)


def entry_file(folder, key=KEY):
    return folder / "cache" / key[:2] / f"{key}.json"


def test_cached_answer_is_found_for_same_key_and_folder_and_only_its_owner_reads_it(tmp_path):
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER
    assert open_cache(tmp_path).find(OTHER, MODEL) is None
    assert open_cache(tmp_path / "elsewhere").find(KEY, MODEL) is None
    if os.name == "posix":  # Conversations are quoted there.
        paths = (file := entry_file(tmp_path), file.parent, file.parent.parent)
        assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600, 0o700, 0o700]


def signed_entry(signs=SIGNS, **changed):
    """A file with a good signature of whatever is in it."""
    kept = {"version": 2, "key": KEY, "model": MODEL, "answer": ANSWER, "at": int(time.time())} | changed
    signed = json.dumps([kept[name] for name in ("version", "key", "model", "answer", "at")]).encode()
    return json.dumps({"signature": hmac.new(signs, signed, "sha256").hexdigest()} | kept)


NOW = int(time.time())
BAD_ENTRIES = [
    "", signed_entry()[:-9], "[]", "null", "[" * 100_000, signed_entry() + " " * 1_000_000, b"\xff\xfe\x00",
    signed_entry(version=1), signed_entry(version="2"), signed_entry(version=True),
    signed_entry(model="another"), signed_entry(key=OTHER),
    signed_entry(at=NOW + 2 * DAY), signed_entry(at=NOW - (MAX_DAYS + 1) * DAY), signed_entry(at=True),
    signed_entry(at=1e300),
    signed_entry(signs=b"another key"), signed_entry(signature=None), signed_entry(signature="\ud800"),
    signed_entry(answer=None), signed_entry(answer=""), signed_entry(answer={"verdict": "pass"}),
    signed_entry(answer="x" * (MAX_CHARACTERS + 1)),
    json.dumps(json.loads(signed_entry()) | {"answer": "another"}),
    json.dumps(json.loads(signed_entry()) | {"at": NOW - DAY}),
    json.dumps(json.loads(signed_entry(at=NOW - 40 * DAY)) | {"at": NOW}),
]  # fmt: skip


def test_invalid_cache_entry_is_skipped_and_replaced(tmp_path):
    file = entry_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(signed_entry())
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER
    for text in BAD_ENTRIES:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert open_cache(tmp_path).find(KEY, MODEL) is None, text[:200]
        open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
        assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER, text[:200]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
def test_symbolic_links_and_pipes_are_not_read(tmp_path):
    """A link may lead to what somebody else wrote, and a pipe would be waited for."""
    file = entry_file(tmp_path)
    file.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text(signed_entry())
    assert json.loads((tmp_path / "elsewhere.json").read_text())["answer"] == ANSWER
    file.symlink_to(tmp_path / "elsewhere.json")
    assert open_cache(tmp_path).find(KEY, MODEL) is None
    file.unlink()
    os.mkfifo(file)
    kept = open_cache(tmp_path)
    assert kept.find(KEY, MODEL) is None
    kept.keep(KEY, MODEL, ANSWER)
    assert stat.S_ISFIFO(file.lstat().st_mode)  # as no output takes the place of one
    assert "it is a device, a pipe or a socket" in kept.note()
    file.unlink()
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER


def test_answer_with_a_secret_is_not_kept(tmp_path):
    """It would have to be changed, and is asked for again, so that it is never another one."""
    kept = open_cache(tmp_path, redactor=Redactor(keys=["secret-key-4711"]))
    kept.keep(KEY, MODEL, '{"reasoning": "It says secret-key-4711."}')
    kept.keep(OTHER, MODEL, '{"reasoning": "It says \\u0073ecret-key-4711."}')
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_concurrent_writers_never_leave_half_an_answer(tmp_path):
    answers = [json.dumps({"reasoning": str(number) * 20_000}) for number in range(4)]

    def work(answer):
        open_cache(tmp_path).keep(KEY, MODEL, answer)
        return open_cache(tmp_path).find(KEY, MODEL)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, answers * 20)) <= set(answers)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [f"{KEY}.json"]


def test_failed_write_is_reported_once_and_the_run_continues(tmp_path):
    (tmp_path / "cache").write_text("a file")
    kept = open_cache(tmp_path)
    assert kept.note() is None
    kept.keep(KEY, MODEL, ANSWER)
    kept.keep(OTHER, MODEL, ANSWER)
    assert kept.find(KEY, MODEL) is None
    kept.sweep()
    assert "cannot write" in kept.note()
    assert "the judge's answers are not kept" in kept.note()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_cache_folder_that_anyone_can_write_is_not_used(tmp_path):
    """Anybody could say there what the judge says."""
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (tmp_path / "cache").chmod(0o777)
    kept = open_cache(tmp_path)
    kept.keep(OTHER, MODEL, ANSWER)
    assert (kept.find(KEY, MODEL), kept.find(OTHER, MODEL)) == (None, None)
    assert "anyone can write" in kept.note()


def test_old_answers_expire_and_are_removed(tmp_path):
    """Not what others left in the folder; and not at every run."""
    late = NOW + (MAX_DAYS + 1) * DAY
    folder = tmp_path / "cache"
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (folder / "notes.txt").write_text("mine")
    (folder / "ab" / "notes.txt").write_text("mine")
    assert open_cache(tmp_path, clock=lambda: late - 2 * DAY).find(KEY, MODEL) == ANSWER
    assert open_cache(tmp_path, clock=lambda: late).find(KEY, MODEL) is None
    open_cache(tmp_path, clock=lambda: late).sweep()
    names = {file.relative_to(folder).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert names == {"notes.txt", "ab/notes.txt", "swept"}
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    os.utime(entry_file(tmp_path), (1, 1))
    open_cache(tmp_path).sweep()
    assert entry_file(tmp_path).exists()


PROMPT = Prompt(system="You judge.", text="Is it so?", schema={"a": 1, "b": 2}, sample_id="1/0/0")
WHO = ("run", "openai", "https://models.example/v1")


def cached_llm(folder, llm, who=WHO):
    return CachedLLM(llm, open_cache(folder), *who)


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


PASS, FAIL, CANNOT = answer("pass"), answer("fail"), answer("cannot_tell")
VOID = answer("pass", "Nobody said this")


def judge_trial(folder, llm, sample_id="1", votes=1):
    """The outcome of a verdict on a small conversation, and what it took."""
    test = make_plan({"name": "t", "guidelines": "g", "maxTurns": 1, "evaluations": [{"criterion": "c"}]})
    suite = test.suites[0].suite
    transcript = Transcript(turns=(build.turn(1, agent="All is well."),), status=EndState.COMPLETED)
    meter = MeteredLLM(cached_llm(folder, llm), "judge", lambda _: None)
    judge = Judge([meter], Redactor(), votes=votes, sample_id=sample_id)
    context = judge.context(suite.tests[0], suite.turns_of(suite.tests[0]), transcript)
    verdict = asyncio.run(context.decide(suite.tests[0].evaluations[0]))
    return verdict.outcome, meter.usage


@pytest.mark.parametrize("first", ["no JSON", VOID, CANNOT, LLMAnswerError("refuses")], ids=str)
def test_undecided_or_invalid_answer_is_not_cached(tmp_path, first):
    judge_trial(tmp_path, ScriptedLLM([first]))
    outcome, usage = judge_trial(tmp_path, ScriptedLLM([PASS]))
    assert (outcome, usage.cached) == ("passed", 0)
    outcome, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached, usage.cost_usd) == ("passed", 1, 1, 0.0)


def test_retry_after_void_answer_is_cached_separately(tmp_path):
    judge_trial(tmp_path, ScriptedLLM([VOID, FAIL]))
    outcome, usage = judge_trial(tmp_path, ScriptedLLM([VOID]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 2, 1)


def test_judge_is_asked_again_if_the_cached_answer_is_forged_or_void(tmp_path):
    judge_trial(tmp_path, ScriptedLLM([FAIL]))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"answer": PASS}))
    outcome, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 1, 0)
    # One that says nothing of the conversation is asked again.
    open_cache(tmp_path).keep(file.stem, "scripted-model", VOID)
    outcome, usage = judge_trial(tmp_path, ScriptedLLM([FAIL]))
    assert (outcome, usage.calls, usage.cached) == ("failed", 2, 1)


def test_trials_and_votes_have_separate_cache_entries(tmp_path):
    """One answer for two equal conversations would hide the judge's noise."""
    assert judge_trial(tmp_path, ScriptedLLM([PASS]), sample_id="1")[0] == "passed"
    assert judge_trial(tmp_path, ScriptedLLM([FAIL]), sample_id="2")[0] == "failed"
    votes = ScriptedLLM([FAIL, PASS, FAIL])
    judge_trial(tmp_path, votes, sample_id="3", votes=3)
    assert len(votes.prompts) == 3
    again = judge_trial(tmp_path, ScriptedLLM([PASS]), sample_id="3", votes=3)
    assert (again[0], again[1].cached) == ("failed", 3)
