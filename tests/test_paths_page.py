"""The page on paths for common answers: each path finds what it promises."""

import pytest
import yaml
from doc_pages import ROOT, blocks, code, table

from ci_evals.extensions.http.options import HttpOptions, HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.support.redaction import Redactor

PAGE = (ROOT / "docs/http-paths.md").read_text()
ARGUMENTS = {"amount": 42}
ANSWERS = {
    "OpenAI Responses": lambda *calls: {
        "output": [
            *(
                {"type": "function_call", "call_id": "c1", "name": n, "arguments": '{"amount": 42}'}
                for n in calls
            ),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
        ]
    },
    "Anthropic Messages": lambda *calls: {
        "content": [
            {"type": "text", "text": "Done"},
            *({"type": "tool_use", "id": "c1", "name": name, "input": ARGUMENTS} for name in calls),
        ]
    },
    "Gemini": lambda *calls: {"candidates": [{"content": {"parts": google_parts(calls)}}]},
    "Google ADK, `/run`": lambda *calls: [{"content": {"parts": [part]}} for part in google_parts(calls)],
    "AI SDK, steps": lambda *calls: {
        "text": "Done",
        "steps": [
            {
                "content": [
                    {"type": "text", "text": "Done"},
                    *(
                        {"type": "tool-call", "toolCallId": "c", "toolName": n, "input": ARGUMENTS}
                        for n in calls
                    ),
                ]
            }
        ],
    },
    "pydantic-ai, new messages": lambda *calls: [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
        {
            "kind": "response",
            "parts": [
                {"part_kind": "text", "content": "Done"},
                *({"part_kind": "tool-call", "tool_name": name, "args": ARGUMENTS} for name in calls),
            ],
        },
    ],
}


def google_parts(calls):
    return [*({"functionCall": {"name": name, "args": ARGUMENTS}} for name in calls), {"text": "Done"}]


@pytest.mark.parametrize(("name", "text", "calls"), table("answer of", PAGE))
def test_documented_path_finds_calls_and_their_absence(name, text, calls):
    reader = Reader(HttpReply(text=code(text), toolCalls=code(calls)))
    called = reader.reply(ANSWERS[name]("refund"), 0.1, Redactor())
    assert called.agent == "Done"
    assert [(call.name, call.arguments) for call in called.tool_calls] == [("refund", ARGUMENTS)]
    assert reader.reply(ANSWERS[name](), 0.1, Redactor()).tool_calls == ()


def test_path_table_distinguishes_no_calls_from_unknown():
    rows = [
        ("$.output[?@.type == 'function_call']", {"output": [{"type": "message"}]}),
        ("$.output[?@.type == 'function_call']", {}),
        ("$.parts[*].functionCall", {"parts": [{"text": "Hi"}]}),
        ("$.tool_calls", {"tool_calls": []}),
        ("$.tool_calls", {"tool_calls": None}),
    ]
    for (path, body), (_, _, verdict) in zip(rows, table("path", PAGE), strict=True):
        reply = Reader(HttpReply(text="$.reply", toolCalls=path)).reply(
            {"reply": "Hi", **body}, 0.1, Redactor()
        )
        assert (reply.tool_calls == ()) == verdict.startswith("passes"), path
        assert (reply.tool_calls is None) == (verdict == "undecided"), path


def test_example_options_of_paths_page_are_valid():
    (example,) = blocks("yaml", PAGE)
    HttpOptions.model_validate(yaml.safe_load(example)["adapterOptions"])
