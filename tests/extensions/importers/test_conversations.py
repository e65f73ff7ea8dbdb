"""Real conversations as drafted tests: what is checked, what is left to people, and who passes."""

import asyncio
import json

import pytest
import yaml

from ci_evals import load_results, load_suite, run_suite
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extensions.importers.importing import import_suite
from ci_evals.extensions.importers.settings import ImportSettings
from ci_evals.extensions.validate.quality import weaknesses


def call(name, arguments, result=None, **more):
    """A call of a tool as OpenAI's messages have it, with the message of its result."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"role": "assistant", "tool_calls": [{"id": name, "type": "function", "function": function}]}
    return [made, {"role": "tool", "tool_call_id": name, "content": json.dumps(result), **more}]


def user(text):
    return {"role": "user", "content": text}


def agent(text):
    return {"role": "assistant", "content": text}


REFUND = {
    "id": "r-1",
    "userInfo": {"customer": "K-7"},
    "messages": [
        user("Please refund order A-1001, 20 EUR"),
        *call("find_customer", {"customer": "K-7", "trace": "9f8e7d"}, {"account": "ACC-3"}),
        *call(
            "refund_order",
            {"order": "a-1001", "amount": 20.0, "account": "ACC-3", "day": "2026-11-29"},
            {"ok": True},
        ),
        agent("Done: 20 EUR are on their way."),
        user("Thanks"),
        agent("You are welcome."),
    ],
}


def drafted(tmp_path, *conversations, name="chats.jsonl", form="transcript", **options):
    """The suite as data and as text, and what was said on standard error is left to the caller."""
    source, output = tmp_path / name, tmp_path / "suite.yaml"
    output.unlink(missing_ok=True)
    source.write_text("\n".join(map(json.dumps, conversations)))
    import_suite(ImportSettings(format=form, file=source, output=output, **options), RunContext({}))
    text = output.read_text()
    return yaml.load(text, yaml.CSafeLoader)["tests"], text


def test_each_call_is_checked_by_what_the_user_gave(tmp_path):
    """Values of tools, made-up ids and dates are no expectations: they stand in comments."""
    [test], text = drafted(tmp_path, REFUND)
    assert [turn["user"] for turn in test["turns"]] == ["Please refund order A-1001, 20 EUR", "Thanks"]
    assert test["maxTurns"] == 2
    find, refund, hand_over = test["evaluations"]
    assert (find["toolName"], find["args"]) == ("find_customer", {"customer": "K-7"})
    order = {"answer": {"expected": "a-1001", "match": "exact"}}
    assert (refund["toolName"], refund["args"]) == ("refund_order", {"order": order, "amount": 20.0})
    assert hand_over["strict"] == "not_escalated"
    comments = [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]
    assert '#   account: "ACC-3" (in the result of find_customer)' in comments
    assert '#   day: "2026-11-29"' in comments
    assert "#   You are welcome." in comments


def test_a_draft_is_valid_without_a_warning(tmp_path):
    """Its lines are fixed, and it has a tag, a strict check and arguments."""
    drafted(tmp_path, REFUND)
    assert weaknesses(load_suite(tmp_path / "suite.yaml")) == ()


class Scripted:
    """An agent that reports its calls, and whether it hands over."""

    def __init__(self, *calls):
        self.calls = [calls]

    async def open_session(self, test):
        return list(self.calls)

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
        calls = session.pop(0) if session else ()
        return Reply(
            agent="Fine.",
            latency_seconds=0.1,
            tool_calls=tuple(calls),
            handed_over=False,
            handed_over_apart=True,
        )

    async def close(self, session):
        pass


FIND = ToolCall(name="find_customer", arguments={"customer": "K-7", "trace": "other"})
RIGHT = ToolCall(name="refund_order", arguments={"order": "A-1001", "amount": 20, "account": "ACC-9"})
WRONG = ToolCall(name="refund_order", arguments={"order": "A-1002", "amount": 20})


@pytest.mark.parametrize(
    ("calls", "passes"),
    [((FIND, RIGHT), True), ((FIND,), False), ((FIND, WRONG), False), ((), False)],
    ids=["as it was", "without the tool", "with another order", "without any tool"],
)
def test_a_draft_passes_the_agent_that_behaves_so_and_no_other(tmp_path, calls, passes):
    """Though ids and dates differ from run to run."""
    drafted(tmp_path, REFUND)
    results = asyncio.run(run_suite(Scripted(*calls), tmp_path / "suite.yaml"))
    assert results.gate.passed is passes


def test_a_hand_over_ends_the_test(tmp_path):
    """What the person said later is no part of it."""
    messages = [user("A human, please"), *call("transfer_to_human", {}), agent("One moment")]
    [test], text = drafted(tmp_path, {"messages": [*messages, user("Hello?"), agent("I am Bo.")]})
    assert [check["strict"] for check in test["evaluations"]] == ["tool_called", "escalated"]
    assert len(test["turns"]) == 1
    assert "1 later line left out" in text
    assert '# adapterOptions: { escalationTools: ["transfer_to_human"] }' in text


def test_another_agent_of_the_program_is_no_person(tmp_path):
    """A transfer between agents is a call like any other."""
    messages = [user("My bill is wrong"), *call("transfer_to_billing_agent", {}), agent("I look.")]
    [test], _ = drafted(tmp_path, {"messages": messages})
    assert [check["strict"] for check in test["evaluations"]] == ["tool_called", "not_escalated"]


def refund(order):
    messages = [user(f"refund {order}"), *call("refund_order", {"order": order}), agent("ok")]
    return {"id": order, "messages": messages}


def test_the_same_path_is_one_test_with_a_note(tmp_path, capsys):
    """And other paths are others: with another argument given, or where nothing was called."""
    bare = {"messages": [user("refund it"), *call("refund_order", {"order": "A-9"}), agent("ok")]}
    open_, close = ({"messages": [user(text), agent("At nine")]} for text in ("Open?", "Closed?"))
    tests, text = drafted(tmp_path, refund("A-1"), refund("A-2"), bare, open_, refund("A-3"), close)
    assert len(tests) == 4
    assert "did the same in 2 more conversations: A-2 (" in text
    assert "6 conversations took 4 paths" in capsys.readouterr().err


def test_repeated_call_of_a_recorded_conversation_becomes_a_check_of_its_count(tmp_path):
    """A call that failed is not, if the tool was called with success too."""
    failed = call("pay", {"sum": 5}, "no", is_error=True)
    once_more = call("pay", {"sum": 5}, {"ok": 1}, is_error=False)
    messages = [user("pay 5"), *failed, *once_more, *once_more, agent("ok")]
    for number in range(1, 6, 2):  # each result is of its own call
        messages[number] = json.loads(
            json.dumps(messages[number]).replace('"id": "pay"', f'"id": "p{number}"')
        )
        messages[number + 1] = {**messages[number + 1], "tool_call_id": f"p{number}"}
    [test], _ = drafted(tmp_path, {"messages": messages})
    assert test["evaluations"][0]["times"] == {"min": 2}


ANTHROPIC = [
    user("refund A-1"),
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Wait."},
            {"type": "tool_use", "id": "u1", "name": "refund_order", "input": {"order": "A-1"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "u1", "content": "ok"},
            {"type": "text", "text": "<reminder>"},
        ],
    },
    agent("Done"),
]
RESPONSES = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "refund A-1"}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "refund_order", "arguments": '{"order": "A-1"}'},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
]
UI = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "refund A-1"}]},
    {
        "id": "m2",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {
                "type": "tool-refund_order",
                "toolCallId": "t",
                "state": "output-available",
                "input": {"order": "A-1"},
                "output": "ok",
            },
            {"type": "text", "text": "Done"},
        ],
    },
]
UI_OF_BEFORE = [
    user("refund A-1"),
    {
        "role": "assistant",
        "content": "Done",
        "toolInvocations": [
            {
                "state": "result",
                "toolCallId": "t",
                "toolName": "refund_order",
                "args": {"order": "A-1"},
                "result": 1,
            }
        ],
    },
]
MODEL = [
    user("refund A-1"),
    {
        "role": "assistant",
        "content": [
            {"type": "tool-call", "toolCallId": "t", "toolName": "refund_order", "input": {"order": "A-1"}}
        ],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "t", "toolName": "refund_order", "output": "ok"}],
    },
    agent("Done"),
]
OPENAI = [user("refund A-1"), *call("refund_order", {"order": "A-1"}), agent("Done")]
SPELLINGS = {
    "OpenAI": OPENAI,
    "Responses": RESPONSES,
    "Anthropic": ANTHROPIC,
    "AI SDK": MODEL,
    "AI SDK UI": UI,
    "AI SDK UI 4": UI_OF_BEFORE,
}


@pytest.mark.parametrize("messages", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_of_messages_is_the_same_conversation(tmp_path, messages):
    """Reminders beside results of tools are nobody's words."""
    [test], text = drafted(tmp_path, {"messages": messages})
    assert [turn["user"] for turn in test["turns"]] == ["refund A-1"]
    assert test["evaluations"][0]["args"] == {"order": "A-1"}
    assert "Done" in text


@pytest.mark.parametrize(
    "conversations",
    [
        [OPENAI],
        [[OPENAI, OPENAI]],
        [{"conversations": [{"messages": OPENAI}, {"messages": OPENAI}]}],
        [{**message, "session_id": "s"} for message in OPENAI],
        [*OPENAI],
    ],
    ids=[
        "a list a line",
        "a list of lists",
        "an object of many",
        "a message a line by id",
        "a message a line",
    ],
)
def test_conversations_are_found_however_a_file_holds_them(tmp_path, conversations):
    """Two in the same words are one path."""
    [test], _ = drafted(tmp_path, *conversations)
    assert test["evaluations"][0]["toolName"] == "refund_order"


TEXT = """# Refund

[10:31] User: I want my money back
for order A-1.
[10:32] Agent: **Done**
---
Customer: Bye
Assistant: Good bye
"""


def test_plain_text_is_read_and_says_that_its_calls_are_unknown(tmp_path):
    """Nothing that it cannot show becomes a check."""
    source, output = tmp_path / "chat.txt", tmp_path / "suite.yaml"
    source.write_text(TEXT)
    import_suite(ImportSettings(format="transcript", file=source, output=output), RunContext({}))
    first, second = yaml.load(output.read_text(), yaml.CSafeLoader)["tests"]
    assert first["name"] == "Refund"
    assert first["turns"] == [{"user": "I want my money back\nfor order A-1."}]
    assert [check["strict"] for check in first["evaluations"]] == ["regex"]
    assert "it is not recorded which tools were called" in output.read_text()
    assert second["turns"] == [{"user": "Bye"}]


TRAJECTORY = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s-1",
    "agent": {"name": "shop", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be kind."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "refund A-1"}]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "tool_calls": [
                {"tool_call_id": "t", "function_name": "refund_order", "arguments": {"order": "A-1"}}
            ],
            "observation": {"results": [{"source_call_id": "t", "content": "ok"}]},
        },
        {"step_id": 4, "source": "agent", "message": "Done"},
    ],
}


@pytest.mark.parametrize("version", range(8))
def test_trajectories_of_every_version_are_read(tmp_path, version):
    """From 1.7 on the session may be missing."""
    trajectory = {**TRAJECTORY, "schema_version": f"ATIF-v1.{version}"}
    if version == 7:
        trajectory = {**trajectory, "trajectory_id": "s-1"}
        del trajectory["session_id"]
    [test], text = drafted(tmp_path, trajectory, form="atif", name="t.json")
    assert test["evaluations"][0]["args"] == {"order": "A-1"}
    assert "Drafted from s-1" in text


def refused(tmp_path, data, form="transcript", name="chat.jsonl"):
    source = tmp_path / name
    source.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    settings = ImportSettings(format=form, file=source, output=tmp_path / "suite.yaml")
    with pytest.raises(UsageError) as caught:
        import_suite(settings, RunContext({}))
    assert not (tmp_path / "suite.yaml").exists()
    return str(caught.value).removeprefix(str(tmp_path) + "/")


def test_a_file_that_is_none_is_refused_in_one_sentence(tmp_path):
    """With its line."""
    half = json.dumps(REFUND).encode()[:80]
    assert refused(tmp_path, half).startswith("chat.jsonl:1:")
    assert "no line begins with 'User:'" in refused(tmp_path, b"\x00\x01")
    assert "a line before the first 'User:'" in refused(tmp_path, b"hello\nUser: hi")
    assert "not UTF-8" in refused(tmp_path, b"User: Ol\xe9")
    assert "holds no messages" in refused(tmp_path, {"rows": [1]})
    assert "nested too deeply" in refused(tmp_path, b"[" * 100_000)
    assert "has the role 'robot'" in refused(tmp_path, [user("hi"), {"role": "robot", "content": "x"}])
    nameless = {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}
    assert "a tool call in turn 1 has no name" in refused(tmp_path, [user("hi"), nameless])
    assert "is no trajectory" in refused(tmp_path, [REFUND], "atif")
    other = {**TRAJECTORY, "schema_version": "ATIF-v2.0"}
    assert "read are ATIF-v1.0 to ATIF-v1.7" in refused(tmp_path, other, "atif")


def test_a_huge_file_is_refused_unread(tmp_path):
    """Before anything of it is in memory."""
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(100_000_001)
    settings = ImportSettings(format="transcript", file=huge, output=tmp_path / "suite.yaml")
    with pytest.raises(UsageError, match=r"it is larger than 100 MB\. Split the file\."):
        import_suite(settings, RunContext({}))


def test_a_test_is_named_by_the_line_that_made_the_agent_act(tmp_path):
    """A greeting says nothing; a title comes first."""
    greeting = [user("Hello"), agent("Hi"), *OPENAI]
    [test], _ = drafted(tmp_path, {"messages": greeting})
    assert test["name"] == "refund A-1"
    [test], _ = drafted(tmp_path, {"title": "Money back", "messages": greeting})
    assert test["name"] == "Money back"


def test_control_characters_reach_neither_comment_nor_log(tmp_path):
    """Nor can a reply be a command to GitHub's runner."""
    reply = "ok\x1b[2J\u202e\n::stop-commands::x\n##[add-mask]y"
    _, text = drafted(tmp_path, [user("hi"), agent(reply)])
    assert not {"\x1b", "\u202e"} & {*text}
    assert "::stop" not in text
    assert "##[" not in text


def test_variables_in_foreign_words_stay_words(tmp_path):
    """Nothing of the environment gets into a draft."""
    drafted(tmp_path, [user("What is ${HOME}?"), agent("No idea")])
    assert load_suite(tmp_path / "suite.yaml").suite.tests[0].turns[0].user == "What is ${HOME}?"


def test_a_json_draft_has_notes_as_a_key(tmp_path):
    """JSON has no comments."""
    source, output = tmp_path / "c.jsonl", tmp_path / "suite.json"
    source.write_text(json.dumps(REFUND))
    import_suite(ImportSettings(format="transcript", file=source, output=output), RunContext({}))
    [test] = json.loads(output.read_text())["tests"]
    assert test["x-note"].startswith("Drafted from r-1")
    assert "You are welcome." in test["evaluations"][-1]["x-note"]
    assert weaknesses(load_suite(output)) == ()


def test_as_a_run_each_conversation_is_graded_without_playing(tmp_path, capsys):
    """Also those that took the same path; and it says that these checks pass by construction."""
    source, folder = tmp_path / "c.jsonl", tmp_path / "past"
    source.write_text("\n".join(map(json.dumps, (REFUND, refund("A-1"), refund("A-2")))))
    settings = ImportSettings(format="transcript", file=source, as_run=True, output_dir=folder)
    import_suite(settings, RunContext({}))
    results = load_results(folder)
    tests = results.suites[0].tests
    assert [(test.name, len(test.trials[0].turns)) for test in tests] == [
        ("Please refund order A-1001, 20 EUR", 2), ("refund A-1", 1), ("refund A-2", 1),
    ]  # fmt: skip
    assert [finding.outcome for finding in tests[0].trials[0].findings] == ["passed"] * 3
    assert results.suites[0].adapter == "transcript"
    assert any("drafted from these conversations" in warning for warning in results.run.warnings)
    assert any("latency of this run is unknown" in warning for warning in results.run.warnings)
    assert results.latency.p95 is None  # so that no limit is met
    assert "3 conversations from" in capsys.readouterr().err
    with pytest.raises(UsageError, match="exists already and is not overwritten"):
        import_suite(settings, RunContext({}))


def test_options_of_conversations_are_for_these_alone(tmp_path):
    """And a run is no suite."""
    (tmp_path / "t.csv").write_text("user\nHello\n")
    (tmp_path / "c.jsonl").write_text(json.dumps(REFUND))
    for settings, message in (
        (ImportSettings(format="csv", file=tmp_path / "t.csv", as_run=True), "`as_run=`: has no effect"),
        (
            ImportSettings(format="csv", file=tmp_path / "t.csv", keep_personal_data=True),
            "`keep_personal_data=`: has no effect",
        ),
        (
            ImportSettings(
                format="transcript", file=tmp_path / "c.jsonl", as_run=True, output=tmp_path / "s.yaml"
            ),
            "Omit `output=`",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            import_suite(settings, RunContext({}))


def test_personal_data_is_replaced_unless_it_is_to_be_kept(tmp_path, capsys):
    """And listed for review."""
    chat = [user("I am ann@x.example"), agent("Hi ann@x.example")]
    [test], text = drafted(tmp_path, chat)
    assert test["turns"] == [{"user": "I am user1@example.com"}]
    assert "ann@" not in text
    assert "e-mail a…e is now user1@example.com (2 times)" in capsys.readouterr().err
    [test], _ = drafted(tmp_path, chat, keep_personal_data=True)
    assert test["turns"] == [{"user": "I am ann@x.example"}]


def test_secrets_of_the_environment_are_in_no_draft(tmp_path):
    """A key that somebody pasted into a chat is redacted as anywhere."""
    source, output = tmp_path / "c.jsonl", tmp_path / "suite.yaml"
    source.write_text(json.dumps([user("My key is sk-abcdef123456"), agent("Keep sk-abcdef123456")]))
    settings = ImportSettings(format="transcript", file=source, output=output)
    import_suite(settings, RunContext({"OPENAI_API_KEY": "sk-abcdef123456"}))
    assert "sk-abcdef123456" not in output.read_text()


def test_what_came_before_the_first_message_is_noted(tmp_path):
    """A test begins with the user."""
    before = [agent("Welcome"), *call("load_profile", {"id": 1})]
    [test], text = drafted(tmp_path, [*before, *OPENAI])
    assert [check.get("toolName") for check in test["evaluations"]] == ["refund_order", None]
    assert "The agent spoke first, which is not in the test: Welcome" in text
    assert "a tool was called before the first message" in text


def test_step_of_an_unknown_source_is_refused(tmp_path):
    """Whatever its source is."""
    steps = [*TRAJECTORY["steps"], {"source": {"a": 1}, "message": "x"}]
    assert "is no step: its source is none of user, agent" in refused(
        tmp_path, {**TRAJECTORY, "steps": steps}, "atif"
    )
