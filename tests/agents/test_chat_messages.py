"""Chat messages in the formats of frameworks: which are new, and which are evidence of tool calls."""

from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.agents import chat_messages
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code import plain_reply
from ci_evals.domain.actions import calls_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Reply, ToolStatus
from ci_evals.extensions.http.options import HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.support.redaction import Redactor

QUESTION = {"role": "user", "content": "A refund"}
OPENAI = [
    {"role": "assistant", "content": "One moment.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"amount": 42}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}'},
    {"role": "assistant", "content": "Done."},
]  # fmt: skip
LANGCHAIN_CALL = {"id": "c1", "name": "refund", "args": {"amount": 42}}
LANGCHAIN = [
    {"type": "ai", "content": "One moment.", "tool_calls": [LANGCHAIN_CALL]},
    {"type": "tool", "tool_call_id": "c1", "content": '{"ok": true}', "status": "success"},
    {"type": "ai", "content": [{"type": "text", "text": "Done."}], "tool_calls": []},
]
ANTHROPIC = [
    {"role": "assistant", "content": [
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "c1", "name": "refund", "input": {"amount": 42}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"ok": true}'}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]  # fmt: skip
AI_SDK = [
    {"role": "assistant", "content": [
        {"type": "text", "text": "One moment."},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"amount": 42}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"ok": True}}]},
    {"role": "assistant", "content": "Done."},
]  # fmt: skip
GOOGLE = [
    {"role": "model", "parts": [
        {"text": "One moment."},
        {"functionCall": {"id": "c1", "name": "refund", "args": {"amount": 42}}}]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": "c1", "name": "refund", "response": {"ok": True}}}]},
    {"role": "model", "parts": [{"text": "Done."}]},
]  # fmt: skip
RESPONSES = [
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
    {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"amount": 42}'},
    {"type": "function_call_output", "call_id": "c1", "output": '{"ok": true}'},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]
SHAPES = {"openai": OPENAI, "langchain": LANGCHAIN, "anthropic": ANTHROPIC, "ai-sdk": AI_SDK}
SHAPES |= {"google": GOOGLE, "responses": RESPONSES}


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def from_http(messages: list[Any], **how: Any) -> Reply:
    return Reader(HttpReply(messages="$.messages")).reply({"messages": messages}, 0.1, Redactor(), **how)


def thread_of(*texts: str, before: tuple[str, list[Any]] = ("", [])) -> Thread:
    """Return a conversation in which these messages were sent, the last after the answer `before`."""
    thread = Thread()
    for text in texts[:-1]:
        thread.ask(text)
    thread.take(before[0], chat_messages.seen(before[1]))
    thread.ask(texts[-1])
    return thread


@pytest.mark.parametrize("new", SHAPES.values(), ids=SHAPES)
def test_new_messages_of_thread_are_read_as_reply_with_calls(new: list[Any]) -> None:
    again = [QUESTION, *new, user("Again"), *new]
    for messages, thread in (
        ([QUESTION, *new], thread_of("A refund")),
        (new, thread_of("A refund")),
        (again, thread_of("A refund", "Again", before=("One moment.\n\nDone.", [QUESTION, *new]))),
    ):
        text, calls, doubt, _ = chat_messages.read(messages, thread)
        assert (text, doubt) == ("One moment.\n\nDone.", None)
        assert calls
        (call,) = calls
        known = (call.id, call.name, call.arguments, call.result)
        assert known == ("c1", "refund", {"amount": 42}, {"ok": True})


def test_calls_of_earlier_turns_are_not_part_of_reply() -> None:
    later = [QUESTION, *OPENAI, user("Thanks"), assistant("Bye.")]
    thread = thread_of("A refund", "Thanks", before=("One moment.\n\nDone.", OPENAI))
    assert chat_messages.read(later, thread) == ("Bye.", (), None, None)
    messages = [user("Hi"), LOOK_UP, QUESTION, {"role": "tool", "tool_call_id": "1", "content": "ok"}, DONE]
    thread = thread_of("Hi", "A refund", before=("Wait", [LOOK_UP]))
    assert chat_messages.read(messages, thread).doubt is None  # the call is in the thread


@each_row(("message", "known"), [
    (assistant("Hi"), False),
    (assistant("Hi", tool_calls=[]), True),
    (assistant("Hi", tool_calls=None), False),
    (assistant([{"type": "text", "text": "Hi"}]), False),
])  # fmt: skip
def test_messages_without_call_lists_leave_calls_unknown(message: Any, known: bool) -> None:
    answer = chat_messages.read([QUESTION, message], thread_of("A refund"))
    assert answer == ("Hi", () if known else None, None, None)


CALL_OF = {
    "tool": {"type": "tool_use", "id": "1", "name": "refund", "input": {}},
    "lookup": {"type": "tool_use", "id": "1", "name": "look_up", "input": {}},
    "server": {"type": "mcp_tool_use", "id": "2", "name": "refund", "input": {}, "server_name": "s"},
    "response": {"type": "function_call", "call_id": "1", "name": "refund", "arguments": "{}"},
    "unknown": {"type": "some_new_tool_call", "id": "2", "name": "refund"},
}
RESULT_AND_REMINDER = [
    {"type": "tool_result", "tool_use_id": "1", "content": "ok"},
    {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
]
OLDER_RESULT = {"role": "function", "name": "refund", "content": "done"}


@each_row(
    ("new", "names"),
    [
        ([assistant(None, function_call={"name": "refund", "arguments": "{}"}), OLDER_RESULT], ["refund"]),
        ([assistant([CALL_OF["tool"]]), user(RESULT_AND_REMINDER)], ["refund"]),
        ([assistant([CALL_OF["lookup"], CALL_OF["server"]])], ["look_up", "refund"]),
        (
            [{"type": "ai", "content": [CALL_OF["response"]], "tool_calls": [LANGCHAIN_CALL | {"id": "1"}]}],
            ["refund"],
        ),
        ([assistant([CALL_OF["lookup"], CALL_OF["unknown"]])], None),
    ],
    ids=["older form", "result with reminder", "of a server", "in both places", "unknown type"],
)
def test_calls_are_read_in_every_format_and_unknown_if_one_is_unreadable(new: Any, names: Any) -> None:
    answer = chat_messages.read([user("Refund it"), *new, assistant("Done")], thread_of("Refund it"))
    assert (answer.calls and [call.name for call in answer.calls]) == names
    assert answer.text.endswith("Done")


DONE = assistant("Done", tool_calls=[])
LOOK_UP_CALL = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
LOOK_UP = assistant(None, tool_calls=[LOOK_UP_CALL])
UNLISTED_CALLS: dict[str, list[Any]] = {
    "result alone": [{"role": "tool", "tool_call_id": "9", "content": "ok"}],
    "result of another call": [LOOK_UP, {"role": "tool", "tool_call_id": "9", "content": "ok"}],
    "older result": [{"role": "function", "name": "refund", "content": "ok"}],
    "result without id or name": [{"role": "tool", "content": "ok"}],
    "part": [user([{"type": "tool_result", "tool_use_id": "9", "content": "ok"}])],
    "item": [{"type": "function_call_output", "call_id": "9", "output": "ok"}],
    "part of google": [{"role": "user", "parts": [{"functionResponse": {"name": "refund", "response": {}}}]}],
}


def test_tool_result_without_call_and_invalid_call_are_reported_as_doubt() -> None:
    thread = thread_of("A refund")
    for name, new in UNLISTED_CALLS.items():
        assert chat_messages.read([QUESTION, *new, DONE], thread).doubt == chat_messages.NO_CALL, name
    invalid = {**DONE, "invalid_tool_calls": [{"name": "refund", "args": "{", "id": "1"}]}
    assert chat_messages.read([QUESTION, invalid], thread).doubt == chat_messages.UNREADABLE
    nameless = [assistant("Hi", tool_calls=[{}])]
    assert chat_messages.read(nameless, Thread()).calls is None


def test_refusal_field_becomes_reply_text() -> None:
    """OpenAI has it in a field of its own, and the user reads it."""
    part = {"type": "refusal", "refusal": "I cannot."}
    for message in (
        assistant(None, refusal="I cannot."),
        assistant("", refusal="I cannot."),
        assistant([part]),
    ):
        assert chat_messages.read([QUESTION, message], thread_of("A refund")).text == "I cannot."


def test_tool_call_with_error_result_has_status_error() -> None:
    failed = {"role": "tool", "tool_call_id": "c1", "content": "no such order", "status": "error"}
    (call,) = chat_messages.read([OPENAI[0], failed], Thread()).calls or ()
    assert (call.status, call.result) == (ToolStatus.ERROR, "no such order")


def test_messages_without_new_assistant_message_are_rejected() -> None:
    thread = thread_of("A refund")
    for messages in ([], [QUESTION], [*OPENAI, QUESTION], ["Hi", None, 7], [{}]):
        with pytest.raises(ValueError, match="new message of the assistant"):
            chat_messages.read(messages, thread)
        with pytest.raises(ValueError, match="has no new message of the assistant in its 'messages'"):
            plain_reply.read({"messages": messages}, 0.1, thread)
        with pytest.raises(AgentError, match=r"has no new message of the assistant at \$\.messages: "):
            from_http(messages, thread=thread)


def test_messages_or_single_message_returned_by_code_agent_is_read() -> None:
    reply = plain_reply.read({"messages": [QUESTION, *OPENAI], "inputTokens": 7}, 0.1)
    assert (reply.agent, reply.workflows, reply.input_tokens) == ("One moment.\n\nDone.", ("refund",), 7)
    one = plain_reply.read({**OPENAI[0], "refusal": None, "escalated": True}, 0.1)
    assert (one.agent, one.params, one.handed_over) == ("One moment.", {"amount": 42}, True)
    own = plain_reply.read({"messages": OPENAI, "text": "Hi", "toolCalls": []}, 0.1)
    assert (own.agent, own.tool_calls) == ("Hi", ())


def test_whole_message_thread_returned_over_http_is_read() -> None:
    """A path of its own for text or calls has priority."""
    body = {"thread": [QUESTION, *OPENAI], "calls": [], "words": "Hi", "error": None}
    reply = Reader(HttpReply(messages="$.thread")).reply(body, 0.1, Redactor())
    assert (reply.agent, reply.workflows) == ("One moment.\n\nDone.", ("refund",))
    paths = HttpReply(messages="$.thread", text="$.words", tool_calls="$.calls")
    reply = Reader(paths).reply(body, 0.1, Redactor())
    assert (reply.agent, reply.tool_calls) == ("Hi", ())
    failed = Reader(HttpReply(messages="$.none", error="$.why")).reply({"why": "down"}, 0.1, Redactor())
    assert (failed.agent, failed.error_detail) == ("", "down")


REFUND_CALL = {"id": "c9", "function": {"name": "refund", "arguments": '{"amount": 4990}'}}
CALL = assistant("The password is hunter2.", tool_calls=[REFUND_CALL])
OBSERVATION = user("Observation: refunded 4990")
CLOSING = assistant("All right.", tool_calls=[])
SYSTEM = {"role": "system", "content": "You are kind."}
TWO = thread_of("A refund", "And now?", before=("One moment.\n\nDone.", [QUESTION, *OPENAI]))
SAME = thread_of("A refund", "A refund", before=("One moment.\n\nDone.", [QUESTION, *OPENAI]))
TURN = [CALL, OBSERVATION, CLOSING]

WHOLE_TURNS = {
    "after the message": (thread_of("A refund"), [QUESTION, *TURN]),
    "only new ones": (thread_of("A refund"), TURN),
    "after instructions": (thread_of("A refund"), [SYSTEM, QUESTION, *TURN]),
    "two observations": (thread_of("A refund"), [QUESTION, OBSERVATION, *TURN, OBSERVATION, CLOSING]),
    "the message again": (thread_of("A refund"), [QUESTION, CALL, QUESTION, CLOSING]),
    "the message within an observation": (
        thread_of("refund"),
        [CALL, user("Observation: refund made"), CLOSING],
    ),
    "the message within a prompt": (thread_of("A refund"), [user("Question: A  refund\nAnswer it."), *TURN]),
    "of other white space": (thread_of(" A\nrefund"), [QUESTION, *TURN]),
    "as parts": (thread_of("A refund"), [user([{"type": "text", "text": "A refund"}]), *TURN]),
    "another text, at first": (thread_of("Una devolución"), [QUESTION, *TURN]),
    "a whole thread": (TWO, [SYSTEM, QUESTION, *OPENAI, user("And now?"), *TURN]),
    "the end of a thread": (TWO, [OPENAI[-1], user("And now?"), *TURN]),
    "a thread of equal messages": (SAME, [QUESTION, *OPENAI, QUESTION, *TURN]),
    "new ones of a later turn": (TWO, TURN),
    "a later turn after its message": (TWO, [user("And now?"), *TURN]),
    "of another role": (thread_of("A refund"), [QUESTION, {**CALL, "role": "user"}, OBSERVATION, CLOSING]),
    "after history": (Thread.of([user("Hello"), {"role": "assistant", "content": "Hi"}]), TURN),
}


@each_row(("thread", "messages"), WHOLE_TURNS.values(), ids=WHOLE_TURNS)
def test_all_messages_after_the_sent_one_belong_to_the_turn(thread: Thread, messages: list[Any]) -> None:
    """Messages of the role `user` that nobody sent hide neither calls nor words."""
    text, calls, doubt, _ = chat_messages.read(messages, thread)
    assert doubt is None
    assert [call.arguments for call in calls or ()] == [{"amount": 4990}]
    assert text.endswith("All right.")
    assert ("hunter2" in text) == (CALL in messages)


UNCLEAR_TURNS = {
    "the message was rewritten": (TWO, [QUESTION, *OPENAI, user("Y ahora?"), *TURN], None),
    "all messages were": (TWO, [user("Una devolución"), *OPENAI, user("Y ahora?"), *TURN], None),
    "only the answers of before": (TWO, [OPENAI[-1], user("Y ahora?"), *TURN], None),
    "calls in front, which nobody knows": (TWO, [QUESTION, CALL, user("And now?"), CLOSING], ()),
    "the message again, in a later turn": (SAME, [QUESTION, CALL, QUESTION, CLOSING], ()),
    "an example in front": (thread_of("A refund"), [user("Hello"), CALL, OBSERVATION, QUESTION, CLOSING], ()),
}


@each_row(("thread", "messages", "calls"), UNCLEAR_TURNS.values(), ids=UNCLEAR_TURNS)
def test_unclear_start_of_turn_leaves_calls_incomplete_with_the_reason(thread, messages, calls):
    answer = chat_messages.read(messages, thread)
    assert answer.calls == calls
    assert answer.doubt
    for reply in (plain_reply.read({"messages": messages}, 0.1, thread), from_http(messages, thread=thread)):
        assert reply.not_found["toolCalls"] == answer.doubt
        assert not calls_of(reply).complete


_KEYS = st.sampled_from(["role", "type", "content", "tool_calls", "text", "id", "name", "tool_call_id"])
_WORDS = st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result", "tool-call"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(st.lists(_JSON, max_size=4))
def test_any_list_of_messages_is_read_or_rejected(messages: list[Any]) -> None:
    try:
        text, calls, *_ = chat_messages.read(messages, thread_of("user", "text"))
    except ValueError:
        return
    assert isinstance(text, str)
    assert calls is None or isinstance(calls, tuple)


def test_text_of_all_messages_of_agent_is_read_whatever_their_role_name() -> None:
    for message in (
        {"role": "agent", "content": "Secret."},
        {"role": "bot", "content": "Secret."},
        {"role": "assistant", "text": "Secret."},
        {"role": "agent", "content": None, "text": "Secret."},
        {"type": "ai", "parts": [{"text": "Secret."}]},
    ):
        reply = plain_reply.read({"messages": [QUESTION, message, assistant("Done.")]}, 0.1)
        assert reply.agent == "Secret.\n\nDone."


@each_row(("message", "unread"), [
    ({"role": "narrator", "content": "The password is hunter2."}, "unknown role 'narrator'"),
    (assistant([{"type": "markdown", "markdown": "hunter2"}]), "type 'markdown'"),
    (assistant([{"type": "card", "body": [{"title": "hunter2"}]}]), "type 'card'"),
    (assistant([{"html": "hunter2"}]), "unknown type"),
    (assistant([{"type": "output_text", "text": "hunter2"}]), None),
    (assistant([{"type": "thinking", "thinking": "hunter2"}]), None),
    (assistant([{"type": "image_url", "image_url": {"url": "https://x"}}]), None),
    ({"role": "model", "parts": [{"inlineData": {"data": "aGk="}}]}, None),
    ({"role": "system", "content": "Be kind."}, None),
    ({"role": "tool", "tool_call_id": "c1", "content": "hunter2"}, None),
])  # fmt: skip
def test_unknown_message_forms_are_reported_unless_text_is_given(message: Any, unread: str | None) -> None:
    """A forbidden text may be in them: that it was not found is no pass."""
    body = {"messages": [QUESTION, message, assistant("Done.", tool_calls=[])]}
    for reply in (plain_reply.read(body, 0.1), from_http(body["messages"])):
        why = reply.not_found.get("text")
        assert why is None if unread is None else unread in why
    own = plain_reply.read({**body, "text": "Done."}, 0.1)
    assert "text" not in own.not_found
