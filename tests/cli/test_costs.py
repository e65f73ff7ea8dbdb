"""What a run cost: known where every answer told its tokens believably, else unknown, and never nothing."""

import json

import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite

pytestmark = pytest.mark.slow

TEST = {
    "guidelines": "You say hello.",
    "turns": [{"user": "Hello"}],
    "maxTurns": 1,
    "evaluations": [{"criterion": "Is polite"}],
}
PASS = fakes.judge_answer("pass", "It greets.", (1, "You said: Hello"))
PRICES = {"models": {"judge": {"input": 1000, "output": 1000}, "free": {"input": 0, "output": 0}}}
TESTS = 30


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


COUNTS = {"openai": ("prompt_tokens", "completion_tokens"), "anthropic": ("input_tokens", "output_tokens")}


def odd(place, value):
    """Counts that are true but for one."""
    return lambda counts: counts | {list(counts)[place]: value}


@pytest.mark.parametrize(
    "say",
    [
        lambda _: None,
        odd(1, -5),
        lambda counts: counts | {"prompt_tokens_details": {"cached_tokens": 22}},
    ],
    ids=["none", "negative", "cached"],
)
def test_a_budget_that_cannot_be_measured_cannot_hold(tmp_path, models, say):
    """After the first answer of unknown cost no trial begins, the check fails, and no verdict is given."""
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
    "unknown", [lambda _: None, odd(0, -1), odd(1, "5")], ids=["none", "negative", "text"]
)
def test_one_answer_of_unknown_cost_leaves_the_whole_unknown(tmp_path, models, provider, unknown):
    """The other 29 told theirs. Without a budget that changes no verdict, and it is said."""
    models.usage = lambda number, counts: unknown(counts) if number == 7 else counts
    ran = run(tmp_path, models, provider=provider)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    usage = read_results(tmp_path)["usage"]
    assert usage["costUsd"] is None
    (judge,) = usage["byRole"]
    assert (judge["calls"], judge["uncounted"], judge["costUsd"]) == (TESTS, 1, None)
    assert "The cost of judge is unknown: 1 of 30 answers without a usable count of tokens." in ran.stdout
    assert "The cost of judge is unknown" in (tmp_path / "results/summary.md").read_text()


def test_free_models_cost_nothing(tmp_path, models):
    """A model of one's own that is priced at 0."""
    models.usage = lambda *_: None
    ran = run(tmp_path, models, "--max-cost=0", judge="free")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["usage"]["costUsd"] == 0


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_answer_of_no_use_is_paid_for(tmp_path, models, provider):
    """One that is cut off at the token limit costs what it says, and a budget ends the run."""
    models.truncates = True
    ran = run(tmp_path, models, "--max-cost=0.2", provider=provider)
    assert ran.returncode == 3
    results = read_results(tmp_path)
    assert "would exceed max-cost" in results["run"]["stoppedBecause"]
    assert results["usage"]["costUsd"] == pytest.approx(0.026 * len(models.asked))
    assert len(models.asked) <= 8


def test_vectors_of_unknown_cost_end_a_run_with_a_budget(tmp_path, models):
    """As answers do."""
    models.usage = lambda *_: {"prompt_tokens": "3"}
    meaning = {"criterion": "Says it", "strict": "answer_matches", "expected": "Hello", "match": "semantic"}
    ran = run(
        tmp_path, models, "--max-cost=100", "--embedding-model=judge", test=TEST | {"evaluations": [meaning]}
    )
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert len(models.embedded) < 8
    assert read_results(tmp_path)["usage"]["costUsd"] is None


def test_a_budget_of_judging_again_ends_at_an_unknown_cost(tmp_path, models):
    """`rejudge` begins no more."""
    run(tmp_path, models)
    models.asked.clear()
    models.usage = lambda *_: None
    options = ("--judge-model=judge", "--prices=prices.json", "--max-cost=100", "--output-dir=again")
    ran = ci_evals("rejudge", "results", *options, cwd=tmp_path, env=models.env | {"CI_EVALS_PARALLEL": "2"})
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert len(models.asked) < 8
    results = json.loads((tmp_path / "again/_results.json").read_text())
    assert results["usage"]["costUsd"] is None
    assert "max-cost" in results["run"]["stoppedBecause"]


def test_a_recording_knows_what_is_not_known(tmp_path, models):
    """A replay tells the same of it as the run did."""
    models.usage = lambda number, counts: None if number == 7 else counts
    run(tmp_path, models, "--record=tape")
    then = read_results(tmp_path)["usage"]
    ran = run(tmp_path, models, "--replay=tape")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(tmp_path)["usage"] == then


@pytest.mark.parametrize(("key", "warned"), [("none", False), ("hunter2", True)])
def test_a_word_in_place_of_a_key_is_no_short_key(tmp_path, models, key, warned):
    """A server on this machine takes any; of a real key that is too short people are warned."""
    models.key = key
    ran = run(tmp_path, models, "--test=T29")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ("a key has fewer than 8 characters" in ran.stderr) is warned
