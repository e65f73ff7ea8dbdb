"""The adapter `openai` against endpoints on loopback; OpenAI's own types check the wire of responses.

agents/recorded_http/ was made by `RECORD=1 make frameworks`: the proxy of litellm 1.106.2, and an agent
behind agent-framework-hosting-responses 1.0.0a261022.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import endpoints
import framework_chats
import pytest
import recorded_http
import world
from each_row import each_row
from endpoints import Endpoint, EndpointRequest, any_json, completion, response, tool_calls
from hypothesis import given, settings
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from property_examples import examples
from pydantic import TypeAdapter
from world import Fault

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.openai_api import chat_wire, responses_wire
from ci_evals.extensions.openai_api.chat_agent import ChatAgent
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.extensions.openai_api.responses_agent import ResponsesAgent
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit", user_info={"name": "Ida Berg", "days": 3}, guidelines="You want your deposit back.",
    system_prompt="Be brief.", turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
REFUND = tool_calls(("refund", {"plan": "Pro", "days": 3}))


@pytest.fixture
def stub() -> Iterator[Endpoint]:
    with endpoints.serving(lambda asked: completion(f"You said: {asked.texts[-1]}")) as stub:
        yield stub


def agent_at(url, waits=None, redactor=None, **config) -> ChatAgent:
    config = {"model": "refund-agent", "api_key": endpoints.KEY, "base_url": url, "options": {}, **config}
    return ChatAgent(AgentSettings(**config), redactor=redactor, limiter=world.limiter(waits))


@asynccontextmanager
async def session_of(agent: ChatAgent, test: Test = TEST) -> AsyncIterator[Any]:
    session = await agent.open_session(test)
    try:
        yield session
    finally:
        await agent.close(session)


async def send_messages(agent: ChatAgent, *texts: str, test: Test = TEST) -> list[Reply]:
    async with session_of(agent, test) as session:
        return [await agent.send_message(session, text, timeout=60) for text in texts]


def answer_in_turn(stub: Endpoint, *answers: Any) -> None:
    stub.asked.clear()
    stub.answer = lambda _: answers[len(stub.asked) - 1]


async def reply_to(stub: Endpoint, body: Any, **options: Any) -> Reply:
    stub.answer = lambda asked: body
    (reply,) = await send_messages(agent_at(stub.url, options=options), "Hello")
    return reply


async def test_chat_request_has_whole_conversation_system_message_and_key(stub):
    began = time.monotonic()
    first, second = await send_messages(agent_at(f"{stub.url}/v1/"), "Hello", "My deposit?")
    assert 0 < first.latency_seconds <= time.monotonic() - began
    assert [asked.path for asked in stub.asked] == ["/v1/chat/completions"] * 2
    assert stub.asked[0].headers["authorization"] == f"Bearer {endpoints.KEY}"
    body = stub.asked[1].body
    assert {key: body[key] for key in body if key != "messages"} == {"model": "refund-agent"}
    system, *rest = body["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("Be brief.\n\n")
    assert '"name": "Ida Berg"' in system["content"]
    reply = {"role": "assistant", "content": "You said: Hello"}
    assert rest == [{"role": "user", "content": "Hello"}, reply, {"role": "user", "content": "My deposit?"}]
    assert (first.agent, second.agent) == ("You said: Hello", "You said: My deposit?")
    assert (first.input_tokens, first.output_tokens, first.error_response) == (21, 5, False)


async def test_chat_request_omits_system_message_and_key_if_there_are_none(stub):
    plain = TEST.model_copy(update={"system_prompt": None, "user_info": {}})
    await send_messages(agent_at(stub.url), "Hello", test=plain)
    kept = TEST.model_copy(update={"system_prompt": None})
    await send_messages(agent_at(stub.url, options={"userInfo": "none"}), "Hello", test=kept)
    for asked in stub.asked:
        assert asked.body["messages"] == [{"role": "user", "content": "Hello"}]
        assert "metadata" not in asked.body
    stub.key = "gzip,"
    await send_messages(agent_at(stub.url, api_key=""), "Hello")
    assert "authorization" not in stub.asked[-1].headers


async def test_options_are_sent_as_body_query_and_headers(stub):
    stub.key = "other"
    agent = agent_at(
        f"{stub.url}/v1/chat/completions",
        options={
            "request": {"temperature": 0, "metadata": {"team": "qa"}},
            "query": {"api-version": "2026-01-01"},
            "headers": {"api-key": "{{key}}", "X-Team": "a"},
            "userInfo": "metadata",
        },
        headers={"x-team": " other "},
        debug=True,
    )
    (reply,) = await send_messages(agent, "Hello")
    (asked,) = stub.asked
    assert (asked.path, asked.query) == ("/v1/chat/completions", {"api-version": "2026-01-01"})
    assert (asked.headers["api-key"], asked.headers["x-team"]) == (endpoints.KEY, "other")
    assert ("authorization" in asked.headers, asked.body["temperature"]) == (False, 0)
    assert asked.body["metadata"] == {"team": "qa", "name": "Ida Berg", "days": "3"}
    assert asked.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert reply.raw["id"] == "chatcmpl-1"


async def test_calls_of_every_form_are_read_and_missing_arguments_leave_params_unknown(stub):
    named = tool_calls(("look_up", {"plan": "Basic"}), ("refund", {"plan": "Pro", "days": 3}))
    reply = await reply_to(stub, completion("Done.", tool_calls=named))
    assert (reply.workflows, reply.params) == (("look_up", "refund"), {"plan": "Pro", "days": 3})
    second = ("call_2", "refund", {"plan": "Pro", "days": 3})
    calls = [(call.id, call.name, call.arguments) for call in reply.tool_calls]
    assert calls == [("call_1", "look_up", {"plan": "Basic"}), second]
    assert reply.handed_over is None
    an_object = [{"function": {"name": "refund", "arguments": {"days": 3}}}]
    assert (await reply_to(stub, completion("Hi", tool_calls=an_object))).params == {"days": 3}
    custom = [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}]
    reply = await reply_to(stub, completion("Hi", tool_calls=custom))
    assert (reply.workflows, reply.params) == (("sql",), {"input": "SELECT 1"})
    old = {"name": "refund", "arguments": '{"days": 3}'}
    reply = await reply_to(stub, completion("Hi", function_call=old))
    assert (reply.workflows, reply.params) == (("refund",), {"days": 3})
    # Those of other calls too: a check that a parameter was not given must not pass.
    for missing in ({}, {"arguments": None}):
        bare = {"id": "c", "function": {"name": "look_up"} | missing}
        calls = [*tool_calls(("refund", {"plan": "Pro"})), bare]
        reply = await reply_to(stub, completion("Hi", tool_calls=calls))
        assert (reply.workflows, reply.params) == (("refund", "look_up"), None)
        assert [call.arguments for call in reply.tool_calls] == [{"plan": "Pro"}, None]
        assert "reports none under arguments" in reply.tool_calls[1].not_captured


TOOLS = {"request": {"tools": [{"type": "function"}]}}


@each_row(("message", "options", "workflows"), [
    ({}, {}, None),
    ({"tool_calls": None}, {}, None),
    ({"tool_calls": []}, {}, ()),
    ({"tool_calls": [1, {"function": {}}]}, {}, None),
    ({"tool_calls": "refund"}, {}, None),
    ({}, TOOLS, ()),
    ({}, {"request": {"functions": [{"name": "refund"}]}}, ()),
    ({}, {"request": {"tools": []}}, None),
    ({"tool_calls": [{"function": {}}]}, TOOLS, None),
    ({"tool_calls": "refund"}, TOOLS, None),
    ({"tool_calls": [*tool_calls(("refund", {})), 1]}, TOOLS, None),
    ({"function_call": "refund"}, {"request": {"functions": [{"name": "refund"}]}}, None),
])  # fmt: skip
async def test_missing_calls_are_no_evidence_unless_tools_are_listed(stub, message, options, workflows):
    reply = await reply_to(stub, completion("Hi", **message), **options)
    assert reply.workflows == workflows
    why = 'return "tool_calls": []' if not any(message.values()) else "cannot be read"
    assert why in reply.not_found["toolCalls"] if workflows is None else reply.not_found == {}
    assert reply.params == (None if workflows is None else {})
    assert reply.tool_calls == workflows


@each_row(("arguments", "params"), [
    ("", {}),
    ("  ", {}),
    ("null", {}),
    ("{}", {}),
    ('{"a": 1}', {"a": 1}),
    ("last week", {"input": "last week"}),
    ('["a"]', {"input": ["a"]}),
    ('{"a": 1', None),
])  # fmt: skip
async def test_non_object_arguments_become_input_parameter(stub, arguments, params):
    reply = await reply_to(stub, completion("Hi", tool_calls=tool_calls(("look_up", arguments))))
    assert reply.params == params


async def test_tool_results_are_sent_until_agent_replies(stub):
    answers = [
        completion(
            "Let me look.", finish="tool_calls", tool_calls=tool_calls(("look_up", {"id": 7}), ("clock", ""))
        ),
        completion(None, finish="tool_calls", tool_calls=REFUND),
        completion("You get it back."),
    ]
    stub.answer = lambda asked: answers[len(stub.asked) - 1] if len(stub.asked) < 4 else completion("Bye")
    options = {"toolResults": {"look_up": {"order": "é"}, "clock": "noon", "refund": None}}
    reply, _ = await send_messages(agent_at(stub.url, options=options, debug=True), "My deposit?", "Thanks")
    assert reply.agent == "Let me look.\n\nYou get it back."
    assert reply.workflows == ("look_up", "clock", "refund")
    assert reply.params == {"id": 7, "plan": "Pro", "days": 3}
    results = [(call.name, call.result, call.status.value) for call in reply.tool_calls]
    assert results == [("look_up", {"order": "é"}, "ok"), ("clock", "noon", "ok"), ("refund", None, "ok")]
    assert (reply.input_tokens, reply.output_tokens, len(reply.raw)) == (63, 15, 3)
    _, user, asked, one, two, again, three, answer, _ = stub.asked[3].body["messages"]
    assert user == {"role": "user", "content": "My deposit?"}
    first_calls = answers[0]["choices"][0]["message"]["tool_calls"]
    assert asked == {"role": "assistant", "content": "Let me look.", "tool_calls": first_calls}
    assert one == {"role": "tool", "tool_call_id": "call_1", "content": '{"order": "é"}'}
    assert (two, again["content"]) == ({"role": "tool", "tool_call_id": "call_2", "content": "noon"}, None)
    assert three == {"role": "tool", "tool_call_id": "call_1", "content": "null"}
    assert answer == {"role": "assistant", "content": "You get it back."}


async def test_legacy_nameless_and_failed_tool_calls_get_their_results(stub):
    call = {"name": "refund", "arguments": "{}"}
    answers = [completion(None, finish="function_call", function_call=call), completion("Done.")]
    answer_in_turn(stub, *answers)
    (reply,) = await send_messages(agent_at(stub.url, options={"toolResults": {"refund": "ok"}}), "Hello")
    assert (reply.agent, reply.workflows) == ("Done.", ("refund",))
    result = {"role": "function", "name": "refund", "content": "ok"}
    asked = {"role": "assistant", "content": None, "function_call": call}
    assert stub.asked[1].body["messages"][-2:] == [asked, result]
    answers = [completion(None, finish="tool_calls", tool_calls=REFUND), completion("No.", tool_calls=REFUND)]
    answer_in_turn(stub, *answers)
    options = {"toolResults": {"refund": {"error": "declined"}}}
    (reply,) = await send_messages(agent_at(stub.url, options=options), "Hi")
    assert [call.status.value for call in reply.tool_calls] == ["error", "unknown"]
    assert [call.result for call in reply.tool_calls] == [{"error": "declined"}, None]
    nameless = [{"function": {"name": "refund", "arguments": "{}"}}]
    answers = [completion(None, tool_calls=nameless), completion("Done.")]
    answer_in_turn(stub, *answers)
    await send_messages(agent_at(stub.url, options={"toolResults": {"refund": "ok"}}), "Hello")
    asked, result = stub.asked[1].body["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"]


async def test_missing_tool_result_and_endless_calls_are_errors_unless_there_is_text(stub):
    message = r"the tool 'refund' and waits for its result.*adapterOptions\.toolResults"
    with pytest.raises(AgentError, match=message):
        await reply_to(stub, completion(None, finish="tool_calls", tool_calls=REFUND))
    stub.asked.clear()
    with pytest.raises(AgentError, match="called tools more than 10 times in a row"):
        await reply_to(stub, completion(None, tool_calls=REFUND), toolResults={"refund": "ok"})
    assert len(stub.asked) == 11
    reply = await reply_to(stub, completion("Done.", finish="tool_calls", tool_calls=REFUND))
    assert (reply.agent, reply.workflows) == ("Done.", ("refund",))


async def test_chat_escalation_tool_is_a_hand_over_without_a_tool_result(stub):
    person = tool_calls(("to_person", {"why": "angry"}))
    for text in (None, "A colleague will call."):
        body = completion(text, finish="tool_calls", tool_calls=person)
        reply = await reply_to(stub, body, escalationTools=["to_person"], toolResults={"x": 1})
        assert (reply.agent, reply.handed_over, reply.escalated) == (text or "", True, True)
    assert len(stub.asked) == 2
    reply = await reply_to(stub, completion("Hi", tool_calls=[]), escalationTools=["to_person"])
    assert reply.handed_over is False
    assert (await reply_to(stub, completion("Hi"), escalationTools=["to_person"])).handed_over is None


async def test_refusal_is_no_error_response_but_filtered_chat_answer_is(stub):
    reply = await reply_to(stub, completion(None, refusal="I can't help with that."))
    assert (reply.agent, reply.error_response) == ("I can't help with that.", False)
    for text in (None, "You could"):
        reply = await reply_to(stub, completion(text, finish="content_filter"))
        assert (reply.agent, reply.error_response) == (text or "", True)
        assert "content filter" in reply.error_detail


@each_row(("content", "text"), [
    ("Hi", "Hi"),
    ([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}], "Hi there"),
    ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "Look"}, 7, "!"], "Look!"),
    ([{"type": "refusal", "refusal": "I can't."}], "I can't."),
])  # fmt: skip
async def test_text_is_joined_from_content_parts(stub, content, text):
    assert (await reply_to(stub, completion(content))).agent == text


@each_row("usage", [None, (None, None), ("21", 5.5), (-1, True), (10**20, 10**20)])
async def test_missing_or_invalid_usage_leaves_tokens_unknown(stub, usage):
    body = completion("Hi", usage=None)
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    reply = await reply_to(stub, body)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


@each_row(("body", "message"), [
    (completion(""), r"^the agent gave an empty reply$"),
    (completion("  \n"), "the agent gave an empty reply"),
    (completion(None, finish="length"), "cut off at the token limit"),
    ({"text": "Hi"}, r"not a chat completion.*the keys text.*base URL"),
    ({"choices": []}, "not a chat completion"),
    ({"choices": "Hi"}, "not a chat completion"),
    ({"choices": [{"text": "Hi"}]}, "not a chat completion"),
    ([], "not a chat completion"),
    ("Hi", "not a chat completion"),
    (None, "not a chat completion"),
    (world.GARBAGE, "cannot be read .not JSON.: an HTML page titled 'Wrong door'"),
    (world.EMPTY, "cannot be read .not JSON.: an empty body"),
    (Fault(200, "[" * 90_000), "nested too deep"),
    (Fault(200, b"data: {}\n\n", content_type="text/event-stream"), "cannot be read"),
    (Fault(404, '{"detail": "Not Found"}'),
     r"404 to POST /chat/completions: Not Found \(see baseUrl and model\)"),
    (Fault(400, '{"error": {"message": "bad", "param": null}}'), "answered with status 400: bad$"),
    (Fault(302, headers={"Location": "https://login.example/"}), "redirects to https://login.example"),
])  # fmt: skip
async def test_unusable_chat_completion_is_agent_error_with_the_reason(stub, body, message):
    with pytest.raises(AgentError, match=message):
        await reply_to(stub, body)


@each_row("finish", ["length", "tool_calls", "function_call"])
async def test_truncated_or_contradictory_reply_without_calls_leaves_calls_unknown(stub, finish):
    reply = await reply_to(stub, completion("Done.", finish=finish, tool_calls=[]))
    assert (reply.agent, reply.tool_calls, reply.workflows) == ("Done.", None, None)


@each_row("status", [401, 403])
async def test_rejected_key_raises_access_error_without_the_key(stub, status):
    message = f"Incorrect key: {endpoints.KEY} {'x' * 280}{endpoints.KEY}"
    stub.faults = [Fault(status, json.dumps({"error": {"message": message}}))]
    with pytest.raises(AgentAccessError) as caught:
        await send_messages(agent_at(stub.url), "Hello")
    assert f"refused the key ({status}): Incorrect key: ***" in str(caught.value)
    assert "CI_EVALS_AGENT_KEY" in str(caught.value)
    assert endpoints.KEY[:8] not in str(caught.value)


async def test_errors_contain_no_secrets(stub):
    redactor = Redactor(values=["Ida Berg the user"])
    agent = agent_at(stub.url, redactor=redactor, headers={"x-t": "header-secret"})
    echo = f"Ida Berg the user header-secret {endpoints.KEY}"
    messages = []
    for body in ({"oops": echo}, {echo: 1}, echo, Fault(500, echo)):
        stub.answer = lambda asked, body=body: body
        with pytest.raises(AgentError) as caught:
            await send_messages(agent, "Hello")
        messages.append(str(caught.value))
    stub.answer = lambda asked: {"error": {"message": echo}}
    (reply,) = await send_messages(agent, "Hello")
    for text in (*messages, reply.error_detail):
        for secret in ("Ida Berg the user", "header-secret", endpoints.KEY):
            assert secret not in text


async def test_message_is_resent_only_if_rate_limited_or_unavailable(stub):
    waits = []
    agent = agent_at(stub.url, waits)
    stub.faults = [Fault(429), world.fault(503, retry_after="7")]
    (reply,) = await send_messages(agent, "Hello")
    assert (reply.agent, len(waits)) == ("You said: Hello", 2)
    for status in (500, 502, 503, 529):
        stub.faults, before = [Fault(status)], len(stub.asked)
        with pytest.raises(AgentError, match=f"answered with status {status}"):
            await send_messages(agent, "Hello")
        assert len(stub.asked) == before + 1
    waits.clear()
    async with world.raw_server() as (url, heard):
        with pytest.raises(AgentError, match=r"the connection to the agent at 127.0.0.1:\d+ broke"):
            await send_messages(agent_at(url, waits), "Hello")
    assert (len(heard), waits) == (1, [])


async def test_failed_message_is_left_out_of_the_next_request(stub):
    agent = agent_at(stub.url)
    async with session_of(agent) as session:
        stub.faults = [Fault(500)]
        with pytest.raises(AgentError):
            await agent.send_message(session, "Hello", timeout=5)
        await agent.send_message(session, "Again", timeout=5)
    assert stub.asked[-1].texts == ["Again"]


async def test_tool_rounds_share_the_timeout_of_the_turn():
    def answer(_: EndpointRequest) -> Any:
        time.sleep(0.3)
        return completion(None, tool_calls=tool_calls(("refund", {})))

    with endpoints.serving(answer) as stub:
        agent = agent_at(stub.url, options={"toolResults": {"refund": "ok"}})
        async with session_of(agent) as session:
            with pytest.raises(AgentError, match=r"^the agent did not answer within 0.5 s$"):
                await agent.send_message(session, "Hello", timeout=0.5)


@each_row(("config", "message"), [
    ({"api_key": "clé"}, "the agent's key holds characters"),
    ({"headers": {"X-Team": "a\r\nb"}}, "the agent's header 'X-Team' holds characters"),
    ({"headers": {"x team": "a"}}, "'x team' is not the name"),
    ({"options": {"headers": {"x team": "a"}}}, "'x team' is not the name"),
    ({"base_url": "api.openai.com"}, "`base_url=`"),
    ({"base_url": "https://h/v1?x=1"}, "must end before"),
])  # fmt: skip
def test_invalid_key_header_or_url_is_usage_error(config, message):
    with pytest.raises(UsageError, match=message) as caught:
        ChatAgent(AgentSettings(**{"model": "m", "api_key": "k", "base_url": "http://127.0.0.1", **config}))
    assert "clé" not in str(caught.value)


@each_row("request_", [{"messages": []}, {"model": "m"}, {"stream": True}])
def test_request_option_cannot_override_reserved_fields(request_):
    with pytest.raises(ValueError, match=f"may not hold '{next(iter(request_))}'"):
        ChatOptions(request=request_)


@settings(max_examples=examples(60))
@given(world.odd_responses())
def test_any_http_answer_is_read_or_an_agent_error(answer):
    async def say_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 3) as (url, _):
            with suppress(AgentError):
                await send_messages(agent_at(url), "Hello")

    asyncio.run(say_once())


@settings(max_examples=examples(200))
@given(endpoints.any_json())
def test_any_completion_json_is_read_or_an_agent_error(message):
    for body in (message, {"choices": [message]}, {"choices": [{"message": message}], "usage": message}):
        with suppress(AgentError):
            read = chat_wire.read(body, Redactor())
            chat_wire.reply([read], 1.0, ChatOptions(escalation_tools=("a",)))
            if read.waits:
                chat_wire.results(read, {call.name: 1 for call in read.calls or ()})


REFUND_TEST = Test(
    name="Refund", user_info={"name": "Ida Berg"}, guidelines="You want your money back.",
    system_prompt="Be brief.", turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
REQUESTS = TypeAdapter(ResponseCreateParamsNonStreaming)
TOOL = {"type": "function", "name": "refund", "parameters": {"type": "object"}, "strict": False}
REFUND_ITEM = {
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


async def talk(*answers: Any, texts=("Hello",), **options: Any) -> tuple[list[Any], list[EndpointRequest]]:
    """Say texts to an endpoint that answers so, the last answer again and again."""
    queue = [*answers]
    for answer in answers:
        if isinstance(answer, dict) and "output" in answer:
            Response.model_validate(answer)
    options |= {"api": "responses"}
    with endpoints.serving(lambda _: queue.pop(0) if len(queue) > 1 else queue[0]) as stub:
        settings = AgentSettings(None, stub.key, f"{stub.url}/v1", "refund-agent", options)
        agent = ResponsesAgent(settings, limiter=world.limiter())
        session = await agent.open_session(REFUND_TEST)
        try:
            replies = [await agent.send_message(session, text, timeout=60) for text in texts]
        finally:
            await agent.close(session)
    for asked in stub.asked:
        REQUESTS.validate_python(asked.body)
    return replies, stub.asked


async def read_reply(*items: Any, **options: Any) -> Any:
    (reply,), _ = await talk(response(*items), **options)
    return reply


async def error_of(answer: Any, **options: Any) -> str:
    with pytest.raises(AgentError) as caught:
        await talk(answer, **options)
    return str(caught.value)


async def test_responses_conversation_is_continued_by_id_or_resent_if_not_stored():
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


async def test_responses_calls_of_every_kind_are_read_with_results_and_statuses():
    reply = await read_reply(REASONING, MCP, SEARCH, WEB, CODE, REFUND_ITEM, REFUNDED, "Refunded.")
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
    cut = {**REFUND_ITEM, "arguments": '{"order": "A', "status": "incomplete"}
    reply = await read_reply({**MCP, "output": None, "error": error, "status": "failed"}, cut, "Sorry")
    lookup, refund = reply.tool_calls
    assert (lookup.status, lookup.result) == ("error", error)
    reason = "they are not JSON; the answer may have been cut off in them"
    assert (refund.arguments, refund.not_captured) == (None, reason)
    (unreadable,), _ = await talk(broken(response({"type": "mcp_call"}, "Hi")))
    assert (unreadable.tool_calls, unreadable.workflows) == (None, None)


async def test_responses_answer_without_calls_proves_none_only_if_tools_are_listed():
    assert (await read_reply("Hi")).tool_calls is None
    assert (await read_reply("Hi", request={"tools": [TOOL]})).tool_calls == ()
    (named,), _ = await talk(response("Hi", tools=[TOOL]))
    assert named.tool_calls == ()


async def test_client_functions_get_configured_results_or_are_errors():
    options = {"request": {"tools": [TOOL, {"type": "custom", "name": "sql"}]}}
    options |= {"toolResults": {"refund": {"ok": True}, "sql": "1"}}
    answers = response(REFUND_ITEM, CUSTOM, id="r1"), response("Refunded.", id="r2")
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
    waits = await error_of(response(REFUND_ITEM), request={"tools": [TOOL]})
    assert "called the tool 'refund' and waits for its result; set its result" in waits
    assert "tools more than 10 times in a row" in await error_of(response(REFUND_ITEM), **options)


async def test_responses_escalation_tool_is_a_hand_over_without_a_tool_result():
    assert (await read_reply({**REFUND_ITEM, "name": "to_person"}, escalationTools=["to_person"])).escalated
    kept = await read_reply("Hi", escalationTools=["to_person"], request={"tools": [TOOL]})
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
    """The list of models needs the key, and so does a request without input, which is refused."""
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
async def test_unusable_answer_of_responses_api_is_agent_error_with_the_reason(answer, why):
    assert why in await error_of(answer)


async def test_refusal_is_no_error_response_but_filtered_responses_answer_is():
    filtered = response(status="incomplete", incomplete_details={"reason": "content_filter"})
    (withheld,), _ = await talk(filtered)
    assert (withheld.agent, withheld.error_response) == ("", True)
    refusal = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    reply = await read_reply({**refusal, "content": [{"type": "refusal", "refusal": "I may not."}]}, "Sorry.")
    assert (reply.agent, reply.error_response) == ("I may not.\n\nSorry.", False)


async def test_debug_keeps_raw_responses():
    with endpoints.serving(lambda _: response("Hi")) as stub:
        agent = ResponsesAgent(AgentSettings(None, stub.key, stub.url, "m", {"api": "responses"}, debug=True))
        session = await agent.open_session(REFUND_TEST)
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
