"""Agents that are objects of frameworks: stand-ins of the same shape. tests/frameworks has the real ones."""

import json
import shutil
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import commands
import pytest
from each_row import each_row

from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.extensions.python_frameworks import adk

SHAPES = Path(__file__).parents[2] / "framework_shapes"
ROOTS = ("pydantic_ai", "agents", "langgraph", "langchain_core", "google.adk", "google.genai")
USER = {"name": "Ida", "plan": {"seats": 3}}
KINDS = ("pydantic_ai", "agents", "langgraph", "google.adk")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Frameworks that are there for one test."""
    monkeypatch.syspath_prepend(str(SHAPES))
    yield
    for name in [*sys.modules]:
        if f"{name}.".startswith(tuple(f"{root}." for root in ROOTS)):
            del sys.modules[name]


def plan(text, info, number):
    """What the agents do: calls with arguments, result and outcome, and what they say."""
    if "refund" in text:
        return [("refund", {"order": "A-1"}, {"refunded": 42}, "success")], "On its way."
    return [], f"Message {number}."


def create_agent(kind, how=plan, **options):
    module = import_module(kind)
    name = {"langgraph": "Pregel", "google.adk": "BaseAgent"}.get(kind, "Agent")
    return getattr(module, name)(how, **options)


def agent_plan(*calls, says="Done."):
    return lambda text, info, number: ([*calls], says)


def a_test(**fields):
    evaluations = ({"criterion": "Helpful"},)
    given = {"guidelines": "-", "turns": ({"user": "Hi"},), "user_info": USER, "evaluations": evaluations}
    return Test(name="Refund", **given | fields)


async def replies(target, *texts, settings=None, **test):
    agent = agent_of(target, "mine", settings or AgentSettings())
    session = await agent.open_session(a_test(**test))
    try:
        return [await agent.send_message(session, text, timeout=60) for text in texts or ("Hi",)]
    finally:
        await agent.close(session)


async def refusal(target, **how) -> str:
    with pytest.raises(AgentError) as caught:
        await replies(target, **how)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_framework_reply_has_text_calls_and_tokens_and_agent_has_history(kind):
    hello, refund, thanks = await replies(create_agent(kind), "Hi", "A refund, please", "Thanks")
    texts = ["Message 1.", "One moment.\n\nOn its way.", "Message 3."]
    assert [hello.agent, refund.agent, thanks.agent] == texts
    (call,) = refund.tool_calls
    assert (call.name, call.arguments) == ("refund", {"order": "A-1"})
    assert call.result in ({"refunded": 42}, "{'refunded': 42}")
    assert (hello.tool_calls, thanks.tool_calls) == ((), ())
    assert (hello.input_tokens, refund.input_tokens, refund.output_tokens) == (5, 10, 4)
    assert hello.handed_over is None
    turns = ({"user": "Hello"}, {"assistant": "Message 1."}, {"user": "Hi"})
    (reply,) = await replies(create_agent(kind), "Hi", turns=turns)
    assert (reply.agent, reply.tool_calls, reply.input_tokens) == ("Message 2.", (), 5)
    agent = agent_of(create_agent(kind), "mine", AgentSettings())
    sessions = [await agent.open_session(a_test()) for _ in range(2)]
    texts = [(await agent.send_message(session, "Hi", timeout=5)).agent for session in sessions]
    assert texts == ["Message 1.", "Message 1."]
    assert sessions[0].id != sessions[1].id


@pytest.mark.parametrize("kind", KINDS)
async def test_hand_over_empty_reply_exception_and_unknown_option_are_reported(kind):
    settings = AgentSettings(options={"escalationTools": ["to_person"]})
    target = create_agent(kind, agent_plan(("to_person", {}, {}, "success"), says=" "))
    assert (await replies(target, settings=settings))[0].handed_over is True
    assert (await replies(create_agent(kind), settings=settings))[0].handed_over is False
    error = await refusal(create_agent(kind, agent_plan(says="")))
    assert "the answer of mine has no text: the agent's last message is empty" in error

    def how(text, info, number):
        raise ConnectionError("no model")

    assert "mine raised ConnectionError: no model (" in await refusal(create_agent(kind, how))
    with pytest.raises(UsageError, match=r"mine: adapterOptions.tone: extra inputs .* takes escalationTools"):
        agent_of(create_agent(kind), "mine", AgentSettings(options={"tone": "warm"}))


@each_row(("kind", "outcome", "status"), [
    ("pydantic_ai", "success", "ok"),
    ("pydantic_ai", "retried", "error"),
    ("pydantic_ai", None, "unknown"),
    ("langgraph", "success", "ok"),
    ("langgraph", "error", "error"),
    ("agents", "error", "unknown"),
    ("google.adk", "success", "unknown"),
    ("google.adk", None, "error"),
])  # fmt: skip
async def test_call_status_is_as_reported_by_framework(kind, outcome, status):
    result = {"error": "no order"} if status == "error" else {"done": 1}
    (reply,) = await replies(create_agent(kind, agent_plan(("refund", {}, result, outcome))))
    assert [call.status for call in reply.tool_calls] == [status]


async def test_adk_calls_tokens_errors_confirmations_and_apps_are_read():
    def part(kind, tool, **fields):
        one = SimpleNamespace(id=None, tool_type=SimpleNamespace(value=tool), **fields)
        parts = dict.fromkeys(("function_call", "function_response", "tool_call", "tool_response"))
        return SimpleNamespace(**parts | {kind: one})

    parts = [
        part("tool_call", "GOOGLE_SEARCH", args={"q": 1}),
        part("tool_call", "URL_CONTEXT", args={"u": 2}),
        part("tool_call", "GOOGLE_SEARCH", args={"q": 3}),
        part("tool_response", "GOOGLE_SEARCH", response={"pages": 1}),
        part("tool_response", "URL_CONTEXT", response={"error": "gone"}),
    ]
    event = SimpleNamespace(author="desk", content=SimpleNamespace(parts=parts))
    calls = [(call["name"], call["result"], call["status"]) for call in adk._calls([event])]
    searches = [("google_search", {"pages": 1}, None), ("google_search", None, None)]
    assert calls == [searches[0], ("url_context", {"error": "gone"}, "error"), searches[1]]
    (reply,) = await replies(create_agent("google.adk", agent_plan(says=("SAFETY", None))))
    assert (reply.input_tokens, reply.output_tokens) == (None, None)
    (reply,) = await replies(create_agent("google.adk", agent_plan(says=("SAFETY", "blocked"))))
    assert (reply.error_response, reply.error_detail, reply.agent) == (True, "SAFETY: blocked", "")
    original = {"originalFunctionCall": {"name": "delete"}}
    for call in (("adk_request_confirmation", original, None, "waits"), ("delete", {}, None, "waits")):
        error = await refusal(create_agent("google.adk", agent_plan(call, says="")))
        assert "the run waits for a person or a long process, at the tools 'delete'" in error
    module = import_module("google.adk")
    (reply,) = await replies(module.App("shop", module.BaseAgent(plan)))
    assert reply.agent == "Message 1."


@dataclass
class Deps:
    name: str


async def test_pydantic_ai_deps_are_made_from_user_info():
    seen = []

    def how(text, deps, number):
        seen.append(deps)
        return [], "Hi."

    await replies(create_agent("pydantic_ai", how, deps_type=Deps))
    await replies(create_agent("pydantic_ai", how))
    assert seen == [Deps("Ida"), None]
    missing = await refusal(create_agent("pydantic_ai", how, deps_type=Deps), user_info={})
    assert "mine: its deps are made from userInfo.name: Field required" in missing


async def test_pydantic_ai_output_object_becomes_json_and_is_no_tool_call():
    (reply,) = await replies(create_agent("pydantic_ai", agent_plan(says=Deps("Ida"))))
    assert json.loads(reply.agent) == {"name": "Ida"}
    assert "the agent's output is None" in await refusal(create_agent("pydantic_ai", agent_plan(says=None)))
    agent = create_agent("pydantic_ai", agent_plan(("final_result", {"name": "Ida"}, "ok", None)))
    (reply,) = await replies(agent)
    assert reply.tool_calls == ()


class Connected:
    """Deps that no suite can hold."""

    def __init__(self, name):
        self.name, self.accounts = name, object()


def connect(user):
    return Connected(user["name"])


async def connect_soon(user):
    return Connected(user["name"])


@pytest.mark.parametrize("function", ["connect", "connect_soon"])
@pytest.mark.parametrize("kind", ["pydantic_ai", "agents", "langgraph"])
async def test_context_function_is_called_once_per_conversation(kind, function):
    seen = []
    options = {"deps_type": Connected} if kind == "pydantic_ai" else {}
    target = create_agent(kind, lambda text, given, number: seen.append(given) or ([], "Hi."), **options)
    settings = AgentSettings(options={"context": f"{__name__}:{function}"})
    await replies(target, "Hi", "Thanks", settings=settings)
    await replies(target, settings=settings)
    assert [given.name for given in seen] == ["Ida"] * 3
    assert seen[0] is seen[1] is not seen[2]


@each_row(("kind", "function", "text"), [
    ("agents", "nowhere:connect", "cannot be imported as MODULE:FUNCTION: ModuleNotFoundError"),
    ("agents", "connect", "cannot be imported as MODULE:FUNCTION"),
    ("agents", f"{__name__}:USER", "is not a function but of the type dict"),
    ("google.adk", f"{__name__}:connect", "an agent of Google ADK takes no context"),
])  # fmt: skip
def test_unusable_context_function_is_refused_with_the_reason(kind, function, text):
    with pytest.raises(UsageError, match=f"mine: adapterOptions.context: '{function}'.* ?{text}"):
        agent_of(create_agent(kind), "mine", AgentSettings(options={"context": function}))


@pytest.mark.parametrize("kind", ["agents", "google.adk"])
async def test_each_conversation_gets_own_copy_of_user_info(kind):
    def how(text, info, number):
        info["plan"]["seats"] += 1
        return [], f"{info['name']} has {info['plan']['seats']} seats."

    target = create_agent(kind, how)
    assert [(await replies(target))[0].agent for _ in range(2)] == ["Ida has 4 seats."] * 2


async def test_model_and_system_prompt_are_passed_or_refused():
    how = {"settings": AgentSettings(model="big"), "system_prompt": "Be brief."}
    agent = create_agent("pydantic_ai")
    await replies(agent, **how)
    assert agent.given == [{"model": "big", "instructions": "Be brief."}]
    await replies(create_agent("agents"), **how)
    result = {"role": "system", "content": "Be brief."}
    assert import_module("agents").Runner.given == [("desk", result, "big")]
    seen = []
    graph = create_agent("langgraph", lambda text, info, number: seen.append(number) or ([], "Hi."))
    await replies(graph, "Hi", "Hi", system_prompt="Be brief.")
    assert seen == [1, 2]
    for kind in ("langgraph", "google.adk"):
        message = r"mine: an agent of .* brings its own model; leave out the suite's"
        with pytest.raises(UsageError, match=message):
            agent_of(create_agent(kind), "mine", AgentSettings(model="big"))
    error = await refusal(create_agent("google.adk"), system_prompt="Be brief.")
    assert "mine: an agent of Google ADK takes no 'systemPrompt' from a test; leave it out" in error


async def test_hosted_tools_nested_graphs_and_handoffs_are_calls():
    call = ("web_search_call", {"action": {"query": "refunds"}, "status": "completed"}, None, None)
    (reply,) = await replies(create_agent("agents", agent_plan(call)))
    (search,) = reply.tool_calls
    assert (search.name, search.arguments) == ("web_search", {"action": {"query": "refunds"}})
    inner = {"name": "post", "args": {"amount": 42}, "id": "p1"}
    (reply,) = await replies(create_agent("langgraph", agent_plan(("delegate", {}, inner, "success"))))
    assert ([call.name for call in reply.tool_calls], reply.input_tokens) == (["delegate", "post"], 15)
    sdk = import_module("agents")
    billing = sdk.Agent(plan, name="billing")
    first, second = await replies(sdk.Agent(plan, successor=billing), "Hi", "A refund, please")
    assert [(call.name, call.agent) for call in first.tool_calls] == [("transfer", "desk")]
    assert [(call.name, call.agent) for call in second.tool_calls] == [("refund", "billing")]


@pytest.mark.parametrize(("kind", "how", "options", "clause"), [
    ("pydantic_ai", lambda: import_module("pydantic_ai").DeferredToolRequests("delete"), {}, "'delete'"),
    ("agents", lambda: None, {}, "the run waits for approval of the tools 'delete'"),
    ("langgraph", lambda: None, {}, "the graph stopped at an interrupt, 'Sure?'"),
    ("langgraph", lambda: "", {"stops_before": ("pay",)}, "the graph stopped before its nodes 'pay'"),
])  # fmt: skip
async def test_framework_run_waiting_for_approval_raises_agent_error(kind, how, options, clause):
    error = await refusal(create_agent(kind, lambda text, info, number: ([], how()), **options))
    assert "the answer of mine is no text: " in error
    assert clause in error


def test_unusable_agent_object_is_refused_with_the_reason():
    graphs = import_module("langgraph")
    with pytest.raises(UsageError, match=r"that is not compiled: name graph.compile\(\)"):
        agent_of(graphs.StateGraph(), "mine", AgentSettings())
    with pytest.raises(UsageError, match=r"state has no 'messages' \(it has: question\)"):
        agent_of(create_agent("langgraph", channels=("question",)), "mine", AgentSettings())
    with pytest.raises(UsageError, match="its deps_type SimpleQueue cannot be made from a test's userInfo"):
        agent_of(create_agent("pydantic_ai", deps_type=SimpleQueue), "mine", AgentSettings())
    with pytest.raises(UsageError, match="or an agent of pydantic-ai, LangGraph, the OpenAI Agents SDK or"):
        agent_of(object(), "mine", AgentSettings())


def test_agent_in_a_module_named_like_a_framework_is_a_plain_function_agent():
    class Agent:
        __module__ = "agents_of_mine"

        def __call__(self, message):
            return "Hi"

    assert type(agent_of(Agent(), "mine", AgentSettings())).__name__ == "FunctionAgent"


@each_row(("kind", "state"), [
    ("langgraph", {"steps": 2}),
    ("google.adk", {"number": 1, **USER}),
    ("pydantic_ai", None),
    ("agents", None),
])  # fmt: skip
async def test_agent_state_is_read_from_thread_or_session_if_supported(kind, state):
    agent = agent_of(create_agent(kind), "mine", AgentSettings())
    session = await agent.open_session(a_test())
    if state is None:
        with pytest.raises(AgentError, match="the agent reports no state"):
            await agent.read_state(session)
    else:
        await agent.send_message(session, "Hi", timeout=5)
        assert await agent.read_state(session) == state


@pytest.mark.slow
def test_state_check_reads_state_of_python_agent(tmp_path):
    (tmp_path / "shop.py").write_text(STATEFUL)
    test = refund(42) | {"evaluations": [STATE]}
    suite = {"name": "Refunds", "adapter": "python:shop:Agent", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    done = commands.ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


STATE = {"criterion": "Booked", "strict": "state", "probe": "agent_state", "path": "$.refunds", "equals": 1}
STATEFUL = """
class Agent:
    def open_session(self, test):
        return []

    def send_message(self, session, text):
        session.append(text)
        return "On its way."

    def read_state(self, session):
        return {"refunds": len(session)}
"""
AGENT = """
from {kind} import {name}

def plan(text, info, number):
    amount = int(text.split()[-1])
    return [("refund", {{"order": "A-1", "amount": amount}}, {{}}, "success")], "On its way."

agent = {name}(plan)
"""
REFUND = {"strict": "tool_called", "toolName": "refund", "args": {"order": "A-1", "amount": 42}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_run_with_framework_agent_checks_call_arguments(kind, tmp_path):
    name = {"langgraph": "Pregel", "google.adk": "BaseAgent"}.get(kind, "Agent")
    (tmp_path / "shop.py").write_text(AGENT.format(kind=kind, name=name))
    shutil.copytree(SHAPES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    suite = {"name": "Refunds", "adapter": "python:shop:agent", "tests": [refund(42), refund(24)]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    done = commands.ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (played,) = commands.read_results(tmp_path)["suites"]
    assert [test["score"] for test in played["tests"]] == [100, 0]


def refund(amount):
    return {
        "name": f"Refund of {amount}",
        "guidelines": "You want order A-1 refunded.",
        "turns": [{"user": f"Please refund {amount}"}],
        "evaluations": [{"criterion": "The right refund", **REFUND}],
    }
