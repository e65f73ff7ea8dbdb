"""Lists of chat messages in the spellings of frameworks: what is new in them, and what is evidence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters import chat_messages
from ci_evals.adapters.code import plain_reply
from ci_evals.adapters.endpoints.http_wire import Reader
from ci_evals.domain.agents import HttpReply
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import ToolStatus
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
SHAPES = {"openai": OPENAI, "langchain": LANGCHAIN, "anthropic": ANTHROPIC, "ai-sdk": AI_SDK}


@pytest.mark.parametrize("new", SHAPES.values(), ids=SHAPES)
def test_the_new_messages_of_a_thread_are_the_reply(new: list[Any]) -> None:
    """Words, calls, arguments and results, whoever wrote the thread."""
    for thread in ([ASKED, *new], new, [ASKED, *new, {**ASKED, "content": "Again"}, *new]):
        text, calls = chat_messages.read(thread)
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
    assert chat_messages.read(later) == ("Bye.", ())


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
    assert chat_messages.read([ASKED, message]) == ("Hi", () if known else None)


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
    answer = chat_messages.read([{"role": "user", "content": "Refund it"}, *new])
    assert (answer.calls and [call.name for call in answer.calls]) == names
    assert answer.text.endswith("Done")


def test_a_call_without_a_name_leaves_all_unknown() -> None:
    """It may be the one that matters."""
    assert chat_messages.read([{"role": "assistant", "content": "Hi", "tool_calls": [{}]}]).calls is None


def test_a_failed_call_is_told_as_such() -> None:
    """By the message of its result."""
    failed = {"role": "tool", "tool_call_id": "c1", "content": "no such order", "status": "error"}
    (call,) = chat_messages.read([OPENAI[0], failed]).calls or ()
    assert (call.status, call.result) == (ToolStatus.ERROR, "no such order")


@pytest.mark.parametrize("messages", [[], [ASKED], [*OPENAI, ASKED], ["Hi", None, 7], [{}]])
def test_a_list_without_a_new_message_is_no_reply(messages: list[Any]) -> None:
    """Neither from code nor over HTTP."""
    with pytest.raises(ValueError, match="new message of the assistant"):
        chat_messages.read(messages)
    with pytest.raises(ValueError, match="has no new message of the assistant in its 'messages'"):
        plain_reply.read({"messages": messages}, 0.1)
    with pytest.raises(AgentError, match=r"has no new message of the assistant at \$\.thread: "):
        Reader(HttpReply(messages="$.thread")).reply({"thread": messages}, 0.1, Redactor())


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
        text, calls = chat_messages.read(messages)
    except ValueError:
        return
    assert isinstance(text, str)
    assert calls is None or isinstance(calls, tuple)
