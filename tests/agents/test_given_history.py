"""Messages that an agent is given before a test, by every adapter that supports them; others reject them."""

import json
import sys
from pathlib import Path

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from agent_cases import server_agent
from commands import ci_evals, read_results, write_suite
from each_row import each_row
from endpoints import completion, response

from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test

pytestmark = pytest.mark.slow

TURNS = [*framework_chats.HISTORY, {"user": "A-1"}]
HISTORY_MESSAGES = [
    {"role": "assistant", "content": "Welcome!"},
    {"role": "user", "content": "My order is late"},
    {"role": "assistant", "content": "Which one?"},
]
RECORDED = Path(__file__).parent / "recorded_http"
CHECKS = [
    {"criterion": "Late", "strict": "contains", "text": "is late"},
    {"criterion": "One reply", "strict": "not_contains", "text": "Which one", "turn": "any"},
    {"criterion": "Answers about the order"},
]


def run_with_history(folder, *args, turns=TURNS, stub=None, env=None, **fields):
    """Run a suite of one test that begins with a history, with the agent of an endpoint if one is given."""
    test = {"turns": turns, "maxTurns": 1, "evaluations": CHECKS}
    suite = write_suite(folder, test, **{"agentId": None, "apiKey": None} | fields)
    endpoint = (f"--base-url={stub.url}", f"--agent-key={stub.key}") if stub else ()
    provider = () if env else ("--provider=offline",)
    done = ci_evals("run", suite, *provider, *endpoint, *args, cwd=folder, env=env or {})
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.mark.parametrize(
    "options", [{}, {"api": "responses"}, {"api": "responses", "request": {"store": False}}]
)
def test_openai_agent_is_sent_history_before_first_message(options, tmp_path):
    """It is no turn of the conversation: checks see the replies of the agent alone."""
    words = "A-1 is late."
    with endpoints.serving(lambda asked: response(words) if options else completion(words)) as stub:
        run_with_history(tmp_path, stub=stub, adapter="openai", model="m", adapterOptions=options)
    sent = stub.asked[0].body["input" if options else "messages"]
    last = {"role": "user", "content": "A-1"}
    assert [one for one in sent if one["role"] != "system"] == [*HISTORY_MESSAGES, last]
    (test,) = read_results(tmp_path)["suites"][0]["tests"]
    user = {"timeout": 120.0, "expectation": None}
    late, which = {"user": "My order is late"} | user, {"assistant": "Which one?"}
    assert test["turns"] == [{"assistant": "Welcome!"}, late, which, {"user": "A-1"} | user]
    (trial,) = test["trials"]
    assert [(turn["index"], turn["user"], turn["agent"]) for turn in trial["turns"]] == [(1, "A-1", words)]
    assert [each["outcome"] for each in trial["findings"]] == ["passed", "passed", "undecided"]


async def test_history_is_not_sent_again_after_stored_response():
    """The endpoint keeps it with the first message."""
    with endpoints.serving(lambda asked: response("Hi.")) as stub:
        settings = AgentSettings("m", stub.key, stub.url, options={"api": "responses"})
        agent = server_agent("openai", settings)
        await framework_chats.converse(agent, "A-1", "Thanks", history=framework_chats.HISTORY)
    assert [len(asked.body["input"]) for asked in stub.asked] == [4, 1]


def test_http_request_contains_history_at_its_placeholder(tmp_path):
    last = {"role": "user", "content": "A-1"}
    for body, expected in (
        ({"all": "{{messages}}"}, {"all": [*HISTORY_MESSAGES, last]}),
        ({"before": "{{history}}", "now": "{{message}}"}, {"before": HISTORY_MESSAGES, "now": "A-1"}),
    ):
        options = {"send": {"body": body}, "reply": {"text": "$.text"}}
        with endpoints.serving(lambda asked: {"text": "A-1 is late."}) as stub:
            run_with_history(tmp_path, stub=stub, adapter="http", adapterOptions=options)
        assert stub.asked[0].body == expected


NO_HISTORY = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
LOOPBACK = {"baseUrl": "http://127.0.0.1:1"}


@each_row(
    ("adapter", "fields", "message"),
    [
        ("aui", {"agentId": "a", "apiKey": "k"}, "'aui' agents cannot be given a history"),
        ("demo", {}, "'demo' agents cannot be given a history"),
        ("a2a", LOOPBACK, "'a2a' agents cannot be given a history"),
        ("rasa", {}, "'rasa' agents cannot be given a history"),
        ("http", LOOPBACK | {"adapterOptions": NO_HISTORY}, "send has no {{messages}} and no {{history}}"),
    ],
)
def test_history_is_rejected_for_adapters_without_support(adapter, fields, message, tmp_path):
    done = run_with_history(tmp_path, adapter=adapter, **fields)
    assert done.returncode == 2
    assert "tests[0].turns: start with an assistant message, but" in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("name", ["langgraph", "ag-ui", "adk", "responses", "responses-agent", "ai-sdk"])
async def test_framework_server_continues_from_history(name):
    """The real server counts the user's messages, and the reply has no text or calls of the history."""
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / f"{name}-history.json")) as stub:
        (hello, again), _ = await framework_chats.CONVERSATIONS[name]["history"](stub.url)
    assert (hello.agent, again.agent) == ("2: Hello", "3: Hello again")
    assert (hello.tool_calls, again.tool_calls) == ((), ())
    sent = json.dumps([body for _, _, body in stub.asked])
    times = 2 if name in ("ag-ui", "responses", "ai-sdk") else 1
    assert all(sent.count(f'"{each["content"]}"') == times for each in HISTORY_MESSAGES)


async def first_reply(target):
    agent = agent_of(target, "mine", AgentSettings())
    test = Test.model_validate(AgentContract.played_test.model_dump() | {"turns": TURNS})
    session = await agent.open_session(test)
    try:
        return await agent.send_message(session, "A-1", timeout=5)
    finally:
        await agent.close(session)


async def test_function_and_object_agents_receive_history():
    history = []

    def reply(message, session):
        history.extend(session.history)
        return "ok"

    class Mine:
        takes_history = True

        def open_session(self, test):
            return test.history

        def send_message(self, session, text):
            return f"after {len(session)}"

    assert ((await first_reply(reply)).agent, history) == ("ok", HISTORY_MESSAGES)
    assert (await first_reply(Mine())).agent == "after 3"


async def test_code_agent_that_ignores_history_is_not_called():
    """Its reply would be one to another conversation."""

    class Mine:
        def open_session(self, test):
            return 1

        def send_message(self, session, text):
            return "ok"

    for target, hint in (
        (lambda message: "ok", "let it take a second argument, session"),
        (Mine(), "set takes_history = True"),
    ):
        message = r"^mine cannot be given the messages before the test; .*" + hint
        with pytest.raises(AgentError, match=message):
            await first_reply(target)


PROGRAM = """
import json, sys
opened = json.loads(input())
for line in sys.stdin:
    print(json.dumps({"text": f"{len(opened['history'])} is late"}), flush=True)
"""


def test_program_is_sent_history_at_opening(tmp_path):
    (tmp_path / "agent.py").write_text(PROGRAM)
    run_with_history(tmp_path, adapter=f"command: {sys.executable} agent.py")
    (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
    assert trial["turns"][0]["agent"] == "3 is late"


def test_simulated_user_sees_history_and_judge_sees_it_as_background(tmp_path):
    """Nothing of the background may be quoted."""
    fields = {"adapter": "openai", "model": "m", "turns": [*framework_chats.HISTORY, {"user": "auto"}]}
    options = ("--provider=openai", "--judge-check=off", "--retries=0")
    with endpoints.serving(lambda asked: completion("A-1 is late.")) as stub, world.llm() as models:
        run_with_history(tmp_path, *options, stub=stub, env=models.env, **fields)
    user = next(asked.text for asked in models.asked if not asked.wants_json)
    given = [{"agent": "Welcome!"}, {"you": "My order is late"}, {"agent": "Which one?"}]
    assert json.loads(user.partition("<conversation>")[2].partition("</conversation>")[0]) == given
    judge = next(asked.text for asked in models.asked if asked.wants_json)
    conversation = judge.partition("<conversation>")[2].partition("</conversation>")[0]
    background = json.loads(judge.partition("<background>")[2].partition("</background>")[0])
    key = "history_that_the_agent_was_given_and_that_is_not_to_be_judged"
    assert background[key] == HISTORY_MESSAGES
    assert "Which one?" not in conversation


HI = {"assistant": "Hi"}


@each_row(
    ("turns", "message"),
    [
        ([{"user": "auto"}, HI], "hold auto (number 1) before what the assistant said"),
        ([{"user": "Hi", "expectation": "x"}, HI], "hold a message with an expectation (number 1)"),
        ([{"assistant": " "}], "turns[0].assistant: must not be empty"),
        ([{"assistant": "\u200b"}], "turns[0].assistant: '\\u200b' has no visible character"),
        ([HI | {"timeout": 3}], "turns[0].timeout: "),
        ([{"user": "Hi"} | HI], "turns[0].assistant: "),
        (["Hi"], "turns[0]: must be an object, found "),
        ([{"user": 3}], "turns[0].user: must be a string"),
        ([{"user": "x", "timeout": "long"}], "turns[0].timeout: must be a number"),
        ([{}], "turns[0].user: is missing"),
    ],
)
def test_invalid_history_is_rejected_with_its_position(turns, message, tmp_path):
    done = run_with_history(tmp_path, turns=turns, adapter="demo")
    assert done.returncode == 2
    assert message in done.stderr, done.stderr
