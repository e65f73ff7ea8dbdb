"""The adapter `openai` with `api: responses`. OpenAI's own types say whether the wire is right.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: the proxy of litellm 1.106.2, and an agent
behind agent-framework-hosting-responses 1.0.0a261022.
"""

import json
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row
from endpoints import EndpointRequest, any_json, response
from hypothesis import given, settings
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from property_examples import examples
from pydantic import TypeAdapter

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import Test
from ci_evals.extensions.openai_api import responses_wire
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.extensions.openai_api.responses_agent import ResponsesAgent
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Refund", user_info={"name": "Ida Berg"}, guidelines="You want your money back.",
    system_prompt="Be brief.", turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
REQUESTS = TypeAdapter(ResponseCreateParamsNonStreaming)
TOOL = {"type": "function", "name": "refund", "parameters": {"type": "object"}, "strict": False}
REFUND = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "refund", "status": "completed",
    "arguments": '{"order": "A-1", "amount": 42}',
}  # fmt: skip
REFUNDED = {
    "type": "function_call_output", "id": "fo_1", "call_id": "call_1", "status": "completed", "output": "ok",
}  # fmt: skip
MCP = {
    "type": "mcp_call", "id": "mcp_1", "server_label": "shop", "name": "lookup", "status": "completed",
    "arguments": '{"order": "A-1"}', "output": '{"paid": 42}',
}  # fmt: skip
SEARCH = {
    "type": "file_search_call", "id": "fs_1", "queries": ["refunds"], "status": "completed",
    "results": [{"filename": "terms.md", "score": 0.9, "text": "30 days"}],
}  # fmt: skip
SEARCHED = {"type": "search", "query": "q"}
WEB = {"type": "web_search_call", "id": "ws_1", "status": "failed", "action": SEARCHED}
CODE = {
    "type": "code_interpreter_call", "id": "ci_1", "container_id": "c", "code": "6 * 7",
    "status": "completed", "outputs": [{"type": "logs", "logs": "42"}],
}  # fmt: skip
APPROVAL = {"type": "mcp_approval_request", "id": "a", "name": "pay", "arguments": "{}", "server_label": "s"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
CUSTOM = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "sql", "input": "SELECT 1"}


def broken(body: Any) -> world.Fault:
    """An answer that OpenAI's types would refuse."""
    return world.Fault(200, json.dumps(body))


async def talk(
    *answers: Any, texts: tuple[str, ...] = ("Hello",), **options: Any
) -> tuple[list[Any], list[EndpointRequest]]:
    """Say texts to an endpoint that answers so, the last answer again and again."""
    queue = [*answers]
    for answer in answers:
        if isinstance(answer, dict) and "output" in answer:
            Response.model_validate(answer)
    options |= {"api": "responses"}
    with endpoints.serving(lambda _: queue.pop(0) if len(queue) > 1 else queue[0]) as stub:
        settings = AgentSettings(None, stub.key, f"{stub.url}/v1", "refund-agent", options)
        agent = ResponsesAgent(settings, limiter=world.limiter())
        session = await agent.open_session(TEST)
        try:
            replies = [await agent.send_message(session, text, timeout=60) for text in texts]
        finally:
            await agent.close(session)
    for asked in stub.asked:
        REQUESTS.validate_python(asked.body)
    return replies, stub.asked


async def reply_to(*items: Any, **options: Any) -> Any:
    (reply,), _ = await talk(response(*items), **options)
    return reply


async def error_of(answer: Any, **options: Any) -> str:
    with pytest.raises(AgentError) as caught:
        await talk(answer, **options)
    return str(caught.value)


async def test_conversation_is_continued_by_id_or_resent():
    replies, asked = await talk(response("Hi", id="r1"), response("Bye", id="r2"), texts=("Hello", "Thanks"))
    assert [reply.agent for reply in replies] == ["Hi", "Bye"]
    assert [one.path for one in asked] == ["/v1/responses"] * 2
    first, second = (one.body for one in asked)
    assert first["instructions"].startswith("Be brief.\n\n")
    assert first["instructions"] == second["instructions"]
    assert (first["model"], first["input"]) == ("refund-agent", [{"role": "user", "content": "Hello"}])
    thanks = [{"role": "user", "content": "Thanks"}]
    assert (second["previous_response_id"], second["input"]) == ("r1", thanks)
    assert (replies[0].input_tokens, replies[0].output_tokens, replies[0].error_response) == (21, 5, False)
    answer = response(REASONING, MCP, "Hi")
    _, asked = await talk(answer, texts=("Hello", "Thanks"), request={"store": False}, userInfo="metadata")
    body = asked[1].body
    first, last = ({"role": "user", "content": text} for text in ("Hello", "Thanks"))
    assert (body["input"], "previous_response_id" in body) == ([first, *answer["output"], last], False)
    assert (body["store"], body["metadata"]) == (False, {"name": "Ida Berg"})
    assert body["instructions"] == "Be brief."


async def test_calls_of_every_kind_are_read_and_their_absence_is_known_only_with_tools():
    reply = await reply_to(REASONING, MCP, SEARCH, WEB, CODE, REFUND, REFUNDED, "Refunded.")
    assert [(c.name, c.arguments, c.result, c.status) for c in reply.tool_calls] == [
        ("lookup", {"order": "A-1"}, {"paid": 42}, "ok"),
        ("file_search", {"queries": ["refunds"]}, SEARCH["results"], "ok"),
        ("web_search", {"type": "search", "query": "q"}, None, "error"),
        ("code_interpreter", {"code": "6 * 7"}, [{"type": "logs", "logs": "42"}], "ok"),
        ("refund", {"order": "A-1", "amount": 42}, "ok", "ok"),
    ]
    assert reply.workflows == ("lookup", "file_search", "web_search", "code_interpreter", "refund")
    assert reply.agent == "Refunded."
    error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no such order"}]}
    cut = {**REFUND, "arguments": '{"order": "A', "status": "incomplete"}
    reply = await reply_to({**MCP, "output": None, "error": error, "status": "failed"}, cut, "Sorry")
    lookup, refund = reply.tool_calls
    assert (lookup.status, lookup.result) == ("error", error)
    reason = "they are not JSON; the answer may have been cut off in them"
    assert (refund.arguments, refund.not_captured) == (None, reason)
    (unreadable,), _ = await talk(broken(response({"type": "mcp_call"}, "Hi")))
    assert (unreadable.tool_calls, unreadable.workflows) == (None, None)
    assert (await reply_to("Hi")).tool_calls is None
    assert (await reply_to("Hi", request={"tools": [TOOL]})).tool_calls == ()
    (named,), _ = await talk(response("Hi", tools=[TOOL]))
    assert named.tool_calls == ()


async def test_functions_of_the_client_get_results_and_escalation_needs_none():
    options = {"request": {"tools": [TOOL, {"type": "custom", "name": "sql"}]}}
    options |= {"toolResults": {"refund": {"ok": True}, "sql": "1"}}
    answers = response(REFUND, CUSTOM, id="r1"), response("Refunded.", id="r2")
    (reply,), asked = await talk(*answers, **options)
    assert [(c.name, c.arguments, c.result, c.status) for c in reply.tool_calls] == [
        ("refund", {"order": "A-1", "amount": 42}, {"ok": True}, "ok"),
        ("sql", {"input": "SELECT 1"}, "1", "ok"),
    ]
    assert asked[1].body["previous_response_id"] == "r1"
    assert asked[1].body["input"] == [
        {"type": "function_call_output", "call_id": "call_1", "output": '{"ok": true}'},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "1"},
    ]
    assert (reply.input_tokens, reply.output_tokens) == (42, 10)
    waits = await error_of(response(REFUND), request={"tools": [TOOL]})
    assert "called the tool 'refund' and waits for its result; set its result" in waits
    assert "tools more than 10 times in a row" in await error_of(response(REFUND), **options)
    assert (await reply_to({**REFUND, "name": "to_person"}, escalationTools=["to_person"])).escalated
    kept = await reply_to("Hi", escalationTools=["to_person"], request={"tools": [TOOL]})
    assert kept.handed_over is False


async def replies_recorded(name: str, server: str = "responses") -> tuple[list[Any], list[Any]]:
    """The replies, or errors, of a recorded talk, and what was asked."""
    exchanges = recorded_http.load(Path(__file__).parents[2] / f"agents/recorded_http/{server}-{name}.json")
    with recorded_http.serve_recorded(exchanges) as stub:
        replies, _ = await framework_chats.CONVERSATIONS[server][name](f"{stub.url}")
    return replies, stub.asked


async def test_recorded_responses_of_proxy_and_agent_are_read():
    (hello, refund), asked = await replies_recorded("refund")
    assert (hello.agent, hello.tool_calls) == ("1: Hello", ())
    assert [(c.name, c.arguments, c.result, c.status) for c in refund.tool_calls] == [
        ("lookup", {"order": "A-1"}, {"paid": 42}, "ok"),
        ("refund", {"order": "A-1", "amount": 42}, "ok", "ok"),
    ]
    assert (refund.agent, refund.input_tokens, refund.output_tokens) == ("I refunded 42.", 30, 15)
    assert len(asked) == 4
    (failed,), _ = await replies_recorded("failed")
    assert "answered with status 500" in failed
    (hello, refund), asked = await replies_recorded("refund", "responses-agent")
    assert (hello.agent, hello.tool_calls) == ("1: Hello", ())
    assert [(c.name, c.arguments, c.result, c.status) for c in refund.tool_calls] == [
        ("lookup", {"order": "A-1"}, {"order": "A-1", "paid": 42}, "ok"),
        ("refund", {"order": "A-1", "amount": 42}, "ok", "ok"),
    ]
    assert (refund.agent, refund.input_tokens, refund.output_tokens) == ("I refunded 42.", 30, 15)
    assert [len(body["input"]) for _, _, body in asked] == [1, 1]
    assert "previous_response_id" in asked[1][2]


async def test_key_is_checked_without_model_call():
    """By the list of models, or a request without input."""
    with endpoints.serving(lambda _: world.fault(400)) as stub:

        def agent_with(key: str) -> ResponsesAgent:
            url = f"{stub.url}/v1/responses"
            return ResponsesAgent(AgentSettings(None, key, url, "m", {"api": "responses"}))

        await agent_with(stub.key).check()
        with pytest.raises(AgentAccessError):
            await agent_with("wrong").check()
    requests = [(asked.method, asked.path) for asked in stub.asked]
    assert requests == [*[("GET", "/v1/models")] * 2, ("POST", "/v1/responses")]


@each_row(("answer", "why"), [
    (response(status="cancelled"), "the agent's answer was canceled: its status is cancelled"),
    (response(status="queued"), "the agent's answer has not ended: its status is queued"),
    (response(), "the agent gave an empty reply"),
    (response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
     "gave an empty reply; it was cut off: max_output_tokens (see adapterOptions.request)"),
    (response(APPROVAL), "waits for an approval of the MCP tool 'pay'; set require_approval: never"),
    ({"choices": []}, "is not a response, which holds output: an object with the keys choices"),
    ([1], "is not a response, which holds output: [1]"),
    (broken({"output": response("Hi")["output"]}), "has no id, by which the next message could continue"),
    (world.fault(404, "Previous response not found"), "answered with status 404 to POST /v1/responses"),
])  # fmt: skip
async def test_unusable_response_is_agent_error(answer, why):
    assert why in await error_of(answer)


async def test_filtered_answer_is_an_error_response_and_raw_answers_are_kept_for_debugging():
    filtered = response(status="incomplete", incomplete_details={"reason": "content_filter"})
    (withheld,), _ = await talk(filtered)
    assert (withheld.agent, withheld.error_response) == ("", True)
    refusal = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    reply = await reply_to({**refusal, "content": [{"type": "refusal", "refusal": "I may not."}]}, "Sorry.")
    assert (reply.agent, reply.error_response) == ("I may not.\n\nSorry.", False)
    with endpoints.serving(lambda _: response("Hi")) as stub:
        options = {"api": "responses"}
        agent = ResponsesAgent(AgentSettings(None, stub.key, stub.url, "m", options, debug=True))
        session = await agent.open_session(TEST)
        reply = await agent.send_message(session, "Hello", timeout=5)
        await agent.close(session)
    assert reply.raw == response("Hi")


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(any_json(), any_json(), any_json())
def test_any_response_json_is_read_or_an_agent_error(first, second, third):
    keys = ("call_id", "id", "name", "arguments", "input", "output", "action", "status", "error", "content")
    values = (first, second, third) * 4
    kinds = ("message", "function_call", "function_call_output", "mcp_call", "web_search_call", "news_call")
    pairs = zip(kinds, [values[start % 3 :] for start in range(len(kinds))], strict=True)
    items = [{"type": kind, **dict(zip(keys, some, strict=False))} for kind, some in pairs]
    for body in (first, {"output": first}, {"output": [*items, second], "usage": third, "tools": first}):
        try:
            reply = responses_wire.reply([responses_wire.read(body, Redactor())], 0.1, ChatOptions())
        except AgentError:
            continue
        json.dumps(reply.model_dump(mode="json"))
