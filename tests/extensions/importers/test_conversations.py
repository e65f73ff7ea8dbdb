"""Real conversations as drafted tests: what is checked, what is left to people, and who passes."""

import asyncio
import json

import pytest
import yaml
from each_row import each_row

from ci_evals import load_results, load_suite, run_suite
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import Problem, UsageError
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extension_support.drafting.conversation import RecordedConversation, recorded_turn
from ci_evals.extension_support.drafting.personal_data import StandIns, listed_for_review
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


REFUND_ARGUMENTS = {"order": "a-1001", "amount": 20.0, "account": "ACC-3", "day": "2026-11-29"}
REFUND = {
    "id": "r-1", "userInfo": {"customer": "K-7"},
    "messages": [
        user("Please refund order A-1001, 20 EUR"),
        *call("find_customer", {"customer": "K-7", "trace": "9f8e7d"}, {"account": "ACC-3"}),
        *call("refund_order", REFUND_ARGUMENTS, {"ok": True}), agent("Done: 20 EUR are on their way."),
        user("Thanks"), agent("You are welcome."),
    ],
}  # fmt: skip


def draft(tmp_path, *conversations, name="chats.jsonl", form="transcript", into="suite.yaml", **options):
    """The drafted suite's tests as data, and its text."""
    environ = options.pop("environ", {})
    source, output = tmp_path / name, tmp_path / into
    output.unlink(missing_ok=True)
    source.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in conversations))
    settings = ImportSettings(format=form, file=source, output=output, **options)
    import_suite(settings, RunContext(environ))
    text = output.read_text()
    return yaml.load(text, yaml.CSafeLoader)["tests"], text


def test_drafted_tool_checks_expect_only_arguments_from_the_user(tmp_path):
    """Values of tools, made-up ids and dates are no expectations: they stand in comments."""
    [test], text = draft(tmp_path, REFUND)
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
    assert weaknesses(load_suite(tmp_path / "suite.yaml")) == ()


class Scripted:
    """An agent that reports its calls, and whether it hands over."""

    def __init__(self, *calls):
        self.calls = [calls]

    async def open_session(self, test):
        return list(self.calls)

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # the port's own
        calls = session.pop(0) if session else ()
        flags = {"handed_over": False, "handed_over_apart": True}
        return Reply(agent="Fine.", latency_seconds=0.1, tool_calls=tuple(calls), **flags)

    async def close(self, session):
        pass


FIND = ToolCall(name="find_customer", arguments={"customer": "K-7", "trace": "other"})
RIGHT = ToolCall(name="refund_order", arguments={"order": "A-1001", "amount": 20, "account": "ACC-9"})
WRONG = ToolCall(name="refund_order", arguments={"order": "A-1002", "amount": 20})


@pytest.mark.parametrize(
    ("calls", "passes"),
    [((FIND, RIGHT), True), ((FIND,), False), ((FIND, WRONG), False), ((), False)],
    ids=["same", "without the tool", "other order", "without any tool"],
)
def test_draft_passes_only_agents_with_the_recorded_behavior(tmp_path, calls, passes):
    draft(tmp_path, REFUND)
    results = asyncio.run(run_suite(Scripted(*calls), tmp_path / "suite.yaml"))
    assert results.gate.passed is passes


def test_handover_to_a_person_ends_the_draft_but_transfer_between_agents_does_not(tmp_path):
    messages = [user("A human, please"), *call("transfer_to_human", {}), agent("One moment")]
    [test], text = draft(tmp_path, {"messages": [*messages, user("Hello?"), agent("I am Bo.")]})
    assert [check["strict"] for check in test["evaluations"]] == ["tool_called", "escalated"]
    assert len(test["turns"]) == 1
    assert "1 later line left out" in text
    assert '# adapterOptions: { escalationTools: ["transfer_to_human"] }' in text
    messages = [user("My bill is wrong"), *call("transfer_to_billing_agent", {}), agent("I look.")]
    [test], _ = draft(tmp_path, {"messages": messages})
    assert [check["strict"] for check in test["evaluations"]] == ["tool_called", "not_escalated"]


def refund(order):
    messages = [user(f"refund {order}"), *call("refund_order", {"order": order}), agent("ok")]
    return {"id": order, "messages": messages}


def test_conversations_with_the_same_tool_path_become_one_test(tmp_path, capsys):
    bare = {"messages": [user("refund it"), *call("refund_order", {"order": "A-9"}), agent("ok")]}
    open_, close = ({"messages": [user(text), agent("At nine")]} for text in ("Open?", "Closed?"))
    tests, text = draft(tmp_path, refund("A-1"), refund("A-2"), bare, open_, refund("A-3"), close)
    assert len(tests) == 4
    assert "did the same in 2 more conversations: A-2 (" in text
    assert "6 conversations took 4 paths" in capsys.readouterr().err


def test_repeated_call_of_a_recorded_conversation_becomes_a_check_of_its_count(tmp_path):
    failed = call("pay", {"sum": 5}, "no", is_error=True)
    once_more = call("pay", {"sum": 5}, {"ok": 1}, is_error=False)
    messages = [user("pay 5"), *failed, *once_more, *once_more, agent("ok")]
    for number in range(1, 6, 2):  # each result is of its own call
        text = json.dumps(messages[number]).replace('"id": "pay"', f'"id": "p{number}"')
        messages[number] = json.loads(text)
        messages[number + 1] = {**messages[number + 1], "tool_call_id": f"p{number}"}
    [test], _ = draft(tmp_path, {"messages": messages})
    assert test["evaluations"][0]["times"] == {"min": 2}


def parts(role, *content):
    return {"role": role, "content": list(content)}


def text_part(text):
    return {"type": "text", "text": text}


ORDER = {"order": "A-1"}
USE = {"type": "tool_use", "id": "u1", "name": "refund_order", "input": ORDER}
DONE = agent("Done")
ANTHROPIC = [
    user("refund A-1"),
    parts("assistant", text_part("Wait."), USE),
    parts("user", {"type": "tool_result", "tool_use_id": "u1", "content": "ok"}, text_part("<reminder>")),
    DONE,
]
RESPONSES = [
    {"type": "message", **parts("user", {"type": "input_text", "text": "refund A-1"})},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "refund_order", "arguments": json.dumps(ORDER)},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
    {"type": "message", **parts("assistant", {"type": "output_text", "text": "Done"})},
]
UI_CALL = {"type": "tool-refund_order", "toolCallId": "t", "input": ORDER, "output": "ok"}
UI = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "refund A-1"}]},
    {
        "id": "m2",
        "role": "assistant",
        "parts": [{"type": "step-start"}, UI_CALL | {"state": "output-available"}, text_part("Done")],
    },
]
UI_4_CALL = {"toolCallId": "t", "toolName": "refund_order", "args": ORDER, "result": 1, "state": "result"}
MODEL_CALL = {"toolCallId": "t", "toolName": "refund_order"}
MODEL = [
    user("refund A-1"),
    parts("assistant", {"type": "tool-call", "input": ORDER} | MODEL_CALL),
    parts("tool", {"type": "tool-result", "output": "ok"} | MODEL_CALL),
    DONE,
]
OPENAI = [user("refund A-1"), *call("refund_order", ORDER), DONE]
SPELLINGS = {
    "OpenAI": OPENAI, "Responses": RESPONSES, "Anthropic": ANTHROPIC, "AI SDK": MODEL, "AI SDK UI": UI,
    "AI SDK UI 4": [user("refund A-1"), DONE | {"toolInvocations": [UI_4_CALL]}],
}  # fmt: skip


@each_row("messages", SPELLINGS.values(), ids=SPELLINGS)
def test_message_formats_of_all_vendors_give_the_same_draft(tmp_path, messages):
    [test], text = draft(tmp_path, {"messages": messages})
    assert [turn["user"] for turn in test["turns"]] == ["refund A-1"]
    assert test["evaluations"][0]["args"] == ORDER
    assert "Done" in text


LAYOUTS = {
    "a list a line": [OPENAI],
    "a list of lists": [[OPENAI, OPENAI]],
    "an object of many": [{"conversations": [{"messages": OPENAI}, {"messages": OPENAI}]}],
    "a message a line by id": [{**message, "session_id": "s"} for message in OPENAI],
    "a message a line": OPENAI,
}


@each_row("conversations", LAYOUTS.values(), ids=LAYOUTS)
def test_conversations_are_read_from_every_layout_of_a_file(tmp_path, conversations):
    [test], _ = draft(tmp_path, *conversations)
    assert test["evaluations"][0]["toolName"] == "refund_order"


TEXT = """# Refund

[10:31] User: I want my money back
for order A-1.
[10:32] Agent: **Done**
---
Customer: Bye
Assistant: Good bye
"""


def test_plain_text_transcript_has_no_tool_checks(tmp_path):
    (first, second), text = draft(tmp_path, TEXT, name="chat.txt")
    assert first["name"] == "Refund"
    assert first["turns"] == [{"user": "I want my money back\nfor order A-1."}]
    assert [check["strict"] for check in first["evaluations"]] == ["regex"]
    assert "it is not recorded which tools were called" in text
    assert second["turns"] == [{"user": "Bye"}]


TRAJECTORY = {
    "schema_version": "ATIF-v1.6", "session_id": "s-1", "agent": {"name": "shop", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be kind."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "refund A-1"}]},
        {
            "step_id": 3, "source": "agent", "message": "",
            "tool_calls": [{"tool_call_id": "t", "function_name": "refund_order", "arguments": ORDER}],
            "observation": {"results": [{"source_call_id": "t", "content": "ok"}]},
        },
        {"step_id": 4, "source": "agent", "message": "Done"},
    ],
}  # fmt: skip


@each_row("version", range(8))
def test_trajectories_of_every_version_are_read(tmp_path, version):
    trajectory = {**TRAJECTORY, "schema_version": f"ATIF-v1.{version}"}
    if version == 7:
        trajectory = {**trajectory, "trajectory_id": "s-1"}
        del trajectory["session_id"]
    [test], text = draft(tmp_path, trajectory, form="atif", name="t.json")
    assert test["evaluations"][0]["args"] == {"order": "A-1"}
    assert "Drafted from s-1" in text


def error_of(tmp_path, data, form="transcript", name="chat.jsonl"):
    source = tmp_path / name
    source.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    settings = ImportSettings(format=form, file=source, output=tmp_path / "suite.yaml")
    with pytest.raises(UsageError) as caught:
        import_suite(settings, RunContext({}))
    assert not (tmp_path / "suite.yaml").exists()
    return str(caught.value).removeprefix(str(tmp_path) + "/")


def test_invalid_conversation_file_is_refused_with_its_position(tmp_path):
    half = json.dumps(REFUND).encode()[:80]
    assert error_of(tmp_path, half).startswith("chat.jsonl:1:")
    assert "no line begins with 'User:'" in error_of(tmp_path, b"\x00\x01")
    assert "a line before the first 'User:'" in error_of(tmp_path, b"hello\nUser: hi")
    assert "not UTF-8" in error_of(tmp_path, b"User: Ol\xe9")
    assert "holds no messages" in error_of(tmp_path, {"rows": [1]})
    assert "nested too deeply" in error_of(tmp_path, b"[" * 100_000)
    assert "has the role 'robot'" in error_of(tmp_path, [user("hi"), {"role": "robot", "content": "x"}])
    nameless = {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}
    assert "a tool call in turn 1 has no name" in error_of(tmp_path, [user("hi"), nameless])
    assert "is no trajectory" in error_of(tmp_path, [REFUND], "atif")
    other = {**TRAJECTORY, "schema_version": "ATIF-v2.0"}
    assert "read are ATIF-v1.0 to ATIF-v1.7" in error_of(tmp_path, other, "atif")
    steps = [*TRAJECTORY["steps"], {"source": {"a": 1}, "message": "x"}]
    message = error_of(tmp_path, {**TRAJECTORY, "steps": steps}, "atif")
    assert "is no step: its source is none of user, agent" in message
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(100_000_001)
    settings = ImportSettings(format="transcript", file=huge, output=tmp_path / "suite.yaml")
    with pytest.raises(UsageError, match=r"it is larger than 100 MB\. Split the file\."):
        import_suite(settings, RunContext({}))


def test_draft_test_is_named_by_title_or_message_that_caused_tool_calls(tmp_path):
    greeting = [user("Hello"), agent("Hi"), *OPENAI]
    [test], _ = draft(tmp_path, {"messages": greeting})
    assert test["name"] == "refund A-1"
    [test], _ = draft(tmp_path, {"title": "Money back", "messages": greeting})
    assert test["name"] == "Money back"
    before = [agent("Welcome"), *call("load_profile", {"id": 1})]
    [test], text = draft(tmp_path, [*before, *OPENAI])
    assert [check.get("toolName") for check in test["evaluations"]] == ["refund_order", None]
    assert "The agent spoke first, which is not in the test: Welcome" in text
    assert "a tool was called before the first message" in text


def test_control_characters_runner_commands_and_variables_in_chats_have_no_effect(tmp_path):
    reply = "ok\x1b[2J\u202e\n::stop-commands::x\n##[add-mask]y"
    _, text = draft(tmp_path, [user("hi"), agent(reply)])
    assert not {"\x1b", "\u202e"} & {*text}
    assert "::stop" not in text
    assert "##[" not in text
    draft(tmp_path, [user("What is ${HOME}?"), agent("No idea")])
    assert load_suite(tmp_path / "suite.yaml").suite.tests[0].turns[0].user == "What is ${HOME}?"


def test_json_draft_stores_notes_under_x_note_key(tmp_path):
    _, text = draft(tmp_path, REFUND, into="suite.json")
    [test] = json.loads(text)["tests"]
    assert test["x-note"].startswith("Drafted from r-1")
    assert "You are welcome." in test["evaluations"][-1]["x-note"]
    assert weaknesses(load_suite(tmp_path / "suite.json")) == ()


def test_import_as_run_grades_recorded_conversations_without_agent(tmp_path, capsys):
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


def test_conversation_options_are_refused_for_other_formats(tmp_path):
    (tmp_path / "t.csv").write_text("user\nHello\n")
    (tmp_path / "c.jsonl").write_text(json.dumps(REFUND))
    table = {"format": "csv", "file": tmp_path / "t.csv"}
    chat = {"format": "transcript", "file": tmp_path / "c.jsonl"}
    for settings, message in (
        (table | {"as_run": True}, "`as_run=`: has no effect"),
        (table | {"keep_personal_data": True}, "`keep_personal_data=`: has no effect"),
        (chat | {"as_run": True, "output": tmp_path / "s.yaml"}, "Omit `output=`"),
    ):
        with pytest.raises(UsageError, match=message):
            import_suite(ImportSettings(**settings), RunContext({}))


def test_personal_data_and_secrets_are_replaced_in_drafts(tmp_path, capsys):
    chat = [user("I am ann@x.example"), agent("Hi ann@x.example")]
    [test], text = draft(tmp_path, chat)
    assert test["turns"] == [{"user": "I am user1@example.com"}]
    assert "ann@" not in text
    assert "e-mail a…e is now user1@example.com (2 times)" in capsys.readouterr().err
    [test], _ = draft(tmp_path, chat, keep_personal_data=True)
    assert test["turns"] == [{"user": "I am ann@x.example"}]
    chat = [user("My key is sk-abcdef123456"), agent("Keep sk-abcdef123456")]
    _, text = draft(tmp_path, chat, environ={"OPENAI_API_KEY": "sk-abcdef123456"})
    assert "sk-abcdef123456" not in text


PLACE = Problem("chats.jsonl", 1, 1, "", "")


def conversation(*turns, **user_info):
    return RecordedConversation("", PLACE, turns, user_info=user_info)


@each_row(("text", "expected"), [
    ("Write to ann.b+x@mail.example.org.", "Write to user1@example.com."),
    ("Call +49 170 1234567 now", "Call +49 555 0000001 now"),
    ("Call +491701234567 now", "Call +495550000001 now"),
    ("Call 0049 170 1234567 now", "Call 0049 555 0000001 now"),
    ("Call (212) 555-0187", "Call (555) 000-0001"),
    ("Call 0170 1234567", "Call 0555 0000001"),
    ("Card 4111 1111 1111 1111", "Card 4000 0000 0000 0010"),
    ("IBAN DE89 3704 0044 0532 0130 00 please", "IBAN DE09 0000 0000 0000 0000 01 please"),
    ("IBAN BE68 5390 0754 7034 from me", "IBAN BE27 0000 0000 0001 from me"),
])  # fmt: skip
def test_stand_in_keeps_separators_country_and_valid_check_digits(text, expected):
    assert StandIns(()).text(text) == expected


def test_orders_dates_and_numbers_with_wrong_check_digits_are_kept():
    numbers = ("order 1234567890", "on 2026-11-28 at 10:30", "v1.2.3")
    for text in (*numbers, "card 4111 1111 1111 1112", "DE00 3704 0044 0532 0130 00"):
        assert StandIns(()).text(text) == text


def test_same_personal_data_gets_same_stand_in_in_all_conversations():
    arguments = {"to": "ann@x.example", "card": 4111111111111111}
    call = ToolCall(name="pay", arguments=arguments, result={"phone": ["+491701234567"]})
    turn = recorded_turn(1, "I am ann lee, ann@x.example, +49 170 1234567", "Hi Ann", [call])
    first = conversation(turn, fullName="Ann Lee", contact={"phone": "7654321"})
    second = conversation(recorded_turn(1, "ANN again: ANN@x.example, 7654321", "ok", None))
    stand_ins = StandIns([first, second])
    one, other = map(stand_ins.conversation, (first, second))
    assert one.user_info == {"fullName": "Alex Robin", "contact": {"phone": "5550002"}}
    assert one.turns[0].user == "I am alex robin, user1@example.com, +49 555 0000001"
    assert one.turns[0].agent == "Hi Alex"
    [made] = one.turns[0].tool_calls
    assert made.arguments == {"to": "user1@example.com", "card": 4000000000000010}
    assert made.result == {"phone": ["+495550000001"]}
    assert other.turns[0].user == "ALEX again: user1@example.com, 5550002"


def test_stand_ins_are_listed_without_the_data_and_are_always_different():
    stand_ins = StandIns(())
    stand_ins.text("a@x.example and a@x.example, +49 170 1234567")
    assert listed_for_review(stand_ins.review()) == [
        "e-mail a…e is now user1@example.com (2 times)",
        "phone +…7 is now +49 555 0000001 (once)",
    ]
    names = [f"{letter}nna" for letter in "BCDFGHJKLMNP"]
    people = [conversation(recorded_turn(1, "hi", "hi", None), name=name) for name in [*names, "Alex"]]
    stand_ins = StandIns(people)
    made = [stand_ins.text(name) for name in names]
    assert len(set(made)) == len(names)
    assert "Alex" not in made
