"""Messages that an agent is given before a test, by every adapter that can carry them; the others say no."""

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
from endpoints import completion, response

from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test

pytestmark = pytest.mark.slow

TURNS = [*framework_chats.HISTORY, {"user": "A-1"}]
SAID = [
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


def played(folder, *args, turns=TURNS, env=None, **fields):
    """Run a suite of one test that begins with a history."""
    test = {"turns": turns, "maxTurns": 1, "evaluations": CHECKS}
    none = {"agentId": None, "apiKey": None}
    suite = write_suite(folder, test, **none | fields)
    done = ci_evals("run", suite, *args, cwd=folder, env=env or {})
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.mark.parametrize(
    "options", [{}, {"api": "responses"}, {"api": "responses", "request": {"store": False}}]
)
def test_an_endpoint_of_openai_is_sent_it_before_the_first_message(options, tmp_path):
    """It is no turn of the conversation: checks see the replies of the agent alone."""
    words = "A-1 is late."

    def answer(asked):
        return response(words) if options else completion(words)

    with endpoints.serving(answer) as stub:
        where = f"--base-url={stub.url}"
        played(
            tmp_path, "--provider=offline", where, f"--agent-key={stub.key}",
            adapter="openai", model="m", adapterOptions=options,
        )  # fmt: skip
    key = "input" if options else "messages"
    sent = stub.asked[0].body[key]
    assert [one for one in sent if one["role"] != "system"] == [*SAID, {"role": "user", "content": "A-1"}]
    (test,) = read_results(tmp_path)["suites"][0]["tests"]
    assert test["turns"] == [
        *(
            {"assistant": each["content"]}
            if each["role"] == "assistant"
            else {"user": each["content"], "timeout": 120.0, "expectation": None}
            for each in SAID
        ),
        {"user": "A-1", "timeout": 120.0, "expectation": None},
    ]
    (trial,) = test["trials"]
    assert [(turn["index"], turn["user"], turn["agent"]) for turn in trial["turns"]] == [(1, "A-1", words)]
    assert [each["outcome"] for each in trial["findings"]] == ["passed", "passed", "undecided"]


async def test_a_stored_response_is_not_sent_it_again():
    """The endpoint keeps it with the first message."""
    with endpoints.serving(lambda asked: response("Hi.")) as stub:
        settings = AgentSettings("m", stub.key, stub.url, options={"api": "responses"})
        agent = server_agent("openai", settings)
        await framework_chats.converse(agent, "A-1", "Thanks", history=framework_chats.HISTORY)
    assert [len(asked.body["input"]) for asked in stub.asked] == [4, 1]


@pytest.mark.parametrize("body", [{"all": "{{messages}}"}, {"before": "{{history}}", "now": "{{message}}"}])
def test_an_http_agent_is_sent_it(body, tmp_path):
    """Where its request has the messages or the history."""
    options = {"send": {"body": body}, "reply": {"text": "$.text"}}
    with endpoints.serving(lambda asked: {"text": "A-1 is late."}) as stub:
        where = f"--base-url={stub.url}"
        played(
            tmp_path, "--provider=offline", where, f"--agent-key={stub.key}",
            adapter="http", adapterOptions=options,
        )  # fmt: skip
    last = {"role": "user", "content": "A-1"}
    whole = {"all": [*SAID, last]} if "all" in body else {"before": SAID, "now": "A-1"}
    assert stub.asked[0].body == whole


@pytest.mark.parametrize(
    ("adapter", "fields", "message"),
    [
        ("aui", {"agentId": "a", "apiKey": "k"}, "'aui' agents cannot be given a history"),
        ("demo", {}, "'demo' agents cannot be given a history"),
        ("a2a", {"baseUrl": "http://127.0.0.1:1"}, "'a2a' agents cannot be given a history"),
        ("rasa", {}, "'rasa' agents cannot be given a history"),
        (
            "http",
            {
                "baseUrl": "http://127.0.0.1:1",
                "adapterOptions": {"send": {"body": "{{message}}"}, "reply": {"text": "$"}},
            },
            "adapterOptions.send has no {{messages}} and no {{history}}",
        ),
    ],
)
def test_an_adapter_that_cannot_says_so_before_anything_runs(adapter, fields, message, tmp_path):
    """With the place, and what to do."""
    done = played(tmp_path, "--provider=offline", adapter=adapter, **fields)
    assert done.returncode == 2
    assert "tests[0].turns: start with an assistant message, but" in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("name", ["langgraph", "ag-ui", "adk", "responses", "responses-agent", "ai-sdk"])
async def test_a_server_of_a_framework_goes_on_from_it(name):
    """The real server counts the user's messages, and the reply has no words or calls of before."""
    with recorded_http.serve_recorded(recorded_http.load(RECORDED / f"{name}-history.json")) as stub:
        (hello, again), _ = await framework_chats.CONVERSATIONS[name]["history"](stub.url)
    assert (hello.agent, again.agent) == ("2: Hello", "3: Hello again")
    assert (hello.tool_calls, again.tool_calls) == ((), ())
    sent = json.dumps([body for _, _, body in stub.asked])
    assert all(
        sent.count(f'"{each["content"]}"') == (2 if name in ("ag-ui", "responses", "ai-sdk") else 1)
        for each in SAID
    )


async def first_reply(target):
    agent = agent_of(target, "mine", AgentSettings())
    test = Test.model_validate(AgentContract.played_test.model_dump() | {"turns": TURNS})
    session = await agent.open_session(test)
    try:
        return await agent.send_message(session, "A-1", timeout=5)
    finally:
        await agent.close(session)


async def test_a_function_finds_it_in_its_history():
    """As everything else that was said."""
    heard = []

    def reply(message, session):
        heard.extend(session.history)
        return "ok"

    assert (await first_reply(reply)).agent == "ok"
    assert heard == SAID


async def test_an_object_that_says_that_it_begins_with_it():
    """It gets the test."""

    class Mine:
        takes_history = True

        def open_session(self, test):
            return test.history

        def send_message(self, session, text):
            return f"after {len(session)}"

    assert (await first_reply(Mine())).agent == "after 3"


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        (lambda message: "ok", "let it take a second argument, session"),
        (
            type(
                "Mine", (), {"open_session": lambda self, test: 1, "send_message": lambda self, s, t: "ok"}
            )(),
            "set takes_history = True",
        ),
    ],
)
async def test_code_that_would_not_see_it_is_not_called(target, hint):
    """Its reply would be one to another conversation."""
    with pytest.raises(AgentError, match=r"^mine cannot be given the messages before the test; .*" + hint):
        await first_reply(target)


PROGRAM = """
import json, sys
opened = json.loads(input())
for line in sys.stdin:
    print(json.dumps({"text": f"{len(opened['history'])} is late"}), flush=True)
"""


def test_a_program_is_told_it_when_it_is_opened(tmp_path):
    """Without one, the line has no such key."""
    (tmp_path / "agent.py").write_text(PROGRAM)
    played(tmp_path, "--provider=offline", adapter=f"command: {sys.executable} agent.py")
    (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
    assert trial["turns"][0]["agent"] == "3 is late"


def test_the_simulated_user_and_the_judge_see_it(tmp_path):
    """The user as part of the conversation, the judge as background, in which nothing may be quoted."""
    with endpoints.serving(lambda asked: completion("A-1 is late.")) as stub, world.llm() as models:
        played(
            tmp_path, "--provider=openai", f"--base-url={stub.url}", f"--agent-key={stub.key}",
            "--judge-check=off", "--retries=0",
            adapter="openai", model="m", turns=[*framework_chats.HISTORY, {"user": "auto"}], env=models.env,
        )  # fmt: skip
    user = next(asked.text for asked in models.asked if not asked.wants_json)
    given = [{"agent": "Welcome!"}, {"you": "My order is late"}, {"agent": "Which one?"}]
    assert json.loads(user.partition("<conversation>")[2].partition("</conversation>")[0]) == given
    judge = next(asked.text for asked in models.asked if asked.wants_json)
    conversation = judge.partition("<conversation>")[2].partition("</conversation>")[0]
    background = json.loads(judge.partition("<background>")[2].partition("</background>")[0])
    assert background["history_that_the_agent_was_given_and_that_is_not_to_be_judged"] == SAID
    assert "Which one?" not in conversation


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([{"user": "auto"}, {"assistant": "Hi"}], "hold auto (number 1) before what the assistant said"),
        (
            [{"user": "Hi", "expectation": "x"}, {"assistant": "Hi"}],
            "hold a message with an expectation (number 1)",
        ),
        ([{"assistant": " "}], "turns[0].assistant: must not be empty"),
        ([{"assistant": "\u200b"}], "turns[0].assistant: '\\u200b' has no visible character"),
        ([{"assistant": "Hi", "timeout": 3}], "turns[0].timeout: "),
        ([{"user": "Hi", "assistant": "Hi"}], "turns[0].assistant: "),
        (["Hi"], "turns[0]: must be an object, found "),
        ([{"user": 3}], "turns[0].user: must be a string"),
        ([{"user": "x", "timeout": "long"}], "turns[0].timeout: must be a number"),
        ([{}], "turns[0].user: is missing"),
    ],
)
def test_what_is_no_history(turns, message, tmp_path):
    """Told with its place."""
    done = played(tmp_path, "--provider=offline", turns=turns, adapter="demo")
    assert done.returncode == 2
    assert message in done.stderr, done.stderr
