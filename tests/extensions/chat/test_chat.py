"""`chat`: what is sent, what is shown beside each reply, and what each command does."""

import asyncio
import io
import json
import os
from dataclasses import replace

import fakes
import pytest
import world
import yaml

from ci_evals import load_suite, run_suite
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import AgentError, Exit, UsageError
from ci_evals.domain.transcript import Integration, Reply, ToolCall, ToolStatus
from ci_evals.extensions.chat.chatting import Chat, prepared
from ci_evals.extensions.chat.lines import LONGEST_LINE, LineReader
from ci_evals.extensions.chat.settings import ChatSettings
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.runner import Participants
from ci_evals.stop import Stop

SUITE = """\
# Of the shop
name: Shop
adapter: http
baseUrl: http://localhost:1
adapterOptions: {send: {body: {text: '{{messages}}'}}, reply: {text: $.text}, headers: {X-Key: '${SHOP_KEY}'}}
tests:
  - name: Refund
    userInfo: {customer: K-7}
    guidelines: You want your money back.
    setup:
      - {command: [make, order]}
    teardown:
      - {command: [drop, order]}
    turns:
      - user: Hello
      - assistant: Welcome back
      - user: refund A-1
    evaluations:
      - {criterion: It refunds, strict: tool_called, toolName: refund, args: {order: A-1}}
      - {criterion: The agent is polite}
  # The last one
  - name: Refund twice
    guidelines: Again.
    turns: [{user: refund A-1}]
    evaluations: [{criterion: It answers, strict: regex, pattern: .}]

maxTurns: 4
"""
ENVIRON = {"SHOP_KEY": "shop-key-123456"}


class Shop:
    """An agent that refunds, hands over, or breaks if it is told to."""

    def __init__(self):
        self.sessions = []
        self.closed = 0

    async def open_session(self, test):
        self.sessions.append([test.user_info, [line["content"] for line in test.history]])
        return self.sessions[-1]

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
        session.append(text)
        if text == "break":
            raise AgentError("the agent is gone")
        calls = [
            ToolCall(name="refund", arguments={"order": word}, result={"ok": True}, status=ToolStatus.OK)
            for word in text.split()
            if word.startswith("A-")
        ]
        return Reply(
            agent=f"Fine: {text}\nBye \x1b[2J",
            latency_seconds=1.25,
            tool_calls=tuple(calls),
            rules=("BE_KIND",),
            handed_over=text == "human",
            handed_over_apart=True,
        )

    async def close(self, session):
        self.closed += 1


class Steps:
    """What does the steps of a world."""

    def __init__(self):
        self.done = []

    async def set_up(self, world, names):
        self.done.append(("up", names["userInfo"]))

    async def tear_down(self, world, names):
        self.done.append(("down", names["userInfo"]))


class Input:
    """Standard input: bytes in pieces, then its end."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def read(self, size):
        return self.pieces.pop(0) if self.pieces else b""


class Talked:
    def __init__(self, code, shop, steps, shown, told):
        self.code, self.shop, self.steps, self.shown, self.told = code, shop, steps, shown, told


@pytest.fixture
def talk(tmp_path, monkeypatch, capsys):
    """Has these lines said, in a folder with a suite."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SUITE)

    def talk(*lines, is_terminal=False, suite="shop.yaml", **options):
        settings = ChatSettings(suite=suite, provider="offline", **options)
        shop, steps = Shop(), Steps()
        reader = LineReader(Input("\n".join(lines).encode()))
        chat = Chat(prepared(settings, RunContext(ENVIRON)), reader, Stop(), is_terminal=is_terminal)
        code = asyncio.run(chat.talk(Participants(shop, world=steps)))
        streams = capsys.readouterr()
        return Talked(code, shop, steps, streams.out, streams.err)

    return talk


def test_each_reply_is_shown_with_what_the_agent_did(talk):
    """Without control characters."""
    talked = talk("refund A-1", "", "human")
    assert talked.code == Exit.PASSED
    assert talked.shown == (
        "you>   refund A-1\n"
        "agent> Fine: refund A-1\n"
        "       Bye\n"
        '       | tool calls: refund(order: "A-1") -> {"ok":true} (ok)\n'
        "       | rules: BE_KIND\n"
        "       | 1.25 s\n"
        "you>   human\n"
        "agent> Fine: human\n"
        "       Bye\n"
        "       | rules: BE_KIND\n"
        "       | handed over to a person\n"
        "       | 1.25 s\n"
        "The conversation ended: the agent handed over to a person.\n"
    )
    assert talked.shop.closed == 1


def test_a_test_gives_its_data_world_and_earlier_messages(talk):
    """And without one there is no data; the end of the input closes both."""
    talked = talk("Hi", test="Refund")
    assert talked.shown.startswith("you>   Hello\nagent> Welcome back\nyou>   Hi\n")
    assert talked.shop.sessions == [[{"customer": "K-7"}, ["Hello", "Welcome back"], "Hi"]]
    assert talked.steps.done == [("up", {"customer": "K-7"}), ("down", {"customer": "K-7"})]
    assert talked.shop.closed == 1
    assert talk("Hi").shop.sessions == [[{}, [], "Hi"]]


def test_undo_sends_all_but_the_last_message_again(talk):
    """In a new session, since no agent forgets."""
    shop = talk("one", "two", "three", "/undo", "four").shop
    assert [session[2:] for session in shop.sessions] == [["one", "two", "three"], ["one", "two", "four"]]
    assert shop.closed == 2


def test_undo_after_the_end_takes_the_last_message_back(talk):
    """A message that was never answered is the last one."""
    shop = talk("one", "human", "/undo", "two", is_terminal=True).shop
    assert [session[2:] for session in shop.sessions] == [["one", "human"], ["one", "two"]]
    shop = talk("one", "break", "/undo", "two", is_terminal=True).shop
    assert [session[2:] for session in shop.sessions] == [["one", "break"], ["one", "two"]]


def test_restart_forgets_everything(talk):
    """The world begins again too."""
    talked = talk("one", "/restart", "two", test="Refund")
    assert [session[2:] for session in talked.shop.sessions] == [["one"], ["two"]]
    assert [step for step, _ in talked.steps.done] == ["up", "down"] * 2


def test_after_the_end_nothing_is_sent(talk):
    """Until a new session begins."""
    talked = talk("human", "hello?", "/quit", "more")
    assert [session[2:] for session in talked.shop.sessions] == [["human"]]
    assert "The conversation has ended. /undo, /restart" in talked.shown


def test_an_agent_that_fails_ends_a_chat_without_a_terminal(talk):
    """Later lines would answer replies that never came; on a terminal the person decides."""
    talked = talk("break", "more")
    assert talked.code == Exit.INVALID
    assert "error: the agent is gone" in talked.told
    assert [session[2:] for session in talked.shop.sessions] == [["break"]]
    talked = talk("break", "/restart", "more", is_terminal=True)
    assert talked.code == Exit.PASSED
    assert [session[2:] for session in talked.shop.sessions] == [["break"], ["more"]]


def test_evaluate_grades_by_the_criteria_of_the_test(talk):
    """What was said so far; a judge is asked only with a key."""
    talked = talk("/evaluate", "Hi", "/evaluate", "refund A-1", "/evaluate", test="Refund")
    assert "Nothing was said yet." in talked.shown
    verdicts = [line.split()[0] for line in talked.shown.splitlines() if " It refunds" in line]
    assert verdicts == ["failed", "passed"]
    assert "undecided The agent is polite: no judge is configured" in talked.shown
    assert "start chat with --test=NAME" in talk("Hi", "/evaluate").shown


def test_evaluate_asks_the_judge_if_there_is_a_key(tmp_path, monkeypatch, capsys):
    """It is the provider's default, and sees what was said; without a key the criterion is undecided."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SUITE)

    def chat(settings, environ):
        parts = prepared(settings, RunContext(environ))
        reader = LineReader(Input(b"refund A-1\n/evaluate\n"))
        asyncio.run(Chat(parts, reader, Stop(), is_terminal=False).talk(Participants(Shop())))
        return capsys.readouterr().out

    settings = ChatSettings(suite="shop.yaml", test="Refund")
    assert "undecided The agent is polite: no key for the LLM" in chat(settings, ENVIRON)
    with world.llm(lambda asked: fakes.judge_answer()) as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        shown = chat(replace(settings, llm_key=models.key), ENVIRON | models.env)
    assert "passed    The agent is polite" in shown
    assert models.key not in shown


@pytest.mark.slow
def test_an_agent_that_does_not_start_is_not_talked_to(tmp_path, monkeypatch, capsys):
    """Exit code 3, with the reason."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SUITE + "start: exit 7\n")
    parts = prepared(
        ChatSettings(suite="shop.yaml", provider="offline"), RunContext({**os.environ, **ENVIRON})
    )
    chat = Chat(parts, LineReader(Input(b"Hi\n")), Stop(), is_terminal=False)
    assert asyncio.run(chat.run()) == Exit.INVALID
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "exit 7" in streams.err


def test_commands_are_listed_and_others_refused(talk):
    """Two slashes send one; in a script a refusal shows in the exit code."""
    talked = talk("/help", "/Quit")
    assert "/save FILE [NAME]" in talked.shown
    assert talked.code == Exit.PASSED
    talked = talk("/sing", "//sing")
    assert "No such command: /sing." in talked.shown
    assert talked.shop.sessions[0][2:] == ["/sing"]
    assert talked.code == Exit.USAGE
    assert talk("/sing", is_terminal=True).code == Exit.PASSED


def test_save_writes_a_suite_with_the_agent_and_without_its_key(talk, tmp_path):
    """Variables stay variables, and the world goes along."""
    talked = talk("refund A-1", "Thanks", "/save new.yaml Two lines", test="Refund")
    assert "Saved as 'Two lines'." in talked.shown
    text = (tmp_path / "new.yaml").read_text()
    saved = yaml.safe_load(text)
    assert saved["adapterOptions"]["headers"] == {"X-Key": "${SHOP_KEY}"}
    assert (saved["adapter"], saved["baseUrl"]) == ("http", "http://localhost:1")
    [test] = saved["tests"]
    assert test["userInfo"] == {"customer": "K-7"}
    assert test["setup"] == [{"command": ["make", "order"]}]
    assert test["teardown"] == [{"command": ["drop", "order"]}]
    assert [*test["turns"]] == [
        {"user": "Hello"}, {"assistant": "Welcome back"}, {"user": "refund A-1"}, {"user": "Thanks"},
    ]  # fmt: skip
    assert test["evaluations"][0]["args"] == {"order": "A-1"}
    assert "#   Fine: Thanks" in text
    assert weaknesses(load_suite(tmp_path / "new.yaml", environ=ENVIRON)) == ()


@pytest.mark.parametrize(
    ("given", "start"),
    [
        (None, "cd .. && python3 shop.py ${PORT}"),
        ("./serve $PORT & ./shop", "cd .. && (./serve $PORT & ./shop)"),
    ],
)
def test_a_suite_in_another_folder_starts_the_agent_where_it_was_started(tmp_path, monkeypatch, given, start):
    """A suite's `start` runs in its own folder; the option's ran in the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SUITE + "start: python3 shop.py ${PORT}\n")
    settings = ChatSettings(suite="shop.yaml", provider="offline", start=given)
    parts = prepared(settings, RunContext({**ENVIRON, "PORT": "8000"}))
    reader = LineReader(Input(b"Hi\n/save evals/new.yaml\n"))
    asyncio.run(Chat(parts, reader, Stop(), is_terminal=False).talk(Participants(Shop())))
    assert yaml.safe_load((tmp_path / "evals/new.yaml").read_text())["start"] == start


def test_saved_test_passes_for_the_agent_it_was_recorded_with(talk, tmp_path):
    """And fails one that does not call the tool."""
    talk("refund A-1", "/save new.yaml")

    class Lazy(Shop):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
            reply = await super().send_message(session, text, timeout=timeout)
            return reply.model_copy(update={"tool_calls": ()})

    suite = load_suite(tmp_path / "new.yaml", environ=ENVIRON)
    assert asyncio.run(run_suite(Shop(), suite)).gate.passed
    assert not asyncio.run(run_suite(Lazy(), suite)).gate.passed


def test_save_adds_to_a_suite_and_changes_nothing_else_in_it(talk, tmp_path):
    """Comments and layout stay; a name that is taken is refused."""
    talked = talk("refund A-2", "/save shop.yaml Refund", "/save shop.yaml Another", test="Refund twice")
    assert "has a test named 'Refund' already. Give another name." in talked.shown
    before, after = SUITE.splitlines(), (tmp_path / "shop.yaml").read_text().splitlines()
    place = before.index("maxTurns: 4") - 1
    added = len(after) - len(before)
    assert [*after[:place], *after[place + added :]] == before
    assert [test["name"] for test in yaml.safe_load((tmp_path / "shop.yaml").read_text())["tests"]] == [
        "Refund", "Refund twice", "Another",
    ]  # fmt: skip


@pytest.mark.parametrize("indent", [2, None])
def test_save_adds_to_a_suite_in_json(talk, tmp_path, indent):
    """On one line or on many."""
    suite = yaml.safe_load(SUITE)
    (tmp_path / "shop.json").write_text(json.dumps(suite, indent=indent))
    talk("refund A-2", "/save shop.json Another")
    longer = json.loads((tmp_path / "shop.json").read_text())
    assert longer["tests"][:2] == suite["tests"]
    assert longer["tests"][2]["name"] == "Another"
    assert "Fine: refund A-2" in longer["tests"][2]["evaluations"][-1]["x-note"]


OTHERS = {
    "notes.yaml": ("just words", "is no suite with tests"),
    "notes.txt": ("words", "is not a suite's name"),
    "other.yaml": ("name: O\nadapter: demo\ntests: [{name: a}]\n", "its agent has the adapter 'demo'"),
    "flow.yaml": ("{name: F, adapter: http, tests: [{name: a}]}\n", "cannot be added to its text"),
    "broken.yaml": ("tests: [\n", "Name another file."),
}


@pytest.mark.parametrize("name", OTHERS)
def test_save_writes_over_no_other_file(talk, tmp_path, name):
    """It says why, and asks for another."""
    text, why = OTHERS[name]
    (tmp_path / name).write_text(text)
    talked = talk("Hi", f"/save {name}")
    assert why in talked.shown
    assert (tmp_path / name).read_text() == text
    assert talked.code == Exit.USAGE


def test_nothing_is_saved_before_something_was_said(talk, tmp_path):
    """Nor without a name."""
    talked = talk("/save new.yaml", "/save", "/undo")
    assert talked.shown.count("Nothing was said yet.") == 2
    assert "Name the file: /save FILE [NAME]" in talked.shown
    assert not (tmp_path / "new.yaml").exists()


def test_a_bare_agent_is_talked_to_without_a_suite(talk, tmp_path):
    """By its adapter and address, which a saved suite keeps."""
    (tmp_path / "options.yaml").write_text("send: {body: {text: '{{message}}'}}\nreply: {text: $.text}\n")
    options = {
        "adapter": "http", "base_url": "http://localhost:9", "adapter_options": tmp_path / "options.yaml",
    }  # fmt: skip
    talk("Hi", "/save new.json", suite=None, **options)
    saved = json.loads((tmp_path / "new.json").read_text())
    assert (saved["adapter"], saved["baseUrl"]) == ("http", "http://localhost:9")
    assert saved["adapterOptions"] == {"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.text"}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "nobody"}, "`test=`: 'nobody' is no test's name. Tests: 'Refund', 'Refund twice'."),
        ({"test": "fund"}, "`test=`: 'fund' is part of several names. Tests: 'Refund', 'Refund twice'."),
        ({"suite": None, "test": "x"}, "`test=`: names a test of a suite. Name the suite too."),
        ({"suite": "none.yaml"}, "none.yaml"),
        ({"suite": None}, "agentId"),
    ],
)
def test_an_agent_that_is_not_named_is_refused(talk, options, message):
    """Before anything is sent."""
    with pytest.raises(UsageError) as caught:
        talk("Hi", **options)
    assert message in str(caught.value)


def test_workflows_integrations_and_errors_are_shown(talk):
    """Of agents that report these; and why calls are unknown."""

    class Aui(Shop):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
            return Reply(
                agent="",
                latency_seconds=0,
                workflows=("RETURN_REQUEST",),
                integrations=(Integration(code="orders", status=500, error="down"),),
                error_response=True,
                error_detail="no orders",
                tool_calls_partial=True,
                trace_missing="the trace is late",
            )

    parts = prepared(ChatSettings(suite="shop.yaml", provider="offline"), RunContext(ENVIRON))
    shown = []
    parts.context.show = shown.append
    chat = Chat(parts, LineReader(Input(b"Hi\n")), Stop(), is_terminal=False)
    asyncio.run(chat.talk(Participants(Aui())))
    assert shown[1].splitlines() == [
        "agent>",
        "       | workflows: RETURN_REQUEST",
        "       | integrations: orders (500)",
        "       | other tool calls unknown: the trace is late",
        "       | error response: no orders",
        "       | 0.000 s",
    ]


def read_all(*pieces):
    async def lines():
        reader = LineReader(Input(*pieces))
        found = []
        while (line := await reader.next()) is not None:
            found.append(line)
        return found

    return asyncio.run(lines())


def test_lines_are_read_however_they_come():
    """In pieces, with the line ends and the mark of Windows' console, without an end, and in no UTF-8."""
    assert read_all("hä".encode()[:2], "hä".encode()[2:] + b"\nb\n", b"c") == ["hä", "b", "c"]
    assert read_all(b"\xef\xbb\xbfa\r\nb\r\n") == ["a", "b"]
    assert read_all(b"\xff\n") == ["\ufffd"]
    assert read_all() == []
    assert [len(line) for line in read_all(b"x" * (LONGEST_LINE + 5))] == [LONGEST_LINE, 5]


def test_windows_console_is_read_by_its_public_type():
    """`_io._WindowsConsoleIO` is a `RawIOBase` whose `read` has UTF-8; Ctrl-Z is its end."""
    rows = [b"gr\xc3\xbc\xc3\x9fe\r\n", b""]

    class Console(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            row = rows.pop(0)
            buffer[: len(row)] = row
            return len(row)

    async def first_lines():
        reader = LineReader(Console())
        return await reader.next(), await reader.next()

    assert asyncio.run(first_lines()) == ("grüße", None)
