"""Lists of chat messages in the spellings of frameworks: what is new in them, and what is evidence."""

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
from ci_evals.domain.transcript import ToolStatus
from ci_evals.extensions.http.options import HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.support.redaction import Redactor

ASKED = {"role": "user", "content": "A refund"}
OPENAI = [
    {"role": "assistant", "content": "One moment.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"amount": 42}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"ok": true}'},
    {"role": "assistant", "content": "Done."},
]  # fmt: skip
LANGCHAIN = [
    {
        "type": "ai",
        "content": "One moment.",
        "tool_calls": [{"id": "c1", "name": "refund", "args": {"amount": 42}}],
    },
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
SHAPES = {
    "openai": OPENAI,
    "langchain": LANGCHAIN,
    "anthropic": ANTHROPIC,
    "ai-sdk": AI_SDK,
    "google": GOOGLE,
    "responses": RESPONSES,
}


def asked(*texts: str, before: tuple[str, list[Any]] = ("", [])) -> Thread:
    """Return a conversation in which these messages were sent, the last after the answer `before`."""
    thread = Thread()
    for text in texts[:-1]:
        thread.ask(text)
    thread.take(before[0], chat_messages.seen(before[1]))
    thread.ask(texts[-1])
    return thread


@pytest.mark.parametrize("new", SHAPES.values(), ids=SHAPES)
def test_the_new_messages_of_a_thread_are_the_reply(new: list[Any]) -> None:
    """Words, calls, arguments and results, whoever wrote the thread."""
    again = [ASKED, *new, {**ASKED, "content": "Again"}, *new]
    for messages, thread in (
        ([ASKED, *new], asked("A refund")),
        (new, asked("A refund")),
        (again, asked("A refund", "Again", before=("One moment.\n\nDone.", [ASKED, *new]))),
    ):
        text, calls, doubt, _ = chat_messages.read(messages, thread)
        assert doubt is None
        assert text == "One moment.\n\nDone."
        assert calls
        (call,) = calls
        assert (call.id, call.name, call.arguments, call.result) == (
            "c1",
            "refund",
            {"amount": 42},
            {"ok": True},
        )


def test_earlier_calls_are_not_the_replys() -> None:
    """But they show that the list would have others."""
    later = [ASKED, *OPENAI, {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "Bye."}]
    thread = asked("A refund", "Thanks", before=("One moment.\n\nDone.", OPENAI))
    assert chat_messages.read(later, thread) == ("Bye.", (), None, None)


@pytest.mark.parametrize(
    ("message", "known"),
    [
        ({"role": "assistant", "content": "Hi"}, False),
        ({"role": "assistant", "content": "Hi", "tool_calls": []}, True),
        ({"role": "assistant", "content": "Hi", "tool_calls": None}, False),
        ({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}, False),
    ],
)
def test_a_list_without_a_sign_of_calls_is_no_evidence(message: Any, known: bool) -> None:
    """It may be that the agent leaves them out."""
    assert chat_messages.read([ASKED, message], asked("A refund")) == (
        "Hi",
        () if known else None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("new", "names"),
    [
        (
            [
                {
                    "role": "assistant",
                    "content": None,
                    "function_call": {"name": "refund", "arguments": "{}"},
                },
                {"role": "function", "name": "refund", "content": "done"},
                {"role": "assistant", "content": "Done"},
            ],
            ["refund"],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "1", "name": "refund", "input": {}}],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "1", "content": "ok"},
                        {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
                    ],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
            ],
            ["refund"],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "1", "name": "look_up", "input": {}},
                        {
                            "type": "mcp_tool_use",
                            "id": "2",
                            "name": "refund",
                            "input": {},
                            "server_name": "s",
                        },
                    ],
                },
                {"role": "assistant", "content": "Done"},
            ],
            ["look_up", "refund"],
        ),
        (
            [
                {
                    "type": "ai",
                    "content": [
                        {"type": "function_call", "call_id": "1", "name": "refund", "arguments": "{}"}
                    ],
                    "tool_calls": [{"name": "refund", "args": {}, "id": "1"}],
                },
                {"type": "ai", "content": "Done"},
            ],
            ["refund"],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "1", "name": "look_up", "input": {}},
                        {"type": "some_new_tool_call", "id": "2", "name": "refund"},
                    ],
                },
                {"role": "assistant", "content": "Done"},
            ],
            None,
        ),
    ],
    ids=["older", "reminder", "of a server", "in both places", "unknown"],
)
def test_no_call_is_missed(new: list[Any], names: list[str] | None) -> None:
    """What may be a call and cannot be read leaves all calls unknown."""
    answer = chat_messages.read([{"role": "user", "content": "Refund it"}, *new], asked("Refund it"))
    assert (answer.calls and [call.name for call in answer.calls]) == names
    assert answer.text.endswith("Done")


SAID = {"role": "assistant", "content": "Done", "tool_calls": []}
LOOK_UP = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]}  # fmt: skip
DOUBTFUL: dict[str, tuple[list[Any], str]] = {
    "result alone": ([{"role": "tool", "tool_call_id": "9", "content": "ok"}, SAID], chat_messages.NO_CALL),
    "result of another call": (
        [LOOK_UP, {"role": "tool", "tool_call_id": "9", "content": "ok"}, SAID],
        chat_messages.NO_CALL,
    ),
    "older result": ([{"role": "function", "name": "refund", "content": "ok"}, SAID], chat_messages.NO_CALL),
    "result without id or name": ([{"role": "tool", "content": "ok"}, SAID], chat_messages.NO_CALL),
    "part": (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": "ok"}]}, SAID],
        chat_messages.NO_CALL,
    ),
    "item": ([{"type": "function_call_output", "call_id": "9", "output": "ok"}, SAID], chat_messages.NO_CALL),
    "part of google": (
        [{"role": "user", "parts": [{"functionResponse": {"name": "refund", "response": {}}}]}, SAID],
        chat_messages.NO_CALL,
    ),
    "invalid call": (
        [{**SAID, "invalid_tool_calls": [{"name": "refund", "args": "{", "id": "1"}]}],
        chat_messages.UNREADABLE,
    ),
}


@each_row(("new", "doubt"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_sign_of_a_call_that_is_not_listed_is_a_doubt(new: list[Any], doubt: str) -> None:
    """A tool that answered was called, and a call with broken arguments is one."""
    assert chat_messages.read([ASKED, *new], asked("A refund")).doubt == doubt


def test_a_result_of_an_earlier_turns_call_is_no_doubt() -> None:
    """The call is in the thread."""
    thread = asked("Hi", "A refund", before=("Wait", [LOOK_UP]))
    messages = [
        {"role": "user", "content": "Hi"}, LOOK_UP, ASKED,
        {"role": "tool", "tool_call_id": "1", "content": "ok"}, SAID,
    ]  # fmt: skip
    assert chat_messages.read(messages, thread).doubt is None


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": "", "refusal": "I cannot."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]},
    ],
    ids=["no content", "empty content", "part"],
)
def test_refusal_is_reported(message: Any) -> None:
    """OpenAI has its words apart, and the user reads them."""
    assert chat_messages.read([ASKED, message], asked("A refund")).text == "I cannot."


def test_a_call_without_a_name_leaves_all_unknown() -> None:
    """It may be the one that matters."""
    assert (
        chat_messages.read([{"role": "assistant", "content": "Hi", "tool_calls": [{}]}], Thread()).calls
        is None
    )


def test_failed_call_is_shown_as_failed() -> None:
    """By the message of its result."""
    failed = {"role": "tool", "tool_call_id": "c1", "content": "no such order", "status": "error"}
    (call,) = chat_messages.read([OPENAI[0], failed], Thread()).calls or ()
    assert (call.status, call.result) == (ToolStatus.ERROR, "no such order")


@pytest.mark.parametrize("messages", [[], [ASKED], [*OPENAI, ASKED], ["Hi", None, 7], [{}]])
def test_a_list_without_a_new_message_is_no_reply(messages: list[Any]) -> None:
    """Neither from code nor over HTTP."""
    thread = asked("A refund")
    with pytest.raises(ValueError, match="new message of the assistant"):
        chat_messages.read(messages, thread)
    with pytest.raises(ValueError, match="has no new message of the assistant in its 'messages'"):
        plain_reply.read({"messages": messages}, 0.1, thread)
    with pytest.raises(AgentError, match=r"has no new message of the assistant at \$\.thread: "):
        Reader(HttpReply(messages="$.thread")).reply({"thread": messages}, 0.1, Redactor(), thread=thread)


def test_code_may_return_messages_or_one_of_them() -> None:
    """As OpenAI's SDK has it, besides other keys of a reply."""
    reply = plain_reply.read({"messages": [ASKED, *OPENAI], "inputTokens": 7}, 0.1)
    assert (reply.agent, reply.workflows, reply.input_tokens) == ("One moment.\n\nDone.", ("refund",), 7)
    one = plain_reply.read({**OPENAI[0], "refusal": None, "escalated": True}, 0.1)
    assert (one.agent, one.params, one.handed_over) == ("One moment.", {"amount": 42}, True)
    own = plain_reply.read({"messages": OPENAI, "text": "Hi", "toolCalls": []}, 0.1)
    assert (own.agent, own.tool_calls) == ("Hi", ())


def test_an_http_agent_may_answer_with_the_whole_thread() -> None:
    """A path of its own for text or calls counts more."""
    body = {"thread": [ASKED, *OPENAI], "calls": [], "words": "Hi", "error": None}
    reply = Reader(HttpReply(messages="$.thread")).reply(body, 0.1, Redactor())
    assert (reply.agent, reply.workflows) == ("One moment.\n\nDone.", ("refund",))
    paths = HttpReply(messages="$.thread", text="$.words", tool_calls="$.calls")
    reply = Reader(paths).reply(body, 0.1, Redactor())
    assert (reply.agent, reply.tool_calls) == ("Hi", ())
    failed = Reader(HttpReply(messages="$.none", error="$.why")).reply({"why": "down"}, 0.1, Redactor())
    assert (failed.agent, failed.error_detail) == ("", "down")


CALL = {
    "role": "assistant",
    "content": "The password is hunter2.",
    "tool_calls": [{"id": "c9", "function": {"name": "refund", "arguments": '{"amount": 4990}'}}],
}
SAW = {"role": "user", "content": "Observation: refunded 4990"}
LAST = {"role": "assistant", "content": "All right.", "tool_calls": []}
SYSTEM = {"role": "system", "content": "You are kind."}


def user(text: str) -> dict[str, Any]:
    """Return a message of the user's."""
    return {"role": "user", "content": text}


TWO = asked("A refund", "And now?", before=("One moment.\n\nDone.", [ASKED, *OPENAI]))
SAME = asked("A refund", "A refund", before=("One moment.\n\nDone.", [ASKED, *OPENAI]))
TURN = [CALL, SAW, LAST]

ALL_OF_THE_TURN = {
    "after the message": (asked("A refund"), [ASKED, *TURN]),
    "only new ones": (asked("A refund"), TURN),
    "after instructions": (asked("A refund"), [SYSTEM, ASKED, *TURN]),
    "two observations": (asked("A refund"), [ASKED, SAW, *TURN, SAW, LAST]),
    "the message again": (asked("A refund"), [ASKED, CALL, ASKED, LAST]),
    "the message within an observation": (asked("refund"), [CALL, user("Observation: refund made"), LAST]),
    "the message within a prompt": (asked("A refund"), [user("Question: A  refund\nAnswer it."), *TURN]),
    "of other white space": (asked(" A\nrefund"), [ASKED, *TURN]),
    "as parts": (
        asked("A refund"),
        [{"role": "user", "content": [{"type": "text", "text": "A refund"}]}, *TURN],
    ),
    "another text, at first": (asked("Una devolución"), [ASKED, *TURN]),
    "a whole thread": (TWO, [SYSTEM, ASKED, *OPENAI, user("And now?"), *TURN]),
    "the end of a thread": (TWO, [OPENAI[-1], user("And now?"), *TURN]),
    "a thread of equal messages": (SAME, [ASKED, *OPENAI, ASKED, *TURN]),
    "new ones of a later turn": (TWO, TURN),
    "a later turn after its message": (TWO, [user("And now?"), *TURN]),
    "of another role": (asked("A refund"), [ASKED, {**CALL, "role": "user"}, SAW, LAST]),
    "after history": (Thread.of([user("Hello"), {"role": "assistant", "content": "Hi"}]), TURN),
}


@each_row(("thread", "messages"), ALL_OF_THE_TURN.values(), ids=ALL_OF_THE_TURN)
def test_all_messages_after_the_one_that_was_sent_are_the_turns(thread: Thread, messages: list[Any]) -> None:
    """Messages of the role `user` that nobody sent hide neither calls nor words."""
    text, calls, doubt, _ = chat_messages.read(messages, thread)
    assert doubt is None
    assert [call.arguments for call in calls or ()] == [{"amount": 4990}]
    assert text.endswith("All right.")
    assert ("hunter2" in text) == (CALL in messages)


UNKNOWN = {
    "the message was rewritten": (TWO, [ASKED, *OPENAI, user("Y ahora?"), *TURN], None),
    "all messages were": (TWO, [user("Una devolución"), *OPENAI, user("Y ahora?"), *TURN], None),
    "only the answers of before": (TWO, [OPENAI[-1], user("Y ahora?"), *TURN], None),
    "calls in front, which nobody knows": (TWO, [ASKED, CALL, user("And now?"), LAST], ()),
    "the message again, in a later turn": (SAME, [ASKED, CALL, ASKED, LAST], ()),
    "an example in front": (asked("A refund"), [user("Hello"), CALL, SAW, ASKED, LAST], ()),
}


@pytest.mark.parametrize(("thread", "messages", "calls"), UNKNOWN.values(), ids=UNKNOWN)
def test_where_a_turn_begins_is_not_guessed(thread: Thread, messages: list[Any], calls: Any) -> None:
    """Other calls may be the turn's, and the reason says so."""
    answer = chat_messages.read(messages, thread)
    assert answer.calls == calls
    assert answer.doubt
    for reply in (
        plain_reply.read({"messages": messages}, 0.1, thread),
        Reader(HttpReply(messages="$.messages")).reply(
            {"messages": messages}, 0.1, Redactor(), thread=thread
        ),
    ):
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
def test_any_list_is_read_or_refused(messages: list[Any]) -> None:
    """Never another exception."""
    try:
        text, calls, *_ = chat_messages.read(messages, asked("user", "text"))
    except ValueError:
        return
    assert isinstance(text, str)
    assert calls is None or isinstance(calls, tuple)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "agent", "content": "Secret."},
        {"role": "bot", "content": "Secret."},
        {"role": "assistant", "text": "Secret."},
        {"role": "agent", "content": None, "text": "Secret."},
        {"type": "ai", "parts": [{"text": "Secret."}]},
    ],
)
def test_all_words_of_the_agent_belong_to_the_reply(message: dict[str, Any]) -> None:
    """Whatever it calls itself, and wherever its messages hold the words."""
    done = {"role": "assistant", "content": "Done."}
    reply = plain_reply.read({"messages": [ASKED, message, done]}, 0.1)
    assert reply.agent == "Secret.\n\nDone."


@each_row(
    ("message", "unread"),
    [
        ({"role": "narrator", "content": "The password is hunter2."}, "unknown role 'narrator'"),
        ({"role": "assistant", "content": [{"type": "markdown", "markdown": "hunter2"}]}, "type 'markdown'"),
        ({"role": "assistant", "content": [{"type": "card", "body": [{"title": "hunter2"}]}]}, "type 'card'"),
        ({"role": "assistant", "content": [{"html": "hunter2"}]}, "unknown type"),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "hunter2"}]}, None),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hunter2"}]}, None),
        ({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}, None),
        ({"role": "model", "parts": [{"inlineData": {"data": "aGk="}}]}, None),
        ({"role": "system", "content": "Be kind."}, None),
        ({"role": "tool", "tool_call_id": "c1", "content": "hunter2"}, None),
    ],
)
def test_words_in_unknown_forms_leave_it_open_what_was_said(message: Any, unread: str | None) -> None:
    """A forbidden text may be among them: that it was not found is no pass."""
    answered = {"role": "assistant", "content": "Done.", "tool_calls": []}
    body = {"messages": [ASKED, message, answered]}
    by_code = plain_reply.read(body, 0.1)
    by_http = Reader(HttpReply(messages="$.messages")).reply(body, 0.1, Redactor())
    for reply in (by_code, by_http):
        why = reply.not_found.get("text")
        assert why is None if unread is None else unread in why
    own = plain_reply.read({**body, "text": "Done."}, 0.1)
    assert "text" not in own.not_found
