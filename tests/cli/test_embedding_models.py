"""Semantic checks on the command line, with embedding models of providers and local ones."""

import xml.etree.ElementTree as ET

import pytest
import static_model
import world
from commands import ci_evals, read_results, write_suite
from exits import exits

pytestmark = pytest.mark.slow
MEANING = {"criterion": "City", "strict": "answer_matches", "match": "semantic", "expected": "Paris"}
TEXT = {"criterion": "It says so", "strict": "answer_matches", "expected": "Lutetia"}
TEST = {"evaluations": [MEANING, TEXT]}


@pytest.fixture
def agent():
    with world.agent(lambda heard: world.message("Lutetia")) as served:
        yield served


@pytest.fixture
def models():
    with world.llm() as served:
        served.embed = lambda text: [1.0, 0.0]
        yield served


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return static_model.write_model(tmp_path_factory.mktemp("model"))


def env_of(agent, models=None) -> dict[str, str]:
    return {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | (models.env if models else {})


def test_embedding_model_usage_and_cost_are_reported_and_max_cost_needs_its_price(tmp_path, agent, models):
    name = "text-embedding-3-small"
    suite, env = write_suite(tmp_path, TEST), env_of(agent, models)
    ran = exits(0, "run", suite, "--loops=2", cwd=tmp_path, env=env)
    assert [body["model"] for body in models.embedded] == [name] * 2
    results = read_results(tmp_path)
    (used,) = results["usage"]["byRole"]
    counts = (used["role"], used["model"], used["calls"], used["inputTokens"])
    assert (counts, used["costUsd"]) == (("embedder", name, 2, 12), pytest.approx(12 * 0.02 / 1e6))
    (of_suite,) = results["suites"]
    assert of_suite["embeddingModel"] == name
    head = (tmp_path / "results" / of_suite["folder"] / "_summary.md").read_text()
    assert f"| embedding model | {name} |" in head
    properties = ET.parse(tmp_path / "results/junit.xml").getroot().iter("property")
    assert {p.get("name"): p.get("value") for p in properties}["embedding-model"] == name
    args = ("run", suite, "--embedding-model=my-vectors")
    ran = exits(0, *args, cwd=tmp_path, env=env)
    usage = read_results(tmp_path)["usage"]
    assert (usage["costUsd"], usage["unpriced"]) == (None, ["my-vectors"])
    ran = ci_evals(*args, "--max-cost=1", cwd=tmp_path, env=env)
    assert (ran.returncode, "--max-cost: there is no price for my-vectors" in ran.stderr) == (2, True)


def test_embedding_error_leaves_check_undecided_and_refused_key_stops_run(tmp_path, agent, models):
    models.always = world.fault(400, "this model does not embed")
    ran = exits(3, "run", write_suite(tmp_path, TEST), cwd=tmp_path, env=env_of(agent, models))
    assert "the embedding model could not be asked: OpenAI" in ran.stdout
    findings = read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["findings"]
    assert [(f["outcome"], f["cause"]) for f in findings] == [("undecided", "judge_error"), ("passed", None)]
    models.always = world.UNAUTHORIZED
    suite = write_suite(tmp_path, *({**TEST, "name": f"t{i}"} for i in range(4)))
    ran = exits(3, "run", suite, cwd=tmp_path, env=env_of(agent, models))
    assert "refused the key" in read_results(tmp_path)["run"]["stoppedBecause"]


def test_semantic_check_needs_key_or_local_model_and_other_checks_need_neither(tmp_path, agent, folder):
    suite = write_suite(tmp_path, TEST)
    ran = ci_evals("run", suite, cwd=tmp_path, env=env_of(agent))
    assert (ran.returncode, agent.requests) == (2, [])
    assert ran.stderr.startswith("error: no key for the LLM (openai)")
    for model, message in (
        ("m", "the provider offline has no embedding models"),
        ("local:./m", "there is no such folder"),
    ):
        args = ("--provider=offline", f"--embedding-model={model}")
        ran = ci_evals("run", suite, *args, cwd=tmp_path, env=env_of(agent))
        assert (ran.returncode, agent.requests, message in ran.stderr) == (2, [], True)
    ran = exits(0, "run", suite, f"--embedding-model=local:{folder}", cwd=tmp_path, env=env_of(agent))
    text = write_suite(tmp_path, {"evaluations": [TEXT]})
    assert ci_evals("run", text, cwd=tmp_path, env=env_of(agent)).returncode == 0
    assert ci_evals("run", text, *args, cwd=tmp_path, env=env_of(agent)).returncode == 0
    assert read_results(tmp_path)["suites"][0]["embeddingModel"] is None


def test_offline_run_without_embedding_model_has_no_verdict(tmp_path, agent):
    """Only a missing judge is excused there."""
    suite = write_suite(tmp_path, TEST)
    ran = exits(3, "run", suite, "--provider=offline", cwd=tmp_path, env=env_of(agent))
    assert "no embedding model" in ran.stdout
    assert "embedding-model" in (tmp_path / "results/summary.md").read_text()
    case = next(ET.parse(tmp_path / "results/junit.xml").getroot().iter("testcase"))
    assert case.find("error") is not None
    results = read_results(tmp_path)
    assert results["suites"][0]["tests"][0]["trials"][0]["findings"][0]["cause"] == "no_model"
    assert results["suites"][0]["embeddingModel"] is None
    assert results["gate"]["checks"][0]["seenIfUndecidedFailed"] == 50


@pytest.mark.parametrize("provider", ["offline", "openai"])
def test_local_embedding_model_decides_checks_with_every_provider_at_no_cost(
    tmp_path, agent, folder, provider
):
    wrong = MEANING | {"expected": ["dog", "cat"]}
    suite = write_suite(tmp_path, TEST, {"name": "Wrong", "evaluations": [wrong]})
    args = (f"--provider={provider}", f"--embedding-model=local:{folder}", "--max-cost=0")
    ran = exits(1, "run", suite, *args, cwd=tmp_path, env=env_of(agent))
    assert "reply 1 does not mean 'cat' (semantic; similarity 0.21" in ran.stdout
    results = read_results(tmp_path)
    assert [test["outcome"] for test in results["suites"][0]["tests"]] == ["passed", "failed"]
    assert (results["usage"]["costUsd"], results["usage"]["unpriced"]) == (0, [])
    assert results["suites"][0]["embeddingModel"] == f"local:{folder}"


def test_plan_counts_calls_of_embedding_model(tmp_path, agent):
    suite = write_suite(tmp_path, TEST, {"name": "Any", "evaluations": [MEANING | {"turn": "any"}]})
    ran = ci_evals("plan", suite, "--loops=3", cwd=tmp_path, env=env_of(agent))
    assert "judge 0, embedding model 6\n" in ran.stdout
    assert "(text-embedding-3-small; prices of" in ran.stdout
    for args in (("--provider=offline",), ("--provider=anthropic",)):
        ran = ci_evals("plan", suite, *args, cwd=tmp_path, env=env_of(agent))
        assert "embedding" not in ran.stdout
    ran = ci_evals("plan", suite, "--embedding-model=local:x/y", cwd=tmp_path, env=env_of(agent))
    assert "embedding model 2\n" in ran.stdout
    assert "cost        none" in ran.stdout
    text = write_suite(tmp_path, {"evaluations": [TEXT]})
    assert "embedding" not in ci_evals("plan", text, cwd=tmp_path, env=env_of(agent)).stdout
