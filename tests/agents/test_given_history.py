"""Messages that an agent is given before a test, by every adapter that supports them; others reject them."""

import json
import os
import sys
from pathlib import Path

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from agent_cases import server_agent
from agent_sessions import replies_of
from commands import ci_evals, read_results, write_suite
from each_row import each_row
from endpoints import completion, response

from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError, SuiteError
from ci_evals.domain.suite import Test
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

HISTORY = framework_chats.HISTORY
TURNS = [*HISTORY, {"user": "A-1"}]
HISTORY_MESSAGES = [{"role": role, "content": text} for each in HISTORY for role, text in each.items()]
SENT = [*HISTORY_MESSAGES, {"role": "user", "content": "A-1"}]
RECORDED = Path(__file__).parent / "recorded_http"
CHECKS = [
    {"criterion": "Late", "strict": "contains", "text": "is late"},
    {"criterion": "One reply", "strict": "not_contains", "text": "Which one", "turn": "any"},
    {"criterion": "Answers about the order"},
]


def chosen(turns, **fields):
    """Return a suite of one test with these turns, as a command that has found its agent."""
    test = {"name": "Late", "guidelines": "You ask.", "turns": turns, "maxTurns": 1, "evaluations": CHECKS}
    return choose(
        load(json.dumps({"name": "S", "tests": [test]} | fields), "s.json", Reading()), AgentChoice()
    )


@pytest.mark.parametrize(
    "options", [{}, {"api": "responses"}, {"api": "responses", "request": {"store": False}}]
)
async def test_openai_agent_is_sent_history_once_if_stored_else_with_each_message(options):
    """An endpoint that stores the conversation keeps the history with the first message."""
    words = "A-1 is late."
    with endpoints.serving(lambda asked: response(words) if options else completion(words)) as stub:
        agent = server_agent("openai", AgentSettings("m", stub.key, stub.url, options=options))
        replies, _ = await framework_chats.converse(agent, "A-1", "Thanks", history=HISTORY)
    assert [reply.agent for reply in replies] == [words] * 2
    bodies = [asked.body["input" if options else "messages"] for asked in stub.asked]
    assert [one for one in bodies[0] if one["role"] != "system"] == SENT
    assert (len(bodies[1]) == 1) is (options == {"api": "responses"})


async def test_http_request_contains_history_at_its_placeholder():
    for body, expected in (
        ({"all": "{{messages}}"}, {"all": SENT}),
        ({"before": "{{history}}", "now": "{{message}}"}, {"before": HISTORY_MESSAGES, "now": "A-1"}),
    ):
        options = {"send": {"body": body}, "reply": {"text": "$.text"}}
        with endpoints.serving(lambda asked: {"text": "A-1 is late."}) as stub:
            agent = server_agent("http", AgentSettings(None, stub.key, stub.url, options=options))
            (reply,), _ = await framework_chats.converse(agent, "A-1", history=HISTORY)
        assert (reply.agent, stub.asked[0].body) == ("A-1 is late.", expected)


NO_HISTORY = {"send": {"body": "{{message}}"}, "reply": {"text": "$"}}
LOOPBACK = {"baseUrl": "http://127.0.0.1:1"}


@each_row(("adapter", "fields", "message"), [
    ("aui", {"agentId": "a", "apiKey": "k"}, "'aui' agents cannot be given a history"),
    ("demo", {}, "'demo' agents cannot be given a history"),
    ("a2a", LOOPBACK, "'a2a' agents cannot be given a history"),
    ("rasa", {}, "'rasa' agents cannot be given a history"),
    ("http", LOOPBACK | {"adapterOptions": NO_HISTORY}, "send has no {{messages}} and no {{history}}"),
])  # fmt: skip
def test_history_is_rejected_for_adapters_without_support(adapter, fields, message):
    with pytest.raises(SuiteError) as refused:
        chosen(TURNS, adapter=adapter, **fields)
    assert "tests[0].turns: start with an assistant message, but" in str(refused.value)
    assert message in str(refused.value)


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
    test = Test.model_validate(AgentContract.played_test.model_dump() | {"turns": TURNS})
    return (await replies_of(agent_of(target, "mine", AgentSettings()), "A-1", test=test))[0]


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


async def test_program_is_sent_history_at_opening(tmp_path):
    (tmp_path / "agent.py").write_text(PROGRAM)
    agent = CommandAgent(f"command: {sys.executable} {tmp_path}/agent.py", AgentSettings(), os.environ)
    (reply,), _ = await framework_chats.converse(agent, "A-1", history=HISTORY)
    assert reply.agent == "3 is late"


@pytest.mark.slow
def test_history_is_shown_to_agent_user_and_judge_but_only_replies_are_checked(tmp_path):
    """It is no turn of the conversation, and a judge may quote nothing of it."""
    test = {"turns": [*HISTORY, {"user": "auto"}], "maxTurns": 1, "evaluations": CHECKS}
    suite = write_suite(tmp_path, test, adapter="openai", model="m", agentId=None, apiKey=None)
    options = ("--provider=openai", "--judge-check=off", "--retries=0")
    with endpoints.serving(lambda asked: completion("A-1 is late.")) as stub, world.llm() as models:
        endpoint = (f"--base-url={stub.url}", f"--agent-key={stub.key}")
        done = ci_evals("run", suite, *options, *endpoint, cwd=tmp_path, env=models.env)
    assert "Traceback" not in done.stderr + done.stdout
    sent = [one for one in stub.asked[-1].body["messages"] if one["role"] != "system"]
    assert sent == [*HISTORY_MESSAGES, {"role": "user", "content": "Fine."}]
    (test,) = read_results(tmp_path)["suites"][0]["tests"]
    late, auto = (
        {"user": text, "timeout": 120.0, "expectation": None} for text in ("My order is late", "auto")
    )
    assert test["turns"] == [{"assistant": "Welcome!"}, late, {"assistant": "Which one?"}, auto]
    (trial,) = test["trials"]
    turns = [(turn["index"], turn["user"], turn["agent"]) for turn in trial["turns"]]
    assert turns == [(1, "Fine.", "A-1 is late.")]
    assert [each["outcome"] for each in trial["findings"]] == ["passed", "passed", "undecided"]
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


@each_row(("turns", "message"), [
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
])  # fmt: skip
def test_invalid_history_is_rejected_with_its_position(turns, message):
    with pytest.raises(SuiteError) as refused:
        chosen(turns, adapter="demo")
    assert message in str(refused.value)
