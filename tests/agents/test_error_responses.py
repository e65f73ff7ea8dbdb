"""Errors that an agent reports are its answer, lost responses are not: for every documented adapter."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import endpoints
import framework_chats
import pytest
import world
from agent_cases import server_agent
from agent_sessions import replies_of
from doc_pages import ROOT, table
from each_row import each_row
from endpoints import EndpointRequest, adk_event, ag_ui_call, completion, response, sse

from ci_evals.agents.aui.wire import read_reply
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.actions import calls_of
from ci_evals.domain.errors import AgentError
from ci_evals.ports import Agent
from ci_evals.support.redaction import Redactor

REFUND = ag_ui_call("refund", {"amount": 42}, "ok")
STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
UPDATE = (
    'event: updates\ndata: {"node": {"messages": [{"type": "ai", "id": "m1", "content": "One moment.", '
    '"tool_calls": [{"name": "refund", "args": {"amount": 42}, "id": "c1"}]}]}}\n\n'
)
CALL = {"functionCall": {"id": "c1", "name": "refund", "args": {"amount": 42}}}
CALL_RESULT = {"functionResponse": {"id": "c1", "name": "refund", "response": {"ok": True}}}
ITEM = {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"amount": 42}'}


@dataclass(frozen=True)
class Case:
    adapter: str
    answer: Any
    error: str | None
    """The agent's error; None if the trial has failed."""
    calls: tuple[str, ...] | None = None
    """The tools that were called until then; None if that is unknown."""
    failure: str = ""


def langgraph(stream: Any, tasks: Any = ()) -> Callable[[EndpointRequest], Any]:
    """Answer as a LangGraph Server: a thread, a run, its state."""

    def answer(asked: EndpointRequest) -> Any:
        if asked.path.endswith("/runs/stream"):
            return stream
        if asked.path.endswith("/state"):
            return {"values": {"messages": []}, "next": ["node"], "tasks": [*tasks]}
        return {"thread_id": "t1"}

    return answer


def a2a(body: Any) -> Callable[[EndpointRequest], Any]:
    """Answer as an agent of A2A: a card, then this body."""

    def answer(asked: EndpointRequest) -> Any:
        if asked.method == "GET":
            url = f"http://{asked.headers['host']}/"
            interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return {"name": "x", "supportedInterfaces": [interface], "capabilities": {"streaming": False}}
        return {"jsonrpc": "2.0", "id": 1, **body}

    return answer


def task(state: str) -> Callable[[EndpointRequest], Any]:
    """Answer with a task that ended so."""
    message = {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": "The bank is closed."}]}
    return a2a({"result": {"task": {"id": "t", "status": {"state": state, "message": message}}}})


def rasa(events: list[Any], words: Any = ()) -> Callable[[EndpointRequest], Any]:
    """Answer as a Rasa server: its channel, and the tracker before and after."""
    kept: list[Any] = [{"event": "action", "name": "action_session_start"}]

    def answer(asked: EndpointRequest) -> Any:
        if asked.path.startswith("/webhooks"):
            kept.extend(events)
            return [*words]
        return {"events": [*kept], "slots": {}}

    return answer


def raising(message: str) -> str:
    raise RuntimeError(message)


ERROR = {"error": {"message": "the model is down", "code": "E7"}}
DOWN = "E7: the model is down"
CALLING = {"content": "One moment.", "tool_calls": endpoints.tool_calls(("refund", {}))}
VALUE_ERROR = 'event: error\ndata: {"error": "ValueError", "message": "broke"}\n\n'
USER_INTERRUPT = 'event: error\ndata: {"error": "UserInterrupt", "message": "stop"}\n\n'
RUN_ERROR = {"type": "RUN_ERROR", "message": "broke", "code": "E7"}
INTERNAL_ERROR = {"event": "flow_started", "flow_id": "pattern_internal_error"}
UTTERED_ERROR = {"event": "action", "name": "utter_internal_error_rasa"}
REFUND_ANSWER = {"text": "", "error": "broke", "toolCalls": ["refund"]}
CASES = [
    Case("aui", {"text": "", "trace_info": {"response": {"type": "error", "error": "broke"}}}, "broke"),
    Case("aui", {"status_code": 500, "message": "Unexpected"}, None, failure="answered with an error: "),
    Case("http", {"why": "broke", "calls": [{"name": "refund", "args": {}}]}, "broke", ("refund",)),
    Case("http", {"why": None}, None, failure="has no text"),
    Case("openai", ERROR, DOWN),
    Case("openai", {"choices": [{"error": {"message": "broke"}, "message": {"content": ""}}]}, "broke"),
    Case("openai", completion("", finish="error"), "its finish_reason is error"),
    Case("openai", {"choices": [{"error": {"message": "broke"}, "message": CALLING}]}, "broke", ("refund",)),
    Case("openai", {"text": "Hi"}, None, failure="is not a chat completion"),
    Case("openai", completion(""), None, failure="empty reply"),
    Case("openai, responses", response(status="failed", error=ERROR["error"]), DOWN),
    Case("openai, responses", response(ITEM, status="failed", error=ERROR["error"]), DOWN, ("refund",)),
    Case("openai, responses", ERROR, DOWN),
    Case("openai, responses", response(status="failed"), "its status is failed"),
    Case("openai, responses", response(status="cancelled"), None, failure="was canceled"),
    Case("openai, responses", response(status="queued"), None, failure="has not ended"),
    Case("langgraph", langgraph(sse(UPDATE, VALUE_ERROR)), "ValueError: broke", ("refund",)),
    Case("langgraph", langgraph(sse('event: error\ndata: {"error": "ValueError"}\n\n')), "ValueError"),
    Case("langgraph", langgraph(sse(UPDATE), [{"name": "n", "error": "broke"}]), "n: broke", ("refund",)),
    Case("langgraph", langgraph(sse(USER_INTERRUPT)), None, failure="canceled: UserInterrupt: stop"),
    Case("langgraph", langgraph(sse(UPDATE)), None, failure="stopped before the node 'node'"),
    Case("ag-ui", sse(STARTED, *REFUND, RUN_ERROR), "E7: broke", ("refund",)),
    Case("ag-ui", sse({"type": "RUN_ERROR"}), "no reason given", ()),
    Case("ag-ui", sse(STARTED, *REFUND), None, failure="before the answer was complete"),
    Case("a2a", task("TASK_STATE_FAILED"), "the agent's task is FAILED"),
    Case("a2a", task("TASK_STATE_REJECTED"), "the agent's task is REJECTED"),
    Case("a2a", task("TASK_STATE_CANCELED"), "the agent's task is CANCELED"),
    Case("a2a", a2a({"error": {"code": -32603, "message": "broke"}}), "-32603: broke"),
    Case("a2a", a2a({"error": {"code": 7, "message": "broke"}}), "7: broke"),
    Case("a2a", a2a({"error": {"code": -32601, "message": "no method"}}), None, failure="-32601: no method"),
    Case("a2a", a2a({"error": {"code": -32001, "message": "no task"}}), None, failure="-32001: no task"),
    Case("a2a", task("TASK_STATE_AUTH_REQUIRED"), None, failure="AUTH_REQUIRED"),
    Case("adk", sse(adk_event(CALL), adk_event(CALL_RESULT), {"error": "E: broke"}), "E: broke", ("refund",)),
    Case("adk", sse(adk_event(CALL), {"error": "ValueError: broke"}), "ValueError: broke", ("refund",)),
    Case("adk", sse(adk_event(errorCode="SAFETY", errorMessage="blocked")), "SAFETY: blocked", ()),
    Case("adk", sse(adk_event(CALL)), None, failure="stopped after the call of 'refund'"),
    Case("rasa", rasa([{"event": "user"}, INTERNAL_ERROR], [{"text": "Sorry"}]), "pattern_internal_error"),
    Case("rasa", rasa([{"event": "user"}, UTTERED_ERROR]), "pattern_internal_error"),
    Case("rasa", rasa([{"event": "user"}]), None, failure="answered with no message"),
    Case("python", lambda message: REFUND_ANSWER, "broke", ("refund",)),
    Case("python", raising, None, failure="raised RuntimeError"),
]
ADAPTERS_OF_PAGE = {
    "`aui`": "aui", "`http`": "http", "`openai`": "openai", "`openai`, `api: responses`": "openai, responses",
    "`langgraph`": "langgraph", "`ag-ui`": "ag-ui", "`a2a`": "a2a", "`adk`": "adk", "`rasa`": "rasa",
    "`python`, `command`, plug-ins": "python",
}  # fmt: skip


def agent(adapter: str, url: str, key: str) -> Agent:
    if adapter == "http":
        paths = {"text": "$.say", "error": "$.why", "toolCalls": "$.calls"}
        options = {"send": {"body": {"text": "{{message}}"}}, "reply": paths}
        return server_agent("http", AgentSettings(None, key, url, None, options))
    if adapter == "openai":
        return server_agent("openai", AgentSettings(None, key, url, "m", {}))
    if adapter == "openai, responses":
        options = {"api": "responses", "request": {"store": False}}
        return server_agent("openai", AgentSettings(None, key, url, "m", options))
    if adapter == "rasa":
        options = {"headers": {"Authorization": "Bearer {{key}}"}}
        return server_agent("rasa", AgentSettings(None, key, url, None, options))
    made: Agent = framework_chats.agent(adapter, url, key=key)
    return made


async def reply_to(case: Case) -> Any:
    if case.adapter == "aui":
        return read_reply(case.answer, 0.1, Redactor())
    if case.adapter == "python":
        return (await replies_of(agent_of(case.answer, "mine", AgentSettings()), "Hi"))[0]

    def answer(asked: EndpointRequest) -> Any:
        if callable(case.answer):
            return case.answer(asked)
        return {"state": {}} if "/sessions/" in asked.path else case.answer  # ADK opens a session before

    with endpoints.serving(answer) as stub:
        return (await replies_of(agent(case.adapter, stub.url, stub.key), "Hi"))[0]


@each_row("case", CASES, ids=lambda case: f"{case.adapter}-{case.error or case.failure}")
async def test_reported_error_becomes_error_response_and_lost_reply_agent_error(case: Case) -> None:
    if case.error is None:
        with pytest.raises(AgentError, match=re.escape(case.failure)):
            await reply_to(case)
        return
    reply = await reply_to(case)
    assert reply.error_response is True
    assert case.error in reply.error_detail
    if case.calls:
        calls = calls_of(reply)
        assert tuple(call.name for call in calls.seen) == case.calls
        assert calls.complete == (case.adapter in ("http", "python")), "these say what they did"


@each_row("adapter", sorted({case.adapter for case in CASES} - {"aui", "python"}))
@each_row("fault", [world.SERVER_ERROR, world.GARBAGE, world.EMPTY])
async def test_server_error_or_unreadable_answer_is_agent_error_for_each_adapter(
    adapter: str, fault: Any
) -> None:
    with endpoints.serving(lambda _: fault) as stub, pytest.raises(AgentError):
        await replies_of(agent(adapter, stub.url, stub.key), "Hi")


def test_every_documented_adapter_has_error_and_failure_case() -> None:
    rows = table("adapter", (ROOT / "docs/adapters.md").read_text().split("## Errors")[1])
    assert [row[0] for row in rows] == [*ADAPTERS_OF_PAGE]
    for adapter in ADAPTERS_OF_PAGE.values():
        own = [case for case in CASES if case.adapter == adapter]
        assert any(case.error for case in own)
        assert any(case.error is None for case in own)
