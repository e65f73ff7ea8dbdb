"""The cost of a run: unknown, and never zero, if an answer has no valid token counts."""

import json

import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite
from exits import exits

pytestmark = pytest.mark.slow
TEST = {"evaluations": [{"criterion": "Is polite"}]}
PASS = fakes.judge_answer("pass", "It greets.", (1, "You said: Hello"))
PRICES = {"models": {"judge": {"input": 1000, "output": 1000}, "free": {"input": 0, "output": 0}}}
TESTS = 10


@pytest.fixture
def models():
    with world.llm(lambda asked: PASS if asked.wants_json else "Hello?") as models:
        yield models


def run(folder, models, *options, provider="openai", judge="judge", test=TEST, command="run"):
    with world.agent() as agent:
        tests = [{"name": f"T{number}", **test} for number in range(TESTS)]
        write_suite(folder, *tests, judgeModel=judge, userModel="judge")
        (folder / "prices.json").write_text(json.dumps(PRICES))
        env = models.env | {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        options = (f"--provider={provider}", "--prices=prices.json", "--judge-cache=off", *options)
        return ci_evals(command, "suite.json", *options, cwd=folder, env=env)


def with_count(index, value):
    return lambda counts: counts | {list(counts)[index]: value}


def only_judge(usage):
    (judge,) = usage["byRole"]
    return judge


@pytest.mark.parametrize(
    "say",
    [
        lambda _: None,
        with_count(1, -5),
        lambda counts: counts | {"prompt_tokens_details": {"cached_tokens": 22}},
    ],
    ids=["none", "negative", "cached"],
)
def test_unknown_cost_stops_run_with_budget(tmp_path, models, say):
    models.usage = lambda _, counts: say(counts)
    ran = run(tmp_path, models, "--max-cost=100", "--parallel=2")
    assert ran.returncode == 3, ran.stdout
    results = read_results(tmp_path)
    (check,) = [one for one in results["gate"]["checks"] if one["name"] == "max-cost"]
    assert (check["holds"], check["seen"], results["usage"]["costUsd"]) == (False, None, None)
    assert results["run"]["status"] == "stopped"
    assert "max-cost" in results["run"]["stoppedBecause"]
    assert "judge" in results["run"]["stoppedBecause"]
    assert len(models.asked) < 8


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "unknown", [lambda _: None, with_count(0, -1), with_count(1, "5")], ids=["none", "negative", "text"]
)
def test_one_answer_of_unknown_cost_makes_whole_cost_unknown(tmp_path, models, provider, unknown):
    models.usage = lambda number, counts: unknown(counts) if number == 7 else counts
    ran = run(tmp_path, models, "--record=tape", provider=provider)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    usage, judge = read_results(tmp_path)["usage"], only_judge(read_results(tmp_path)["usage"])
    assert usage["costUsd"] is None
    assert (judge["calls"], judge["uncounted"], judge["costUsd"]) == (TESTS, 1, None)
    assert "The cost of judge is unknown: 1 of 10 answers without a usable count of tokens." in ran.stdout
    assert "The cost of judge is unknown" in (tmp_path / "results/summary.md").read_text()
    ran = run(tmp_path, models, "--replay=tape", provider=provider)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["usage"] == usage


def test_model_priced_at_0_costs_nothing_without_token_counts(tmp_path, models):
    models.usage = lambda *_: None
    ran = run(tmp_path, models, "--max-cost=0", judge="free")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["usage"]["costUsd"] == 0


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_unusable_answer_counts_toward_budget(tmp_path, models, provider):
    """One that is cut off at the token limit."""
    models.truncates = True
    ran = run(tmp_path, models, "--max-cost=0.2", provider=provider)
    assert ran.returncode == 3
    results = read_results(tmp_path)
    assert "would exceed max-cost" in results["run"]["stoppedBecause"]
    assert results["usage"]["costUsd"] == pytest.approx(0.026 * len(models.asked))
    assert len(models.asked) <= 8


def test_unknown_cost_of_embeddings_or_rejudging_stops_run_with_budget(tmp_path, models):
    models.usage = lambda *_: {"prompt_tokens": "3"}
    meaning = {"criterion": "Says it", "strict": "answer_matches", "expected": "Hello", "match": "semantic"}
    options = ("--max-cost=100", "--embedding-model=judge")
    ran = run(tmp_path, models, *options, test={"evaluations": [meaning]})
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert len(models.embedded) < 8
    assert read_results(tmp_path)["usage"]["costUsd"] is None
    models.usage = lambda _, counts: counts
    run(tmp_path, models)
    models.asked.clear()
    models.usage = lambda *_: None
    options = ("--judge-model=judge", "--prices=prices.json", "--max-cost=100", "--output-dir=again")
    ran = exits(3, "rejudge", "results", *options, cwd=tmp_path, env=models.env | {"CI_EVALS_PARALLEL": "2"})
    assert len(models.asked) < 8
    results = json.loads((tmp_path / "again/_results.json").read_text())
    assert results["usage"]["costUsd"] is None
    assert "max-cost" in results["run"]["stoppedBecause"]


def test_short_key_causes_warning_unless_it_is_a_placeholder(tmp_path, models):
    """A local server accepts any key."""
    for key, warned in (("none", False), ("hunter2", True)):
        models.key = key
        ran = run(tmp_path, models, "--test=T9")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ("a key has fewer than 8 characters" in ran.stderr) is warned
