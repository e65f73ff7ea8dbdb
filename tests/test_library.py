"""The main job as a library."""

import fakes
import pytest
import world
from commands import write_suite

import ci_evals
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.prices import Price, PriceTable
from ci_evals.ports import Completion
from ci_evals.runner import Cast
from ci_evals.scoring.gate import Policy


async def test_a_bundled_suite_offline():
    """Load, run, read the results, format them."""
    suite = ci_evals.load_suite("demo:hr")
    adapter = ci_evals.create_aui_adapter(provider="offline")
    results = await ci_evals.run_suite(adapter, suite, parallel=4, tag="happy-path")
    assert (results.score, results.gate.passed) == (100, True)
    assert "HR assistant" in ci_evals.format_suite_result(results)


async def test_an_aui_agent_with_models(tmp_path, monkeypatch):
    """The adapter's key and address come before the suite's."""
    with (
        world.agent() as agent,
        world.llm(lambda asked: '{"reasoning": "r", "verdict": "pass", "evidence": []}') as models,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        path = write_suite(tmp_path, {"evaluations": [{"criterion": "polite"}]}, apiKey="another-key")
        suite = ci_evals.load_suite(tmp_path / path)
        adapter = ci_evals.create_aui_adapter(agent.key, models.key, base_url=agent.url)
        results = await ci_evals.run_suite(adapter, suite)
    assert results.gate.passed
    assert world.AGENT_KEY not in results.model_dump_json()


async def test_a_bundled_suite_at_an_address():
    """Naming an agent takes it off the embedded one, as on the command line."""
    with world.agent() as agent:
        adapter = ci_evals.create_aui_adapter(agent.key, provider="offline", base_url=agent.url)
        results = await ci_evals.run_suite(adapter, ci_evals.load_suite("demo:hr"), test="vacation")
    assert agent.tasks
    assert results.suites[0].adapter == "aui"


async def test_a_bug_is_raised(tmp_path):
    """A library's caller gets the exception itself."""
    suite = ci_evals.load_suite(tmp_path / write_suite(tmp_path, apiKey="key-123456"))
    with pytest.raises(ZeroDivisionError):
        await ci_evals.run_suite(Cast(fakes.ScriptedAgent([ZeroDivisionError()])), suite)


async def test_an_agent_of_ones_own(tmp_path):
    """Any object with the port's methods; its suite needs neither id nor key of an agent."""
    suite = ci_evals.load_suite(tmp_path / write_suite(tmp_path, apiKey=None, agentId=None))
    agent = fakes.ScriptedAgent(["Hello"])
    results = await ci_evals.run_suite(Cast(agent), suite, loops=2, policy=Policy(min_score=100))
    assert [trial.status for trial in results.suites[0].tests[0].trials] == ["completed", "completed"]
    assert len(agent.sessions) == 2


def test_without_an_event_loop(tmp_path):
    """The blocking twin."""
    suite = ci_evals.load_suite("demo:retail")
    results = ci_evals.run_suite_sync(ci_evals.create_aui_adapter(provider="offline"), suite, test="parcel")
    assert results.counts.tests == 1


def test_errors_are_the_tools_own(tmp_path):
    """A missing file, a faulty suite, a missing key."""
    with pytest.raises(UsageError, match="there is no file"):
        ci_evals.load_suite("nowhere.json")
    with pytest.raises(SuiteError, match="maxTurns"):
        ci_evals.load_suite(tmp_path / write_suite(tmp_path, maxTurns=0, apiKey="key-123456"))
    with pytest.raises(UsageError, match="no key for the LLM"):
        ci_evals.run_suite_sync(ci_evals.create_aui_adapter("key"), ci_evals.load_suite("demo:hr"))


def test_the_bundled_suites_can_be_found():
    """As folders, in a checkout and when installed."""
    assert (ci_evals.demo_suites_path() / "hr.json").is_file()
    assert ci_evals.quack_suites_path().name == "quack"


async def test_slips_of_a_caller_are_told(tmp_path):
    """A provider that is none, and numbers out of range."""
    with pytest.raises(
        UsageError, match="there is no provider 'opnai'; there are: openai, anthropic, offline"
    ):
        ci_evals.create_aui_adapter("key", provider="opnai")
    adapter = ci_evals.create_aui_adapter(provider="offline")
    for slip in ({"loops": 0}, {"parallel": 0}, {"retries": -1}):
        with pytest.raises(UsageError, match="at least"):
            await ci_evals.run_suite(adapter, ci_evals.load_suite("demo:hr"), **slip)


def judged(tmp_path):
    tests = [{"name": name, "evaluations": [{"criterion": "polite"}]} for name in "ab"]
    return ci_evals.load_suite(tmp_path / write_suite(tmp_path, *tests, apiKey="key-123456"))


VERDICT = '{"reasoning": "r", "verdict": "%s", "evidence": []}'


async def play(tmp_path, judge: fakes.ScriptedLLM, **options):
    agent = fakes.ScriptedAgent(["Hello"])
    return await ci_evals.run_suite(Cast(agent, judge_llm=judge), judged(tmp_path), **options)


async def test_two_runs_of_ones_own_parts_are_compared_where_the_judge_is_the_same(tmp_path):
    """By its model's name, as for any other judge."""
    base = await play(tmp_path, fakes.ScriptedLLM([VERDICT % "pass"], model="one"))
    same = await play(tmp_path, fakes.ScriptedLLM([VERDICT % "fail"], model="one"), baseline=base)
    assert (same.comparison.comparable, same.comparison.delta) == (True, -100)
    other = await play(tmp_path, fakes.ScriptedLLM([VERDICT % "fail"], model="two"), baseline=base)
    assert not other.comparison.comparable
    assert any("the judge is two" in reason for reason in other.comparison.reasons)


async def test_a_budget_for_a_model_without_a_price_is_refused(tmp_path):
    """Before it is asked anything."""
    judge = fakes.ScriptedLLM([VERDICT % "pass"], model="nobody")
    with pytest.raises(UsageError, match="no price for nobody"):
        await play(tmp_path, judge, policy=Policy(max_cost=5))
    assert not judge.prompts


async def test_a_second_look_stays_within_the_budget(tmp_path):
    """It is close, and more trials would cost more than is allowed: that is said, and the gate holds."""
    prices = PriceTable(models={"one": Price(input=1000, output=0)})
    judge = fakes.ScriptedLLM([Completion(VERDICT % "pass", 10)], model="one")
    policy = Policy(max_cost=0.05, min_score=90)
    results = await play(tmp_path, judge, policy=policy, prices=prices, confirm=4)
    assert (results.gate.passed, results.run.confirmation, results.usage.cost_usd) == (True, None, 0.02)
    assert any("--max-cost" in warning for warning in results.run.warnings)
    dear = await play(tmp_path, judge, policy=Policy(max_cost=5, min_score=90), prices=prices, confirm=4)
    assert (dear.run.confirmation.trials, dear.counts.trials) == (4, 10)
