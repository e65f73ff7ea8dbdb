"""Servers that let a run wait: how long it waits for them in total, and what it prints meanwhile."""

import asyncio
import json
import time

import fakes
import pytest
import world
from commands import ci_evals, read_results, start, write_suite
from plans import make_plan

from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting
from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import LLMAccessError, LLMError
from ci_evals.domain.progress import StillWaiting
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, evaluate
from ci_evals.runner import Options, Participants
from ci_evals.support.redaction import Redactor
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
    assert (
        parallel > 1 or clock.now <= 540
    )  # else they sleep at the same time, which this clock does not know
    assert results.gate.exit_code == 3
    assert results.counts.trials <= 2 * parallel + 1
    assert "answered with status 429: Slow down; it refused every such request" in results.run.stopped_because
    assert "8 minutes" in results.run.stopped_because


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


async def test_long_waits_are_reported_during_run():
    texts, clock = [], Time()
    async with report_waits(
        lambda: [("b", Waiting(clock.now, "no answer yet")), ("c", Waiting(3, ""))], texts.append, clock.sleep
    ):
        for _ in range(99):
            await asyncio.sleep(0)
    assert [(event.neighbor, event.seconds) for event in texts[:2]] == [("b", 10), ("b", 30)]


@pytest.mark.slow
def test_llm_timeout_bounds_each_attempt(tmp_path):
    with world.agent() as agent, world.llm(lambda _: time.sleep(4) or fakes.judge_answer("pass")) as models:
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
