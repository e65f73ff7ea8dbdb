"""Agents that are code in this process: functions, objects, and objects with four methods."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace

import pytest
from agent_sessions import replies_of
from each_row import each_row
from pydantic import BaseModel

from ci_evals import load_suite
from ci_evals.agents.python.four_methods import MethodLLM
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.suite import Suite, Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Prompt
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.players import participants_for

TEST = Test(
    name="Deposit", user_info={"name": "Ida Berg", "plan": {"name": "Pro"}},
    guidelines="You want your deposit back.", system_prompt="Be brief.", turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
SETTINGS = AgentSettings(agent_id="a1", api_key="key-123456", model="m", options={"tone": "warm"})


async def converse(target, *texts, settings=SETTINGS, redactor=None, timeout=5.0, apart=False) -> list[Reply]:  # noqa: ASYNC109
    agent = agent_of(target, "mine", settings, redactor, apart=apart)
    return await replies_of(agent, *texts, test=TEST, timeout=timeout)


async def error_of(target, *texts, **how) -> str:
    with pytest.raises(AgentError) as caught:
        await converse(target, *(texts or ("Hello",)), **how)
    return str(caught.value)


async def test_function_receives_test_history_and_own_state_as_session():
    seen = []

    def reply(message, session):
        session.state.setdefault("first", message)
        seen.append((session, list(session.history), dict(session.state)))
        session.history.append("what a function does here changes nothing")
        session.user_info.clear()
        return f"I heard {message}"

    await converse(reply, "one", "two")
    session, history, state = seen[1]
    assert history == [{"role": "user", "content": "one"}, {"role": "assistant", "content": "I heard one"}]
    assert state == {"first": "one"}
    assert (session.agent_id, session.api_key, session.model) == ("a1", "key-123456", "m")
    assert (session.system_prompt, session.options, session.base_url) == ("Be brief.", {"tone": "warm"}, None)
    assert "key-123456" not in repr(session)
    assert TEST.user_info["name"] == "Ida Berg"


async def test_agent_function_with_default_parameter_or_awaitable_result_works():
    """A wrapper around a coroutine does the latter, and an object with an asynchronous call."""

    async def later(message):
        return message

    class Later:
        async def __call__(self, message):
            return f"{message}, called"

    for target, answer in (
        (lambda message, heat=0.2: f"{message} {heat}", "Hi 0.2"),
        (lambda message, session=None: f"{message} {session.model}", "Hi m"),
        (lambda message: later(message.strip()), "Hi"),
        (Later(), "Hi, called"),
    ):
        assert (await converse(target, "Hi"))[0].agent == answer


class ModelAnswer(BaseModel):
    text: str
    params: dict


@dataclass
class DataclassAnswer:
    text: str
    workflows: tuple[str, ...]


@each_row(("answer", "items"), [
    ("Hi", {"agent": "Hi", "workflows": None, "params": None, "error_response": None}),
    ({"text": "Hi", "workflows": ()}, {"workflows": (), "params": None}),
    ({"text": "Hi", "params": {"on": date(2026, 5, 1)}}, {"params": {"on": "2026-05-01"}}),
    ({"text": "Hi", "params": {"n": float("nan")}}, {"params": {"n": None}}),
    (ModelAnswer(text="Hi", params={"a": 1}), {"params": {"a": 1}, "workflows": None}),
    (DataclassAnswer("Hi", ("REFUND",)), {"workflows": ("REFUND",)}),
    ({"text": "\ud800", "escalated": True}, {"agent": "\ufffd", "handed_over": True}),
    (Reply(agent="\ud800", latency_seconds=7), {"agent": "\ufffd", "latency_seconds": 7}),
    (Reply(agent="Hi", latency_seconds=7, rules=("r",)), {"rules": ("r",), "workflows": None}),
    ({"text": "Sorry", "error": "no stock"}, {"error_response": True, "error_detail": "no stock"}),
])  # fmt: skip
async def test_answer_forms_are_read_and_missing_fields_are_unknown(answer, items):
    (reply,) = await converse(lambda message: answer, "Hello")
    assert {name: getattr(reply, name) for name in items} == items


CYCLIC: dict = {}
CYCLIC["text"] = CYCLIC


@each_row(("answer", "text"), [
    (None, "the answer of mine is None: return a string, or an object with 'text'"),
    (7, "the answer of mine is of the type int, which is neither a string nor an object"),
    (iter("abc"), "of the type str_"),
    (DataclassAnswer, "is of the type type"),
    ({"answer": "Hi"}, "has no 'text'"),
    ({"text": "Hi", "tools": []}, "has a key 'tools', which is none of text, messages"),
    ({"text": "Hi", "params": {"x": object()}}, "contains a value that is not JSON: "),
    (CYCLIC, "contains a value that is not JSON: Circular reference"),
])  # fmt: skip
async def test_malformed_answer_is_agent_error_with_reason(answer, text):
    assert text in await error_of(lambda message: answer)


async def test_exception_of_agent_is_reported_with_type_message_and_line():
    def reply(message):
        raise LookupError(f"no order {message} for key-123456")

    error = await error_of(reply, "HL-1", redactor=Redactor(keys={"key-123456"}))
    line = reply.__code__.co_firstlineno + 1
    assert error.startswith("mine raised LookupError: no order HL-1 for *** (")
    assert error.endswith(f"test_code_agents.py:{line}, in reply)")

    def call_ci_evals(message):
        return load_suite({"name": message})

    line = call_ci_evals.__code__.co_firstlineno + 1
    assert f"test_code_agents.py:{line}, in call_ci_evals)" in await error_of(call_ci_evals)


class UnprintableError(Exception):
    def __str__(self):
        raise ValueError


@each_row(("raised", "text"), [
    (SystemExit("enough"), "raised SystemExit: enough"),
    (KeyboardInterrupt(), "raised KeyboardInterrupt"),
    (StopIteration(), "raised StopIteration"),
    (GeneratorExit(), "raised GeneratorExit"),
    (asyncio.CancelledError(), "raised CancelledError"),
    (TimeoutError("of its own"), "raised TimeoutError: of its own"),
    (UsageError("not ours to exit with"), "raised UsageError: not ours"),
    (UnprintableError(), "raised UnprintableError ("),
    (ExceptionGroup("many", [OSError("the first")]), "raised OSError: the first"),
    (AgentError("in its own words"), "in its own words"),
])  # fmt: skip
async def test_every_exception_of_agent_code_is_agent_error_with_type_and_message(raised, text):
    def reply(message):
        raise raised

    async def later(message):
        raise raised

    assert text in await error_of(reply)
    if not isinstance(raised, StopIteration):  # Python makes another exception of it
        assert text in await error_of(later)
        assert text in await error_of(later, apart=True)


async def test_all_calls_of_conversation_run_in_one_thread_that_ends_with_it():
    """Connections to some databases belong to a thread."""
    threads = set()

    class Counting:
        def open_session(self, test):
            return sqlite3.connect(":memory:")

        def send_message(self, session, text):
            threads.add(threading.current_thread())
            session.execute("create table if not exists said (text)")
            session.execute("insert into said values (?)", (text,))
            return str(session.execute("select count(*) from said").fetchone()[0])

        def close(self, session):
            session.close()

    for _ in range(3):
        items = await converse(Counting(), "a", "b", "c")
        assert [reply.agent for reply in items] == ["1", "2", "3"]
    assert len(threads) == 3
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


async def test_blocking_functions_run_concurrently():
    barrier = threading.Barrier(100, timeout=20)

    def reply(message):
        barrier.wait()
        return message

    items = await asyncio.gather(*(converse(reply, str(number), timeout=20) for number in range(100)))
    assert [replies[0].agent for replies in items] == [str(number) for number in range(100)]


async def test_hanging_function_times_out_without_blocking_other_conversations():
    hanging = threading.Event()

    def reply(message):
        if message == "hang":
            hanging.wait(3000)
        return message

    started = time.monotonic()
    assert await error_of(reply, "hang", timeout=0.05) == "mine did not answer within 0.05 s"
    assert (await converse(reply, "go on"))[0].agent == "go on"
    assert time.monotonic() - started < 300
    hanging.set()


async def test_coroutine_that_swallows_cancellation_is_ended():
    reached = asyncio.Event()

    async def reply(message):
        try:
            reached.set()
            await asyncio.sleep(20)
        except:  # noqa: E722
            return "too late"

    assert "did not answer within" in await error_of(reply, timeout=0.01)
    task = asyncio.ensure_future(converse(reply, "Hello"))
    await reached.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_agent_coroutines_share_separate_loop_and_cannot_block_run():
    loops, freed = [], threading.Event()

    class Agent:
        async def open_session(self, test):
            loops.append(asyncio.get_running_loop())

        async def send_message(self, session, text):
            loops.append(asyncio.get_running_loop())
            if text == "block":
                freed.wait(3000)
            return text

    first, second = await asyncio.gather(*(converse(Agent(), name, apart=True) for name in ("a", "b")))
    assert [first[0].agent, second[0].agent] == ["a", "b"]
    assert len(set(loops)) == 1
    assert loops[0] is not asyncio.get_running_loop()
    started = time.monotonic()
    assert "did not answer within 0.05 s" in await error_of(Agent(), "block", timeout=0.05, apart=True)
    freed.set()
    assert time.monotonic() - started < 300
    assert (await converse(Agent(), "again", apart=True))[0].agent == "again"


async def test_coroutine_in_separate_loop_is_cancelled_at_timeout():
    cancelled = threading.Event()

    async def reply(message):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    assert "did not answer" in await error_of(reply, timeout=0.05, apart=True)
    assert await asyncio.to_thread(cancelled.wait, 5)


class Recorder:
    def __init__(self):
        self.calls = []

    def open_session(self, test):
        self.calls.append(("open", test.name, test.user_info["name"]))
        return "s1"

    def send_message(self, session, text, *, timeout):
        self.calls.append(("send", session, text, timeout))
        return "Hi"

    def close(self, session):
        self.calls.append(("close", session))
        raise OSError


async def test_object_receives_its_arguments_and_is_closed_once():
    target = Recorder()
    agent = agent_of(target, "mine", SETTINGS)
    session = await agent.open_session(TEST)
    await agent.send_message(session, "Hello", timeout=3)
    await agent.close(session)
    await agent.close(session)
    assert target.calls == [("open", "Deposit", "Ida Berg"), ("send", "s1", "Hello", 3), ("close", "s1")]


async def state_of(read):
    def open_session():
        return []

    target = SimpleNamespace(open_session=open_session, send_message=lambda s, t: "Hi", read_state=read)
    agent = agent_of(target, "mine", SETTINGS)
    return await agent.read_state(await agent.open_session(TEST))


async def test_state_is_read_from_function_or_coroutine():
    async def later(session):
        return Later(cart=["A-1"])

    class Later(BaseModel):
        cart: list[str]

    assert await state_of(lambda session: {"cart": session}) == {"cart": []}
    assert await state_of(later) == {"cart": ["A-1"]}
    for read, message in (
        (lambda session: {"at": object()}, "the state of mine contains a value that is not JSON: "),
        (lambda session: 1 / 0, "mine raised ZeroDivisionError: division by zero"),
        (None, "the agent reports no state"),
    ):
        with pytest.raises(AgentError, match=message):
            await state_of(read)


async def test_raw_reply_is_only_kept_with_debug():
    answer = {"text": "Hi", "trace": {"steps": 2}}
    (reply,) = await converse(lambda message: answer, "Hello", settings=AgentSettings(debug=True))
    assert (reply.raw, reply.trace) == (answer, {"steps": 2})
    assert (await converse(lambda message: answer, "Hello"))[0].raw is None


class CamelCaseAgent:
    """An adapter with the names of the JavaScript package."""

    def spawnSession(self):  # noqa: N802
        """Would begin a conversation."""

    def sendMessage(self):  # noqa: N802
        """Would say something."""


@each_row(("target", "text"), [
    (7, "mine is not an agent but of the type int; an agent is a function reply"),
    (Recorder, "mine is not an agent but the class Recorder"),
    (lambda: "Hi", r"takes \(\), but is called as reply\(message\) or reply\(message, session\)"),
    (lambda a, b, c: "Hi", r"mine: <lambda> takes \(a, b, c\), but is called as"),
    (CamelCaseAgent(), "found spawnSession, sendMessage: in Python names are spelled as in send_message"),
    (SimpleNamespace(open_session=lambda a, b: 1, send_message=lambda s, t: 1), "open_session"),
    (SimpleNamespace(open_session=lambda: 1, send_message=lambda s: 1), "send_message"),
    (SimpleNamespace(spawn_session=lambda: 1, send_message=lambda s: 1), "send_message"),
])  # fmt: skip
def test_invalid_agent_is_rejected_with_expected_form(target, text):
    with pytest.raises(UsageError, match=text):
        agent_of(target, "mine", SETTINGS)


class FourMethodAgent:
    """An adapter with the four methods of `@aui.io/evals`."""

    def __init__(self, answer="Hi"):
        self.answer = answer
        self.calls = []

    async def spawn_session(self, agent_id, api_key, label, model=None):
        self.calls.append((agent_id, api_key, label, model))
        return "key"

    def send_message(self, session_key, message, user_info=None, timeout=None):
        self.calls.append((session_key, message, user_info, timeout))
        return self.answer

    async def call_judge(self, prompt, model=None):
        self.calls.append((prompt, model))
        return "{}"

    def generate_user_message(self, prompt):
        self.calls.append((prompt,))
        return "And my deposit?"


async def test_four_method_agent_receives_arguments_and_its_aui_reply_is_read():
    target = FourMethodAgent()
    agent = agent_of(target, "mine", SETTINGS)
    for _ in range(2):
        await replies_of(agent, "Hello", test=TEST, timeout=3)
    assert target.calls[:2] == [("a1", "key-123456", "Deposit #1", "m"), ("key", "Hello", TEST.user_info, 3)]
    assert target.calls[2][2] == "Deposit #2"
    trace = {"understanding": {"extracted_params": {"reason": "late"}}, "response": {"type": "answer"}}
    answer = {"text": "Hi", "executed_workflows": ["REFUND"], "trace_info": trace}
    (reply,) = await converse(FourMethodAgent(answer), "Hello")
    assert (reply.workflows, reply.params, reply.error_response) == (("REFUND",), {"reason": "late"}, False)
    (reply,) = await converse(FourMethodAgent({"text": "Hi", "rules": ["r1"]}), "Hello")
    assert (reply.rules, reply.workflows) == (("r1",), None)
    failing = FourMethodAgent({"error": "no such agent", "trace_info": None})
    assert "answered with an error: no such agent" in await error_of(failing)


SUITE = Suite.model_validate(
    {"name": "S", "judgeModel": "j-1", "tests": [TEST.model_dump(by_alias=True)], "agentId": "a1"}
)


async def test_only_four_method_agent_provides_judge_and_simulated_user():
    target = FourMethodAgent()
    participants = participants_for(target, SUITE)
    models = (participants.judge_llm.model, participants.user_llm.model)
    assert models == ("j-1", "FourMethodAgent.generate_user_message")
    answer = await participants.judge_llm.complete(Prompt("You judge.", "Rule.", schema={"type": "object"}))
    assert answer.text == "{}"
    prompt, model = target.calls[-1]
    assert model == "j-1"
    assert prompt.startswith("You judge.\n\nRule.")
    assert '"type": "object"' in prompt
    await participants.user_llm.complete(Prompt("You are Ida.", "Speak."))
    assert target.calls[-1] == ("You are Ida.\n\nSpeak.",)
    participants = participants_for(Recorder(), SUITE)
    assert (participants.user_llm, participants.judge_llm) == (None, None)
    assert participants_for(participants, SUITE) is participants
    assert isinstance(participants_for(lambda message: message, SUITE), Participants)
    with pytest.raises(UsageError, match="dict is not an agent"):
        participants_for({}, SUITE)


class Endless:
    """Awaited without end; unlike a coroutine it may also be dropped, on a machine that is late."""

    def __await__(self):
        return asyncio.sleep(300).__await__()


async def test_failed_model_method_is_model_error_and_wrong_signature_is_usage_error():
    async def complete(method, **how):
        await MethodLLM(method, "Mine.call_judge", **how).complete(Prompt("", "Rule."))

    def fail(prompt):
        raise ConnectionError("gone")

    with pytest.raises(LLMError, match=r"Mine.call_judge raised ConnectionError: gone"):
        await complete(fail)
    with pytest.raises(LLMError, match=r"did not answer within 0.01 s"):
        await complete(lambda prompt: Endless(), timeout=0.01)
    for given in (None, {"text": "pass"}, " "):
        with pytest.raises(LLMAnswerError):
            await complete(lambda prompt, given=given: given)
    with pytest.raises(UsageError, match=r"takes \(\), but is called as call_judge\(prompt, model\)"):
        await complete(lambda: "")


@pytest.mark.slow
def test_program_exits_while_function_hangs(tmp_path):
    program = """
import asyncio, threading
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
async def main():
    agent = agent_of(lambda message: threading.Event().wait(), "mine", AgentSettings())
    session = await agent.open_session(AgentContract.played_test)
    try:
        await agent.send_message(session, "Hello", timeout=0.01)
    except Exception as error:
        print(error)
    await agent.close(session)
asyncio.run(main())
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "mine did not answer within 0.01 s\n"
