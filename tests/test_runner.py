import asyncio

import fakes
import pytest
from plans import make_plan

from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAccessError, LLMError
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import ModelAnswered, TrialFinished, TrialStarted, TurnPlayed
from ci_evals.domain.results.process import Fired, Times, TrialProcess
from ci_evals.domain.results.trial import TrialResult
from ci_evals.runner import Options, Participants, run
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

PASS = fakes.judge_answer("pass", "Yes.")


def plan_of(count: int, turns: int = 1, **fields) -> Plan:
    one = {"turns": [{"user": "x"}] * turns, "maxTurns": turns} | fields
    return make_plan(*({"name": f"t{i}"} | one for i in range(count)))


async def play(
    plan: Plan, agent, llm=None, stop=None, listen=lambda _: None, **options
) -> list[TrialResult | None]:
    participants = Participants(agent, user_llm=llm, judge_llm=llm)
    options, redactor = Options(**options), Redactor()
    return list(await run(plan, lambda _: participants, options, redactor, listen=listen, stop=stop))


class Gauge(fakes.ScriptedAgent):
    """Counts the conversations under way, and lets later tests finish first."""

    now = most = 0

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(10 - int(session.test.name[1:])):
            await asyncio.sleep(0)
        self.now -= 1
        return fakes.reply(session.test.name)


async def test_results_are_in_plan_order_and_parallel_limit_is_respected():
    agent = Gauge()
    results = await play(plan_of(9), agent, parallel=4)
    assert ([r.turns[0].agent for r in results], agent.most) == ([f"t{i}" for i in range(9)], 4)


async def test_longest_tests_start_first_if_parallel():
    """One at a time, and in results, all is as planned."""

    async def begun(parallel, done=None):
        messages = []
        lengths = {"short": 1, "long": 9, "middle": 4, "brief": 1}
        tests = [{"name": name, "turns": [{"user": "x"}], "maxTurns": n} for name, n in lengths.items()]
        plan = make_plan(*tests, loops=2)
        participants = Participants(fakes.ScriptedAgent(), user_llm=fakes.ScriptedLLM(["x"]))
        more = {"done": done or {}, "listen": messages.append}
        results = await run(plan, lambda _: participants, Options(parallel), Redactor(), **more)
        expected = [(n, index) for n in lengths.values() for index in (1, 2)]
        assert [(len(r.turns), r.index) for r in results] == expected
        started = [one.trial for one in messages if isinstance(one, TrialStarted)]
        names = [f"{plan.test_of(trial).name} {trial.index}" for trial in started]
        return names, dict(zip(plan.trials, results, strict=True))

    names, results = await begun(parallel=2)
    assert names[:4] == ["long 1", "long 2", "middle 1", "middle 2"]
    assert names[4:] == ["short 1", "brief 1", "short 2", "brief 2"]
    names, _ = await begun(parallel=1)
    assert names == [f"{name} {index}" for name in ("short", "long", "middle", "brief") for index in (1, 2)]
    kept = {trial: result for trial, result in results.items() if trial.index == 1}
    assert (await begun(parallel=2, done=kept))[0] == ["long 2", "middle 2", "short 2", "brief 2"]


async def test_failed_trial_is_retried_in_new_session_and_error_reply_is_not():
    """All attempts are recorded; the last one counts. An agent's error is an answer."""
    broken = [AgentError("first"), AgentError("second")]
    agent = fakes.ScriptedAgent(lambda test, heard: broken.pop(0) if broken else "fine")
    (result,) = await play(plan_of(1), agent, retries=2)
    attempts = [(attempt.status, attempt.error) for attempt in result.attempts]
    assert attempts == [("failed", "first"), ("failed", "second"), ("completed", None)]
    assert (result.status, len(agent.sessions)) == ("completed", 3)
    (result,) = await play(plan_of(1), fakes.ScriptedAgent([AgentError("down")]), retries=1)
    assert (result.status, result.error, len(result.attempts)) == ("failed", "down", 2)
    sorry = fakes.ScriptedAgent([fakes.reply("sorry", error_response=True)])
    (result,) = await play(plan_of(1), sorry, retries=3)
    assert (result.status, len(result.attempts)) == ("agent_error", 1)


async def test_key_rejected_by_agent_stops_run():
    stop = Stop()
    agent = fakes.ScriptedAgent(opening=AgentAccessError("the agent refused the key"))
    results = await play(plan_of(5), agent, stop=stop, retries=3)
    assert [r and r.status for r in results] == ["failed", None, None, None, None]
    assert len(results[0].attempts) == 1
    assert (stop.reason, stop.interrupted) == ("the agent refused the key", False)


async def test_interruption_keeps_finished_trials_and_turns():
    stop, reached = Stop(), asyncio.Event()

    class Hanging(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            if session.test.name == "t1" and session.heard:
                await asyncio.sleep(0.01)  # the first trial is graded meanwhile
                reached.set()
                await asyncio.Event().wait()
            return await super().send_message(session, text, timeout=timeout)

    agent = Hanging()
    playing = asyncio.create_task(play(plan_of(3, turns=2), agent, stop=stop))
    await reached.wait()
    stop.interrupt()
    first, second, third = await playing
    assert (first.status, second.status, third) == ("completed", "interrupted", None)
    assert (len(second.turns), second.error, second.findings) == (1, "the run was interrupted", ())
    assert all(session.closed for session in agent.sessions)


async def test_interruption_during_judging_keeps_strict_verdicts():
    stop, asked = Stop(), asyncio.Event()

    class Hanging(fakes.ScriptedLLM):
        async def complete(self, prompt):
            asked.set()
            await asyncio.Event().wait()

    evaluations = [{"criterion": "polite"}, {"criterion": "c", "strict": "not_escalated"}]
    plan = make_plan({"name": "t0", "maxTurns": 1, "evaluations": evaluations})
    playing = asyncio.create_task(play(plan, fakes.ScriptedAgent(), Hanging([]), stop))
    await asked.wait()
    stop.interrupt()
    (result,) = await playing
    assert (result.status, len(result.turns)) == ("interrupted", 1)
    assert [(f.outcome, f.cause) for f in result.findings] == [("undecided", "judge_error"), ("passed", None)]


async def test_next_conversation_starts_while_last_is_judged():
    talked, order = asyncio.Event(), []

    class Slow(fakes.ScriptedLLM):
        async def complete(self, prompt):
            await talked.wait()
            return await super().complete(prompt)

    def listen(event):
        order.append(type(event))
        if order.count(TrialStarted) == 2:
            talked.set()

    playing = play(plan_of(2), fakes.ScriptedAgent(), Slow([PASS]), listen=listen, parallel=1)
    results = await asyncio.wait_for(playing, timeout=300)
    assert [r.findings[0].outcome for r in results] == ["passed", "passed"]


async def test_listener_gets_start_turns_and_end_and_calls_are_counted_by_role():
    def answers(prompt):
        return PASS if prompt.schema else "go on"

    events, plan = [], make_plan({"name": "t0", "maxTurns": 3})
    llm = fakes.ScriptedLLM(answers)
    (result,) = await play(plan, fakes.ScriptedAgent(), llm, listen=events.append)
    assert [type(e) for e in events] == [TrialStarted, *[TurnPlayed, ModelAnswered] * 3, TrialFinished]
    assert [e.number for e in events if isinstance(e, TurnPlayed)] == [1, 2, 3]
    actual = [(u.role, u.calls, u.input_tokens, u.output_tokens) for u in result.usage]
    assert actual == [("user", 2, 200, 20), ("judge", 1, 100, 10)]


async def test_user_model_error_fails_judged_trial_and_rejected_key_asks_no_judge():
    llm = fakes.ScriptedLLM(lambda prompt: PASS if prompt.schema else LLMError("no model"))
    (result,) = await play(make_plan({"name": "t0", "maxTurns": 2}), fakes.ScriptedAgent(), llm, retries=0)
    assert (result.status, result.error, result.findings[0].outcome) == ("failed", "no model", "passed")
    llm = fakes.ScriptedLLM([LLMAccessError("wrong key")])
    (result,) = await play(make_plan({"name": "t0", "maxTurns": 2}), fakes.ScriptedAgent(), llm, retries=0)
    assert len(llm.prompts) == 1
    assert (result.findings[0].cause, result.findings[0].reason) == ("judge_error", "wrong key")


async def test_keys_are_redacted_in_messages_to_agent_and_listener():
    """Not even those that a suite's author put into the user's data or lines."""
    agent, messages = fakes.ScriptedAgent(["your password is hunter-two"]), []
    fields = {"turns": [{"user": "is it agent-key-99?"}], "userInfo": {"note": "the key is agent-key-99"}}
    plan = make_plan({"name": "t0", "maxTurns": 1} | fields)
    redactor = Redactor(keys=["agent-key-99"], values=["hunter-two"])
    (result,) = await run(plan, lambda _: Participants(agent), Options(), redactor, listen=messages.append)
    assert agent.sessions[0].test.user_info == {"note": "the key is ***"}
    assert (agent.sessions[0].heard, result.status) == (["is it ***?"], "completed")
    assert messages[-1].result.turns[0].agent == "your password is ***"


async def test_agent_that_changes_user_data_affects_its_trial_only():
    """An agent may be anybody's code."""

    class Careless(fakes.ScriptedAgent):
        async def open_session(self, test):
            assert test.user_info == {"cart": ["tea"]}
            test.user_info["cart"].append("milk")
            return await super().open_session(test)

    plan = make_plan({"name": "t", "userInfo": {"cart": ["tea"]}, "loops": 2})
    assert [result.error for result in await play(plan, Careless())] == [None, None]


async def test_bug_stops_run_and_keeps_finished_trials():
    stop = Stop()
    script = ["ok"]

    def answer(test, heard):
        if test.name == "t2":
            raise ZeroDivisionError
        return script[0]

    results = await play(plan_of(5), fakes.ScriptedAgent(answer), stop=stop)
    assert [r and r.status for r in results] == ["completed", "completed", None, None, None]
    assert isinstance(stop.bug, ZeroDivisionError)
    assert "a bug in ci-evals: ZeroDivisionError" in stop.reason


async def test_times_count_every_attempt_are_never_negative_and_are_optional():
    """Replies' own times may be of another clock."""
    time = Time()
    llm = fakes.ScriptedLLM(lambda _: time.goes_on(16, LLMError("down")))
    plan = make_plan({"name": "t", "turns": [{"user": "auto"}], "maxTurns": 1})
    (result,) = await play(plan, fakes.ScriptedAgent(), llm, clock=time, retries=1)
    assert (result.status, result.times) == ("failed", Times(agent=0, user=32, judge=0, other=0))
    (result,) = await play(plan_of(1), fakes.ScriptedAgent(), clock=lambda: 0.0)
    assert result.times == Times(agent=0.25, user=0, judge=0, other=0)
    (result,) = await play(plan_of(1), fakes.ScriptedAgent(), timed=False)
    assert result.times is None


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def goes_on(self, seconds, answer):
        self.now += seconds
        return answer


async def test_trial_times_are_split_by_agent_user_judge_and_other():
    """Agent and user wait for one another; a lost attempt and its session are the rest."""
    time = Time()
    lost = iter([AgentError("gone")])

    def says(_, heard):
        answer = next(lost, None) or fakes.reply("ok", latency_seconds=2.0)
        return time.goes_on(2.5, answer)

    def model(prompt):
        judged = prompt.schema_name == "verdict"
        return time.goes_on(8 if judged else 16, PASS if judged else "go on")

    plan = make_plan({"name": "t", "turns": [{"user": "x"}, {"user": "auto"}], "maxTurns": 2})
    (result,) = await play(plan, fakes.ScriptedAgent(says), fakes.ScriptedLLM(model), clock=time)
    assert [attempt.status for attempt in result.attempts] == ["failed", "completed"]
    assert result.times == Times(agent=4.0, user=16.0, judge=8.0, other=3.5)
    assert result.duration_seconds == 31.5


async def test_trial_has_process_measures_without_secrets():
    replies = [
        fakes.reply("a", workflows=("PAY_hunter22",), params={"card": "1"}, rules=("confirm",)),
        fakes.reply("b", workflows=("REFUND",), params={"card": "1"}),
        fakes.reply("c", workflows=("PAY_hunter22",), params={"card": "1"}),
    ]
    plan = plan_of(1, turns=3, optimalTools=["REFUND"])
    participants, redactor = Participants(fakes.ScriptedAgent(replies)), Redactor(values=["hunter22"])
    (result,) = await run(plan, lambda _: participants, Options(), redactor)
    counts = {"steps": 3, "tools": 2, "repeated": 1, "calls": 0, "failed_calls": 0, "backtracks": 1}
    begun = ("PAY_***", "REFUND", "PAY_***")
    assert result.process == TrialProcess(**counts, begun=begun, missed=0, overhead=2.0)
    fired = {"workflows": ("PAY_***", "REFUND"), "parameters": ("card",), "rules": ("confirm",)}
    assert result.fired == Fired(**fired, integrations=())


MEANING = {"strict": "answer_matches", "match": "semantic", "criterion": "c", "expected": "Paris"}


@pytest.mark.parametrize(
    ("evaluation", "models"),
    [
        ({"criterion": "c"}, {"judge_llm": fakes.ScriptedLLM([LLMAccessError("wrong key")])}),
        (MEANING, {"embedder": fakes.ScriptedEmbedder(LLMAccessError("wrong key"))}),
    ],
    ids=["judge", "embedding model"],
)
async def test_key_rejected_by_judge_or_embedding_model_stops_run_and_keeps_turns(evaluation, models):
    stop, participants = Stop(), Participants(fakes.ScriptedAgent(), **models)
    plan = plan_of(4, evaluations=[evaluation])
    results = await run(plan, lambda _: participants, Options(), Redactor(), stop=stop)
    assert results[0].findings[0].cause == "judge_error"
    assert results[0].turns
    assert (results[-1], stop.reason) == (None, "wrong key")


async def test_embedding_calls_are_counted_under_role_embedder():
    plan = plan_of(2, evaluations=[MEANING, MEANING | {"match": "exact"}])
    embedder = fakes.ScriptedEmbedder(lambda _: (1.0, 0.0))
    participants = Participants(fakes.ScriptedAgent(["Lutetia"]), embedder=embedder)
    for result in await run(plan, lambda _: participants, Options(), Redactor()):
        assert [finding.outcome for finding in result.findings] == ["passed", "failed"]
        (used,) = result.usage
        texts = (used.role, used.model, used.calls, used.input_tokens, used.output_tokens)
        assert texts == ("embedder", "scripted-vectors", 1, 20, 0)


async def test_interruption_during_embedding_keeps_exact_verdicts():
    stop = Stop()

    class Stuck(fakes.ScriptedEmbedder):
        async def embed(self, texts):
            stop.interrupt()
            await asyncio.Event().wait()

    plan = plan_of(1, evaluations=[MEANING, MEANING | {"match": "exact", "expected": "Hello."}])
    participants = Participants(fakes.ScriptedAgent(), embedder=Stuck({}))
    (result,) = await run(plan, lambda _: participants, Options(), Redactor(), stop=stop)
    assert (result.status, [f.outcome for f in result.findings]) == ("interrupted", ["undecided", "passed"])
