"""Agents that are objects of frameworks: stand-ins of the same shape. tests/frameworks has the real ones."""

import json
import shutil
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import commands
import pytest

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


def made(kind, how=plan, **options):
    """An agent of a framework."""
    module = import_module(kind)
    name = {"langgraph": "Pregel", "google.adk": "BaseAgent"}.get(kind, "Agent")
    return getattr(module, name)(how, **options)


def does(*calls, says="Done."):
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
async def test_a_conversation(kind):
    """Words also beside calls, arguments and results of these, the tokens of all answers, and a memory."""
    hello, refund, thanks = await replies(made(kind), "Hi", "A refund, please", "Thanks")
    assert [hello.agent, refund.agent, thanks.agent] == [
        "Message 1.",
        "One moment.\n\nOn its way.",
        "Message 3.",
    ]
    (call,) = refund.tool_calls
    assert (call.name, call.arguments) == ("refund", {"order": "A-1"})
    assert call.result in ({"refunded": 42}, "{'refunded': 42}")
    assert (hello.tool_calls, thanks.tool_calls) == ((), ())
    assert (hello.input_tokens, refund.input_tokens, refund.output_tokens) == (5, 10, 4)
    assert hello.handed_over is None


@pytest.mark.parametrize("kind", KINDS)
async def test_a_history_comes_before_the_first_message(kind):
    """It counts for the agent, and nothing of it is in the reply."""
    turns = ({"user": "Hello"}, {"assistant": "Message 1."}, {"user": "Hi"})
    (reply,) = await replies(made(kind), "Hi", turns=turns)
    assert (reply.agent, reply.tool_calls, reply.input_tokens) == ("Message 2.", (), 5)


@pytest.mark.parametrize("kind", KINDS)
async def test_conversations_do_not_meet(kind):
    """One object serves all of them."""
    agent = agent_of(made(kind), "mine", AgentSettings())
    sessions = [await agent.open_session(a_test()) for _ in range(2)]
    texts = [(await agent.send_message(session, "Hi", timeout=5)).agent for session in sessions]
    assert texts == ["Message 1.", "Message 1."]
    assert sessions[0].id != sessions[1].id


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_that_hands_over(kind):
    """Where the suite names it; then a reply needs no words."""
    settings = AgentSettings(options={"escalationTools": ["to_person"]})
    target = made(kind, does(("to_person", {}, {}, "success"), says=" "))
    assert (await replies(target, settings=settings))[0].handed_over is True
    assert (await replies(made(kind), settings=settings))[0].handed_over is False


@pytest.mark.parametrize("kind", KINDS)
async def test_no_words(kind):
    """An empty reply is none."""
    assert "the answer of mine has no text: the agent's last message is empty" in await refusal(
        made(kind, does(says=""))
    )


@pytest.mark.parametrize(
    ("kind", "outcome", "status"),
    [
        ("pydantic_ai", "success", "ok"),
        ("pydantic_ai", "retried", "error"),
        ("pydantic_ai", None, "unknown"),
        ("langgraph", "success", "ok"),
        ("langgraph", "error", "error"),
        ("agents", "error", "unknown"),
        ("google.adk", "success", "unknown"),
    ],
)
async def test_how_a_call_ended(kind, outcome, status):
    """As far as the framework says it."""
    (reply,) = await replies(made(kind, does(("refund", {}, {"done": 1}, outcome))))
    assert [call.status for call in reply.tool_calls] == [status]


def test_results_without_an_id_are_those_of_the_calls_of_the_same_tool():
    """Hosted tools of ADK may have no id: each result is of the first call without one."""

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
    assert calls == [
        ("google_search", {"pages": 1}, None),
        ("url_context", {"error": "gone"}, "error"),
        ("google_search", None, None),
    ]


async def test_a_failure_in_a_response_of_adk():
    """What a tool raised stands there under `error`."""
    (reply,) = await replies(made("google.adk", does(("refund", {}, {"error": "no order"}, None))))
    assert [call.status for call in reply.tool_calls] == ["error"]


@dataclass
class Deps:
    name: str


async def test_deps_of_pydantic_ai_are_made_from_the_user():
    """By the agent's own type; without one it gets none."""
    seen = []

    def how(text, deps, number):
        seen.append(deps)
        return [], "Hi."

    await replies(made("pydantic_ai", how, deps_type=Deps))
    await replies(made("pydantic_ai", how))
    assert seen == [Deps("Ida"), None]
    missing = await refusal(made("pydantic_ai", how, deps_type=Deps), user_info={})
    assert "mine: its deps are made from userInfo.name: Field required" in missing


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
async def test_a_function_of_the_users_makes_the_context(kind, function):
    """For deps and contexts that hold more than data, one for each conversation."""
    seen = []
    options = {"deps_type": Connected} if kind == "pydantic_ai" else {}
    target = made(kind, lambda text, given, number: seen.append(given) or ([], "Hi."), **options)
    settings = AgentSettings(options={"context": f"{__name__}:{function}"})
    await replies(target, "Hi", "Thanks", settings=settings)
    await replies(target, settings=settings)
    assert [given.name for given in seen] == ["Ida"] * 3
    assert seen[0] is seen[1] is not seen[2]


@pytest.mark.parametrize(
    ("kind", "function", "text"),
    [
        ("agents", "nowhere:connect", "cannot be imported as MODULE:FUNCTION: ModuleNotFoundError"),
        ("agents", "connect", "cannot be imported as MODULE:FUNCTION"),
        ("agents", f"{__name__}:USER", "is not a function but of the type dict"),
        ("google.adk", f"{__name__}:connect", "an agent of Google ADK takes no context"),
    ],
)
def test_a_context_that_cannot_be_made(kind, function, text):
    """Told before anything runs."""
    with pytest.raises(UsageError, match=f"mine: adapterOptions.context: '{function}'.* ?{text}"):
        agent_of(made(kind), "mine", AgentSettings(options={"context": function}))


@pytest.mark.parametrize("kind", ["agents", "google.adk"])
async def test_context_and_state_are_the_users(kind):
    """A copy for each conversation."""

    def how(text, info, number):
        info["plan"]["seats"] += 1
        return [], f"{info['name']} has {info['plan']['seats']} seats."

    target = made(kind, how)
    assert [(await replies(target))[0].agent for _ in range(2)] == ["Ida has 4 seats."] * 2


async def test_model_and_system_prompt_are_passed_on():
    """To frameworks that take them in a run."""
    how = {"settings": AgentSettings(model="big"), "system_prompt": "Be brief."}
    agent = made("pydantic_ai")
    await replies(agent, **how)
    assert agent.given == [{"model": "big", "instructions": "Be brief."}]
    await replies(made("agents"), **how)
    result = {"role": "system", "content": "Be brief."}
    assert import_module("agents").Runner.given == [("desk", result, "big")]
    seen = []
    graph = made("langgraph", lambda text, info, number: seen.append(number) or ([], "Hi."))
    await replies(graph, "Hi", "Hi", system_prompt="Be brief.")
    assert seen == [1, 2]


@pytest.mark.parametrize("kind", ["langgraph", "google.adk"])
def test_a_model_that_cannot_be_passed_on(kind):
    """Told before anything runs."""
    with pytest.raises(UsageError, match=r"mine: an agent of .* brings its own model; leave out the suite's"):
        agent_of(made(kind), "mine", AgentSettings(model="big"))


async def test_a_system_prompt_that_cannot_be_passed_on():
    """As the trial's error: each test has its own."""
    error = await refusal(made("google.adk"), system_prompt="Be brief.")
    assert "mine: an agent of Google ADK takes no 'systemPrompt' from a test; leave it out" in error


async def test_outputs_that_are_objects_are_json():
    """What a caller of the agent gets."""
    (reply,) = await replies(made("pydantic_ai", does(says=Deps("Ida"))))
    assert json.loads(reply.agent) == {"name": "Ida"}
    assert "the agent's output is None" in await refusal(made("pydantic_ai", does(says=None)))


async def test_the_tool_of_the_output_is_no_call():
    """pydantic-ai asks for structured outputs by a tool of its own."""
    (reply,) = await replies(made("pydantic_ai", does(("final_result", {"name": "Ida"}, "ok", None))))
    assert reply.tool_calls == ()


async def test_unknown_tokens_are_left_out():
    """A model that counts none is told as 0 by frameworks."""
    target = made("google.adk", does(says=("SAFETY", None)))
    (reply,) = await replies(target)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


async def test_an_error_of_a_model_in_adk_is_the_agents_error():
    """As it is for all other agents: a reply that is marked as an error."""
    (reply,) = await replies(made("google.adk", does(says=("SAFETY", "blocked"))))
    assert (reply.error_response, reply.error_detail, reply.agent) == (True, "SAFETY: blocked", "")


async def test_after_a_handoff_the_other_agent_goes_on():
    """The handoff is a call, and each call says whose it is."""
    sdk = import_module("agents")
    billing = sdk.Agent(plan, name="billing")
    first, second = await replies(sdk.Agent(plan, successor=billing), "Hi", "A refund, please")
    assert [(call.name, call.agent) for call in first.tool_calls] == [("transfer", "desk")]
    assert [(call.name, call.agent) for call in second.tool_calls] == [("refund", "billing")]


async def test_hosted_tools_are_calls():
    """They have no name of their own."""
    call = ("web_search_call", {"action": {"query": "refunds"}, "status": "completed"}, None, None)
    (reply,) = await replies(made("agents", does(call)))
    (search,) = reply.tool_calls
    assert (search.name, search.arguments) == ("web_search", {"action": {"query": "refunds"}})


async def test_calls_of_graphs_that_a_graph_calls():
    """LangGraph shows their messages too: no call may hide in a sub-agent."""
    inner = {"name": "post", "args": {"amount": 42}, "id": "p1"}
    (reply,) = await replies(made("langgraph", does(("delegate", {}, inner, "success"))))
    assert [call.name for call in reply.tool_calls] == ["delegate", "post"]
    assert reply.input_tokens == 15


@pytest.mark.parametrize(
    ("kind", "how", "options", "clause"),
    [
        ("pydantic_ai", lambda: import_module("pydantic_ai").DeferredToolRequests("delete"), {}, "'delete'"),
        ("agents", lambda: None, {}, "the run waits for approval of the tools 'delete'"),
        ("langgraph", lambda: None, {}, "the graph stopped at an interrupt, 'Sure?'"),
        ("langgraph", lambda: "", {"stops_before": ("pay",)}, "the graph stopped before its nodes 'pay'"),
    ],
)
async def test_a_run_that_waits_for_a_person(kind, how, options, clause):
    """Nobody answers it, so the trial ends, with the reason."""
    error = await refusal(made(kind, lambda text, info, number: ([], how()), **options))
    assert "the answer of mine is no text: " in error
    assert clause in error


async def test_a_run_of_adk_that_waits_for_a_person():
    """For a confirmation, or for a tool that takes long."""
    original = {"originalFunctionCall": {"name": "delete"}}
    for call in (("adk_request_confirmation", original, None, "waits"), ("delete", {}, None, "waits")):
        error = await refusal(made("google.adk", does(call, says="")))
        assert "the run waits for a person or a long process, at the tools 'delete'" in error


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_framework_raises(kind):
    """With type, message and the line of the author's code."""

    def how(text, info, number):
        raise ConnectionError("no model")

    assert "mine raised ConnectionError: no model (" in await refusal(made(kind, how))


@pytest.mark.parametrize("kind", KINDS)
def test_options_are_checked(kind):
    """Before anything runs."""
    with pytest.raises(UsageError, match=r"mine: adapterOptions.tone: extra inputs .* takes escalationTools"):
        agent_of(made(kind), "mine", AgentSettings(options={"tone": "warm"}))


def test_objects_that_are_no_agents():
    """With what to do."""
    graphs = import_module("langgraph")
    with pytest.raises(UsageError, match=r"that is not compiled: name graph.compile\(\)"):
        agent_of(graphs.StateGraph(), "mine", AgentSettings())
    with pytest.raises(UsageError, match=r"state has no 'messages' \(it has: question\)"):
        agent_of(made("langgraph", channels=("question",)), "mine", AgentSettings())
    with pytest.raises(UsageError, match="its deps_type SimpleQueue cannot be made from a test's userInfo"):
        agent_of(made("pydantic_ai", deps_type=_queue()), "mine", AgentSettings())
    with pytest.raises(UsageError, match="or an agent of pydantic-ai, LangGraph, the OpenAI Agents SDK or"):
        agent_of(object(), "mine", AgentSettings())


def _queue():
    return import_module("queue").SimpleQueue


async def test_an_app_of_adk_keeps_its_name():
    """Its sessions are that app's."""
    adk = import_module("google.adk")
    (reply,) = await replies(adk.App("shop", adk.BaseAgent(plan)))
    assert reply.agent == "Message 1."


def test_a_class_of_the_same_name_is_no_agent_of_a_framework():
    """`agents` is a usual name for a module of one's own."""

    class Agent:
        __module__ = "agents_of_mine"

        def __call__(self, message):
            return "Hi"

    assert type(agent_of(Agent(), "mine", AgentSettings())).__name__ == "FunctionAgent"


@pytest.mark.parametrize(
    ("kind", "state"), [("langgraph", {"steps": 2}), ("google.adk", {"number": 1, **USER})]
)
async def test_the_state(kind, state):
    """Of the thread or the session."""
    agent = agent_of(made(kind), "mine", AgentSettings())
    session = await agent.open_session(a_test())
    await agent.send_message(session, "Hi", timeout=5)
    assert await agent.read_state(session) == state


@pytest.mark.parametrize("kind", ["pydantic_ai", "agents"])
async def test_frameworks_without_a_state(kind):
    """A check of it stays undecided."""
    agent = agent_of(made(kind), "mine", AgentSettings())
    session = await agent.open_session(a_test())
    with pytest.raises(AgentError, match="the agent reports no state"):
        await agent.read_state(session)


@pytest.mark.slow
def test_a_state_that_is_checked(tmp_path):
    """By the command, from the agent's own process."""
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
def test_the_command(kind, tmp_path):
    """Green, and red for another amount."""
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
