"""Limits that servers set, as a run meets them: keys that are refused, and rates."""

import json
import time
from contextlib import AsyncExitStack
from functools import partial

import endpoints
import fakes
import pytest
import world

from ci_evals import create_adapter, load_suite
from ci_evals import run_suite as run_any_suite
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents
from ci_evals.wiring.connections import Connections

run_suite = partial(run_any_suite, judge_check="off")
VERDICT = fakes.judge_answer("pass", "It greets.")


def one_test(turns: list[str], evaluation: object) -> dict[str, object]:
    return {
        "name": "T",
        "guidelines": "You say hello.",
        "turns": [{"user": turn} for turn in turns],
        "maxTurns": len(turns),
        "evaluations": [evaluation],
    }


def suite(adapter: str, turns: list[str], base_url: str, tests: int = 50, criterion: object = None) -> object:
    """Many tests, which want a judge if nothing else is said."""
    test = one_test(turns, criterion or {"criterion": "Kind"})
    return load_suite(
        {
            "name": "S",
            "adapter": adapter,
            "baseUrl": base_url,
            "apiKey": "some-agent-key",
            "agentId": "a1",
            "tests": [{**test, "name": f"T{number}"} for number in range(tests)],
        }
    )


@pytest.fixture
def models(monkeypatch):
    with world.llm(lambda asked: VERDICT if asked.wants_json else "Hello?") as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", models.url)
        yield models


PARALLEL = 3


def trials_of(results: Results) -> list[TrialResult]:
    return [trial for suite in results.suites for test in suite.tests for trial in test.trials]


def assert_stopped_at_once(results: Results, agent: world.StubAgent, turns: int) -> None:
    """Only those conversations had begun that play at a time, and those that may wait for a judge."""
    assert results.gate.exit_code == Exit.INVALID
    assert results.run.status == "stopped"
    assert 0 < results.counts.trials <= 2 * PARALLEL
    assert results.counts.trials + results.counts.not_run == 50
    assert len(agent.heard) <= turns * results.counts.trials
    assert all(
        trial.infrastructure_failed or trial.status is EndState.INTERRUPTED for trial in trials_of(results)
    )


@pytest.mark.parametrize(
    ("provider", "key", "listing"),
    [
        ("openai", "wrong-llm-key", None),
        ("anthropic", "wrong-llm-key", None),
        ("openai", world.LLM_KEY, world.NO_QUOTA),
    ],
)
async def test_wrong_llm_key_or_exhausted_quota_stops_run_at_first_messages(models, provider, key, listing):
    """Messages to the agent may cost money too; each call of a model is made once."""
    models.listing = listing
    lines = ["Hello", "Hello" if listing else "auto"]
    with world.agent() as agent:
        adapter = create_adapter(provider=provider, llm_key=key, agent_key=agent.key)
        results = await run_suite(adapter, suite("aui", lines, agent.url), parallel=PARALLEL)
        assert_stopped_at_once(results, agent, turns=2 if listing else 1)
    if not listing:
        assert "refused the key (401)" in (results.run.stopped_because or "")
        assert len(models.asked) <= PARALLEL
    assert models.listed <= 1


async def test_wrong_llm_key_interrupts_conversations_under_way(models):
    with world.agent(lambda heard: time.sleep(0.2) or world.message("Hi")) as agent:
        adapter = create_adapter(llm_key="wrong-llm-key", agent_key=agent.key)
        results = await run_suite(adapter, suite("aui", ["Hello"] * 50, agent.url), parallel=PARALLEL)
        assert_stopped_at_once(results, agent, turns=20)
    assert {trial.status for trial in trials_of(results)} == {EndState.INTERRUPTED}
    assert models.asked == []


async def test_llm_key_is_not_checked_if_no_model_is_needed(models):
    with world.agent() as agent:
        adapter = create_adapter(provider="offline", agent_key=agent.key)
        await run_suite(adapter, suite("aui", ["Hello"], agent.url, tests=1))
        hears = {"criterion": "Hears", "strict": "contains", "text": "Hello"}
        adapter = create_adapter(llm_key="wrong-llm-key", agent_key=agent.key)
        results = await run_suite(adapter, suite("aui", ["Hello"], agent.url, 1, hears))
    assert results.gate.passed
    assert models.listed == 0


@pytest.mark.parametrize("turns", [["Hello", "auto"], ["auto"]])
@pytest.mark.parametrize("kind", ["aui", "openai"])
async def test_wrong_agent_key_stops_run_before_any_model_call(models, kind, turns):
    with world.agent() as aui, endpoints.serving(lambda asked: endpoints.completion("Hi")) as chat:
        url = {"aui": aui.url, "openai": chat.url}[kind]
        adapter = create_adapter(llm_key=models.key, agent_key="wrong-agent-key")
        results = await run_suite(adapter, suite(kind, turns, url), parallel=50)
        assert len(aui.requests) + len(chat.asked) <= 50
    assert results.gate.exit_code == Exit.INVALID
    assert "refused the key (401)" in (results.run.stopped_because or "")
    assert models.asked == []


async def test_agent_whose_models_endpoint_answers_401_is_accepted(models):
    def answer(asked):
        if asked.method == "GET":
            return world.fault(401, "this path is closed to everybody")
        return endpoints.completion("Hi") if "messages" in asked.body else world.fault(422)

    with endpoints.serving(answer) as chat:
        adapter = create_adapter(llm_key=models.key, agent_key=chat.key)
        results = await run_suite(adapter, suite("openai", ["auto"], chat.url, tests=1))
    assert results.gate.passed
    assert [asked.method for asked in chat.asked][:2] == ["GET", "POST"]


async def test_rate_limits_of_agent_and_model_are_warnings(models):
    """None that was not met is named."""
    fault = world.fault(429, retry_after="0.001")
    models.faults = [fault] * 2
    with world.agent() as agent:
        suites = suite("aui", ["Hello"], agent.url, tests=1)
        agent.faults = [fault] * 3
        adapter = create_adapter(llm_key=models.key, agent_key=agent.key, judge_model="j", user_model="u")
        results = await run_suite(adapter, suites)
        unlimited = await run_suite(adapter, suites)
    of_agent, of_model = results.run.warnings[-2:]
    host = agent.url.removeprefix("http://")
    assert of_agent.startswith(f"the agent at {host} limited the rate 3 times (429): calls waited ")
    host = models.url.removeprefix("http://")
    assert of_model.startswith(f"OpenAI at {host} (j) limited the rate 2 times (429): calls waited ")
    assert of_model.endswith(" s in total, at least 1 at a time")
    assert results.gate.passed
    assert "limited" not in json.dumps(unlimited.run.warnings)


def test_suites_with_same_server_and_key_share_rate_limiter():
    agents = RunAgents(Connections(), Redactor(), AsyncExitStack())
    one = agents.limiter("https://agent.example/v1", "key")
    assert agents.limiter("https://agent.example/v2/", " key ") is one
    assert agents.limiter("https://agent.example/v1", "other") is not one
    assert agents.limiter("https://agent.example:8443/v1", "key") is not one
