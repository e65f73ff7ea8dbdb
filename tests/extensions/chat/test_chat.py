"""`chat`: what is sent, what is shown beside each reply, and what each command does."""

import asyncio
import io
import json
import os
import re
from dataclasses import dataclass

import fakes
import pytest
import world
import yaml
from each_row import each_row

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
        ok = {"result": {"ok": True}, "status": ToolStatus.OK}
        orders = [word for word in text.split() if word.startswith("A-")]
        calls = tuple(ToolCall(name="refund", arguments={"order": order}, **ok) for order in orders)
        hand_over = {"handed_over": text == "human", "handed_over_apart": True}
        reply = {"agent": f"Fine: {text}\nBye \x1b[2J", "latency_seconds": 1.25, "rules": ("BE_KIND",)}
        return Reply(tool_calls=calls, **reply, **hand_over)

    async def close(self, session):
        self.closed += 1


class Steps:
    """A world that records its steps."""

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


@dataclass
class Conversation:
    """The outcome of a chat and its output."""

    code: int
    shop: Shop
    steps: Steps
    shown: str
    errors: str

    @property
    def texts(self):
        """The messages of each session."""
        return [session[2:] for session in self.shop.sessions]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a suite."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SUITE)
    return tmp_path


def prepare(*lines, environ=ENVIRON, is_terminal=False, **settings):
    """The parts of a chat, and the chat that reads these lines."""
    settings = ChatSettings(**{"suite": "shop.yaml", "provider": "offline"} | settings)
    parts = prepared(settings, RunContext(environ))
    return parts, Chat(parts, LineReader(Input("\n".join(lines).encode())), Stop(), is_terminal=is_terminal)


@pytest.fixture
def talk(folder, capsys):
    """Has these lines said, in a folder with a suite."""

    def talk(*lines, **options):
        shop, steps = Shop(), Steps()
        _, chat = prepare(*lines, **options)
        code = asyncio.run(chat.talk(Participants(shop, world=steps)))
        streams = capsys.readouterr()
        return Conversation(code, shop, steps, streams.out, streams.err)

    return talk


def test_reply_is_shown_with_calls_rules_latency_workflows_integrations_and_errors(talk, folder):
    talked = talk("refund A-1", "", "human")
    assert talked.code == Exit.PASSED
    shown = """\
you>   refund A-1
agent> Fine: refund A-1
       Bye
       | tool calls: refund(order: "A-1") -> {"ok":true} (ok)
       | rules: BE_KIND
       | 1.25 s
you>   human
agent> Fine: human
       Bye
       | rules: BE_KIND
       | handed over to a person
       | 1.25 s
The conversation ended: the agent handed over to a person.
"""
    assert (talked.shown, talked.shop.closed) == (shown, 1)

    class Aui(Shop):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
            orders = Integration(code="orders", status=500, error="down")
            trace = {"workflows": ("RETURN_REQUEST",), "integrations": (orders,)}
            error = {"error_response": True, "error_detail": "no orders"}
            missing = {"tool_calls_partial": True, "trace_missing": "the trace is late"}
            return Reply(agent="", latency_seconds=0, **trace, **error, **missing)

    parts, chat = prepare("Hi")
    shown = []
    parts.context.show = shown.append
    asyncio.run(chat.talk(Participants(Aui())))
    assert shown[1].splitlines() == [
        "agent>", "       | workflows: RETURN_REQUEST", "       | integrations: orders (500)",
        "       | other tool calls unknown: the trace is late", "       | error response: no orders",
        "       | 0.000 s",
    ]  # fmt: skip


def test_chat_of_a_test_uses_its_history_user_info_and_world(talk):
    talked = talk("Hi", test="Refund")
    assert talked.shown.startswith("you>   Hello\nagent> Welcome back\nyou>   Hi\n")
    assert talked.shop.sessions == [[{"customer": "K-7"}, ["Hello", "Welcome back"], "Hi"]]
    assert talked.steps.done == [("up", {"customer": "K-7"}), ("down", {"customer": "K-7"})]
    assert (talked.shop.closed, talk("Hi").shop.sessions) == (1, [[{}, [], "Hi"]])


def test_undo_and_restart_open_a_new_session_and_world(talk):
    talked = talk("one", "two", "three", "/undo", "four")
    assert (talked.texts, talked.shop.closed) == ([["one", "two", "three"], ["one", "two", "four"]], 2)
    # After the end too; a message that was never answered is the last one.
    assert talk("one", "human", "/undo", "two", is_terminal=True).texts == [["one", "human"], ["one", "two"]]
    assert talk("one", "break", "/undo", "two", is_terminal=True).texts == [["one", "break"], ["one", "two"]]
    talked = talk("one", "/restart", "two", test="Refund")
    assert (talked.texts, [step for step, _ in talked.steps.done]) == ([["one"], ["two"]], ["up", "down"] * 2)
    talked = talk("human", "hello?", "/quit", "more")
    assert talked.texts == [["human"]]
    assert "The conversation has ended. /undo, /restart" in talked.shown


def test_agent_error_ends_the_chat_with_exit_code_3_unless_on_a_terminal(talk):
    talked = talk("break", "more")
    assert (talked.code, talked.texts) == (Exit.INVALID, [["break"]])
    assert "error: the agent is gone" in talked.errors
    talked = talk("break", "/restart", "more", is_terminal=True)
    assert (talked.code, talked.texts) == (Exit.PASSED, [["break"], ["more"]])


def test_unknown_chat_command_exits_with_2_off_a_terminal_and_help_lists_commands(talk):
    talked = talk("/help", "/Quit")
    assert ("/save FILE [NAME]" in talked.shown, talked.code) == (True, Exit.PASSED)
    talked = talk("/sing", "//sing")
    assert "No such command: /sing." in talked.shown
    assert (talked.shop.sessions[0][2:], talked.code) == (["/sing"], Exit.USAGE)
    assert talk("/sing", is_terminal=True).code == Exit.PASSED


def test_save_needs_a_message_and_a_file_name(talk, tmp_path):
    talked = talk("/save new.yaml", "/save", "/undo")
    assert talked.shown.count("Nothing was said yet.") == 2
    assert "Name the file: /save FILE [NAME]" in talked.shown
    assert not (tmp_path / "new.yaml").exists()


def test_evaluate_grades_with_checks_of_test_and_asks_judge_only_with_a_key(
    talk, folder, monkeypatch, capsys
):
    talked = talk("/evaluate", "Hi", "/evaluate", "refund A-1", "/evaluate", test="Refund")
    assert "Nothing was said yet." in talked.shown
    verdicts = [line.split()[0] for line in talked.shown.splitlines() if " It refunds" in line]
    assert verdicts == ["failed", "passed"]
    assert "undecided The agent is polite: no judge is configured" in talked.shown
    assert "start chat with --test=NAME" in talk("Hi", "/evaluate").shown

    def chat(**options):
        _, chat = prepare("refund A-1", "/evaluate", test="Refund", provider="openai", **options)
        asyncio.run(chat.talk(Participants(Shop())))
        return capsys.readouterr().out

    assert "undecided The agent is polite: no key for the LLM" in chat()
    with world.llm(lambda asked: fakes.judge_answer()) as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        shown = chat(llm_key=models.key, environ=ENVIRON | models.env)
    assert "passed    The agent is polite" in shown
    assert models.key not in shown


@pytest.mark.slow
def test_agent_that_does_not_start_ends_the_chat_with_exit_code_3(folder, capsys):
    (folder / "shop.yaml").write_text(SUITE + "start: exit 7\n")
    _, chat = prepare("Hi", environ={**os.environ, **ENVIRON})
    assert asyncio.run(chat.run()) == Exit.INVALID
    streams = capsys.readouterr()
    assert (streams.out, "exit 7" in streams.err) == ("", True)


def test_saved_suite_keeps_variables_and_steps_and_fails_changed_agent(talk, tmp_path):
    talked = talk("refund A-1", "Thanks", "/save new.yaml Two lines", test="Refund")
    assert "Saved as 'Two lines'." in talked.shown
    text = (tmp_path / "new.yaml").read_text()
    saved = yaml.safe_load(text)
    assert saved["adapterOptions"]["headers"] == {"X-Key": "${SHOP_KEY}"}
    assert (saved["adapter"], saved["baseUrl"]) == ("http", "http://localhost:1")
    [test] = saved["tests"]
    assert (test["userInfo"], test["setup"]) == ({"customer": "K-7"}, [{"command": ["make", "order"]}])
    assert test["teardown"] == [{"command": ["drop", "order"]}]
    earlier = [{"user": "Hello"}, {"assistant": "Welcome back"}]
    assert test["turns"] == [*earlier, {"user": "refund A-1"}, {"user": "Thanks"}]
    assert test["evaluations"][0]["args"] == {"order": "A-1"}
    assert "#   Fine: Thanks" in text
    assert weaknesses(load_suite(tmp_path / "new.yaml", environ=ENVIRON)) == ()
    talk("refund A-1", "/save again.yaml")

    class Lazy(Shop):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
            reply = await super().send_message(session, text, timeout=timeout)
            return reply.model_copy(update={"tool_calls": ()})

    suite = load_suite(tmp_path / "again.yaml", environ=ENVIRON)
    assert asyncio.run(run_suite(Shop(), suite)).gate.passed
    assert not asyncio.run(run_suite(Lazy(), suite)).gate.passed


def test_saved_suite_has_the_adapter_options_of_the_command_line(talk, tmp_path):
    (tmp_path / "options.yaml").write_text("send: {body: {text: '{{message}}'}}\nreply: {text: $.text}\n")
    options = {"base_url": "http://localhost:9", "adapter_options": tmp_path / "options.yaml"}
    talk("Hi", "/save new.json", suite=None, adapter="http", **options)
    saved = json.loads((tmp_path / "new.json").read_text())
    assert (saved["adapter"], saved["baseUrl"]) == ("http", "http://localhost:9")
    assert saved["adapterOptions"] == {"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.text"}}


@pytest.mark.parametrize(("given", "start"), [
    (None, "cd .. && python3 shop.py ${PORT}"),
    ("./serve $PORT & ./shop", "cd .. && (./serve $PORT & ./shop)"),
])  # fmt: skip
def test_saved_suite_in_other_folder_starts_agent_in_original_folder(folder, given, start):
    (folder / "shop.yaml").write_text(SUITE + "start: python3 shop.py ${PORT}\n")
    _, chat = prepare("Hi", "/save evals/new.yaml", start=given, environ={**ENVIRON, "PORT": "8000"})
    asyncio.run(chat.talk(Participants(Shop())))
    assert yaml.safe_load((folder / "evals/new.yaml").read_text())["start"] == start


def test_save_into_a_suite_keeps_its_other_lines(talk, tmp_path):
    talked = talk("refund A-2", "/save shop.yaml Refund", "/save shop.yaml Another", test="Refund twice")
    assert "has a test named 'Refund' already. Give another name." in talked.shown
    before, after = SUITE.splitlines(), (tmp_path / "shop.yaml").read_text().splitlines()
    place = before.index("maxTurns: 4") - 1
    assert [*after[:place], *after[place + (len(after) - len(before)) :]] == before
    tests = yaml.safe_load((tmp_path / "shop.yaml").read_text())["tests"]
    assert [test["name"] for test in tests] == ["Refund", "Refund twice", "Another"]


@pytest.mark.parametrize("indent", [2, None])
def test_save_into_a_json_suite_keeps_its_tests(talk, tmp_path, indent):
    suite = yaml.safe_load(SUITE)
    (tmp_path / "shop.json").write_text(json.dumps(suite, indent=indent))
    talk("refund A-2", "/save shop.json Another")
    longer = json.loads((tmp_path / "shop.json").read_text())
    assert (longer["tests"][:2], longer["tests"][2]["name"]) == (suite["tests"], "Another")
    assert "Fine: refund A-2" in longer["tests"][2]["evaluations"][-1]["x-note"]


@each_row(("name", "text", "why"), [
    ("notes.yaml", "just words", "is no suite with tests"),
    ("notes.txt", "words", "is not a suite's name"),
    ("other.yaml", "name: O\nadapter: demo\ntests: [{name: a}]\n", "its agent has the adapter 'demo'"),
    ("flow.yaml", "{name: F, adapter: http, tests: [{name: a}]}\n", "cannot be added to its text"),
    ("broken.yaml", "tests: [\n", "Name another file."),
])  # fmt: skip
def test_save_overwrites_no_other_file(talk, tmp_path, name, text, why):
    (tmp_path / name).write_text(text)
    talked = talk("Hi", f"/save {name}")
    assert why in talked.shown
    assert ((tmp_path / name).read_text(), talked.code) == (text, Exit.USAGE)


@pytest.mark.parametrize(("options", "message"), [  # each before anything is sent
    ({"test": "nobody"}, "`test=`: 'nobody' is no test's name. Tests: 'Refund', 'Refund twice'."),
    ({"test": "fund"}, "`test=`: 'fund' is part of several names. Tests: 'Refund', 'Refund twice'."),
    ({"suite": None, "test": "x"}, "`test=`: names a test of a suite. Name the suite too."),
    ({"suite": "none.yaml"}, "none.yaml"),
    ({"suite": None}, "agentId"),
])  # fmt: skip
def test_unknown_test_suite_or_missing_agent_of_chat_is_refused_with_the_reason(talk, options, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        talk("Hi", **options)


def read_all(*pieces):
    async def lines():
        reader = LineReader(Input(*pieces))
        lines = []
        while (line := await reader.next()) is not None:
            lines.append(line)
        return lines

    return asyncio.run(lines())


def test_input_lines_are_read_from_chunks_and_from_a_windows_console():
    assert read_all("hä".encode()[:2], "hä".encode()[2:] + b"\nb\n", b"c") == ["hä", "b", "c"]
    assert (read_all(b"\xef\xbb\xbfa\r\nb\r\n"), read_all(b"\xff\n")) == (["a", "b"], ["\ufffd"])
    assert read_all() == []
    assert [len(line) for line in read_all(b"x" * (LONGEST_LINE + 5))] == [LONGEST_LINE, 5]
    # `_io._WindowsConsoleIO` is a `RawIOBase` whose `read` has UTF-8; Ctrl-Z is its end.
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
