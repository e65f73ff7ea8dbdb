"""Servers that limit or stall a run: refused keys, rates, how long it waits, and what it prints meanwhile."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from functools import partial

import endpoints
import fakes
import pytest
import world
from commands import ci_evals, read_results, start, write_suite
from plans import make_plan

from ci_evals import create_adapter, load_suite
from ci_evals import run_suite as run_any_suite
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting
from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import Exit, LLMAccessError, LLMError
from ci_evals.domain.progress import StillWaiting
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, evaluate
from ci_evals.runner import Options, Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.agents import RunAgents
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.waits import Reminder, report_waits

STRICT = {"evaluations": [{"criterion": "No forwarding", "strict": "not_escalated"}]}
TESTS = [
    {"name": f"T{number}", "guidelines": "g", "turns": [{"user": "Hello"}], "maxTurns": 1} | STRICT
    for number in range(20)
]


class Time:
    """A time that passes only where somebody sleeps."""

    def __init__(self):
        self.now = 0.0

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)

    def limiter(self, **options):
        return RateLimiter(sleep=self.sleep, clock=lambda: self.now, jitter=lambda: 0.5, **options)


@pytest.mark.parametrize("fields", [{}, {"retry_after": "30"}], ids=["untold", "fields"])
@pytest.mark.parametrize("parallel", [1, 4])
async def test_agent_that_refuses_every_message_stops_run_after_8_minutes(fields, parallel):
    clock = Time()
    refusal = world.fault(429, "Slow down", **fields)
    with world.agent(lambda _: refusal) as agent:
        aui = AuiAgent(AgentSettings("a", agent.key, agent.url), limiter=clock.limiter())
        job = Job(make_plan(*TESTS), Policy(), Options(parallel=parallel, retries=1), Redactor())
        results = await evaluate(job, Participants(aui))
    # Several sleep at the same time, which this clock does not know.
    assert parallel > 1 or clock.now <= 540
    assert results.gate.exit_code == 3
    assert results.counts.trials <= 2 * parallel + 1
    reason = results.run.stopped_because
    assert "answered with status 429: Slow down; it refused every such request" in reason
    assert "8 minutes" in reason


async def test_run_waits_for_agent_that_rate_limits_some_messages():
    clock, asked = Time(), []

    def answer(heard):
        asked.append(heard)
        busy = len(asked) % 3 == 1
        return world.fault(429, "Slow down", retry_after="60") if busy else world.message("Hi", workflows=[])

    with world.agent(answer) as agent:
        aui = AuiAgent(AgentSettings("a", agent.key, agent.url), limiter=clock.limiter())
        results = await evaluate(Job(make_plan(*TESTS), Policy(), Options(), Redactor()), Participants(aui))
    assert clock.now > 480
    assert results.gate.exit_code == 0, results.gate


async def test_model_that_refuses_every_call_raises_access_error():
    clock = Time()
    limiter = clock.limiter()

    async def refuse(_):
        raise RetryableError(LLMError("limited"), 429, 60.0, final=LLMAccessError("limited; it refused"))

    with pytest.raises(LLMAccessError, match="it refused"):
        await limiter.send(refuse)
    assert clock.now <= 540


async def test_rate_limiter_reports_how_long_and_why_it_waits():
    clock = Time()
    limiter = clock.limiter()
    gate = asyncio.get_running_loop().create_future()

    class Answered:
        headers = world.Headers()

    async def slow(_):
        return await gate

    assert limiter.waiting() is None
    call = asyncio.create_task(limiter.send(slow, "POST /message"))
    await asyncio.sleep(0)
    clock.now = 12.0
    assert limiter.waiting() == Waiting(12.0, "no answer yet")

    async def refused_once(attempt):
        if attempt == 1:
            raise RetryableError(LLMError("limited"), 429, 20.0)
        waits.append(limiter.waiting())
        raise LLMError("gone")

    waits = []
    call.cancel()
    with pytest.raises(LLMError, match="gone"):
        await limiter.send(refused_once, "POST /message")
    assert waits[0].seconds >= 20
    assert waits[0].reason == "rate limited (429)"
    assert limiter.waiting() is None


def test_waiting_is_reported_at_growing_intervals():
    reminder, texts = Reminder(), []
    for second in range(300):
        waits = [("OpenAI at h", Waiting(float(second % 150), "no answer yet")), ("the agent at h", None)]
        texts += [event.seconds for event in reminder.due(waits)]
    assert texts == [10, 30, 70, 130, 40, 100]
    hanging = Reminder()
    lines = [s for s in range(300) if [*hanging.due([("model", Waiting(float(s % 13), "no answer yet"))])]]
    assert len(lines) >= 4, "a model that hangs on every attempt is named again and again"
    (event,) = reminder.due([("a", Waiting(11, "x")), ("a", Waiting(15, "rate limited (429)")), ("b", None)])
    assert event == StillWaiting("a", 15, "rate limited (429)")


async def test_wait_is_reported_after_10_seconds_and_again_after_30():
    texts, clock = [], Time()

    def waits():
        return [("b", Waiting(clock.now, "no answer yet")), ("c", Waiting(3, ""))]

    async with report_waits(waits, texts.append, clock.sleep):
        for _ in range(99):
            await asyncio.sleep(0)
    assert [(event.neighbor, event.seconds) for event in texts[:2]] == [("b", 10), ("b", 30)]


@pytest.mark.slow
def test_llm_timeout_bounds_each_attempt(tmp_path):
    with world.agent() as agent, world.llm(lambda _: time.sleep(2) or fakes.judge_answer("pass")) as models:
        write_suite(tmp_path, TESTS[0] | {"evaluations": [{"criterion": "Is polite"}]})
        env = models.env | {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        options = ("--judge-cache=off", "--llm-timeout=1")
        ran = ci_evals("run", "suite.json", *options, cwd=tmp_path, env=env)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "did not answer within 1 s at the last of 3 attempts" in json.dumps(read_results(tmp_path))


@pytest.mark.slow
def test_agent_timeout_bounds_each_reply_unless_turn_has_its_own(tmp_path):
    own = TESTS[1] | {"turns": [{"user": "Hello", "timeout": 20}]}
    with world.agent(lambda _: time.sleep(1) or world.message("Hi", workflows=[])) as agent:
        write_suite(tmp_path, TESTS[0], own)
        env = {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        options = ("--provider=offline", "--retries=0", "--agent-timeout=0.3")
        ran = ci_evals("run", "suite.json", *options, cwd=tmp_path, env=env)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    errors = [test["trials"][0]["error"] for test in read_results(tmp_path)["suites"][0]["tests"]]
    assert errors == ["the agent did not answer within 0.3 s", None]


@pytest.mark.slow
def test_long_wait_for_agent_is_printed_once_unless_quiet(tmp_path):
    """After ten seconds, also for an agent in Python, by the name of its adapter."""
    code = "    time.sleep(11.5)\n    return {'text': 'Hi', 'rules': []}"
    (tmp_path / "slow.py").write_text(f"import time\ndef reply(message):\n{code}")
    test = TESTS[0] | {"evaluations": [{"criterion": "Says hi", "strict": "contains", "text": "Hi"}]}
    fields = {"adapter": "python:slow:reply", "agentId": None, "apiKey": None, "baseUrl": None}
    write_suite(tmp_path, test, name="python.json", **fields)
    write_suite(tmp_path, TESTS[0])
    with world.agent(lambda _: time.sleep(11.5) or world.message("Hi", workflows=[])) as agent:
        env = {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        arguments = (["suite.json"], ["suite.json", "--quiet"], ["python.json"])
        runs = [
            start("run", *args, "--provider=offline", f"--output-dir={number}", cwd=tmp_path, env=env)
            for number, args in enumerate(arguments)
        ]
        printed = [run.communicate(timeout=300)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], printed
    waits = [[line for line in text.splitlines() if "no answer yet" in line] for text in printed]
    assert [len(lines) for lines in waits] == [1, 0, 1], printed
    assert waits[0][0].startswith(f"waiting for the agent at {agent.url[7:]}")
    assert waits[2][0].startswith("waiting for the agent python:slow:reply for 1")


run_suite = partial(run_any_suite, judge_check="off")
VERDICT = fakes.judge_answer("pass", "It greets.")


def suite(adapter: str, turns: list[str], base_url: str, tests: int = 50, criterion: object = None) -> object:
    """Many tests, which want a judge if nothing else is said."""
    lines = {"turns": [{"user": turn} for turn in turns], "maxTurns": len(turns)}
    test = {"guidelines": "You say hello.", "evaluations": [criterion or {"criterion": "Kind"}]} | lines
    fields = {"name": "S", "adapter": adapter, "baseUrl": base_url, "apiKey": "a-key-123", "agentId": "a1"}
    return load_suite(fields | {"tests": [{**test, "name": f"T{number}"} for number in range(tests)]})


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
    assert (results.gate.exit_code, results.run.status) == (Exit.INVALID, "stopped")
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
    assert ({trial.status for trial in trials_of(results)}, models.asked) == ({EndState.INTERRUPTED}, [])


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
