"""The adapter `http` against endpoints on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import endpoints
import pytest
import world
from each_row import each_row
from endpoints import Endpoint
from hypothesis import given, settings
from property_examples import examples
from pydantic import ValidationError
from world import Fault

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.actions import with_calls
from ci_evals.domain.agents import secrets_of
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Integration, Reply
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.extensions.http.options import HttpOptions, HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit", user_info={"name": "Ida Berg", "plan": {"name": "Pro & Co"}, "days": 3},
    guidelines="You want your deposit back.", system_prompt="Be brief.", turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
SEND = {"path": "/chat", "body": {"text": "{{message}}"}}
REPLY = {"text": "$.reply"}


@pytest.fixture
def stub() -> Iterator[Endpoint]:
    with endpoints.serving(lambda asked: {"reply": f"You said: {asked.body['text']}"}) as stub:
        yield stub


def agent_at(url, waits=None, redactor=None, *, options=None, **config) -> HttpAgent:
    given = {"api_key": endpoints.KEY, **config, "options": {"send": SEND, "reply": REPLY, **(options or {})}}
    return HttpAgent(AgentSettings(base_url=url, **given), redactor=redactor, limiter=world.limiter(waits))


@asynccontextmanager
async def session_of(agent: HttpAgent, test: Test = TEST) -> AsyncIterator[Any]:
    session = await agent.open_session(test)
    try:
        yield session
    finally:
        await agent.close(session)


async def say(agent: HttpAgent, *texts: str, test: Test = TEST) -> list[Reply]:
    async with session_of(agent, test) as session:
        return [await agent.send_message(session, text, timeout=60) for text in texts]


def read(body: Any, **paths: str) -> Reply:
    """The reply that an answer becomes by these paths."""
    return Reader(HttpReply.model_validate({**REPLY, **paths})).reply(body, 0.5, Redactor())


async def test_message_is_posted_as_json_with_the_key_as_bearer_token(stub):
    began = time.monotonic()
    (reply,) = await say(agent_at(f"{stub.url}/api/v2/", debug=True), "Hello")
    assert 0 < reply.latency_seconds <= time.monotonic() - began
    (asked,) = stub.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/api/v2/chat", {"text": "Hello"})
    assert asked.headers["authorization"] == f"Bearer {endpoints.KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert (reply.agent, reply.raw) == ("You said: Hello", {"reply": "You said: Hello"})


async def test_placeholders_in_path_and_query_are_filled_in_and_encoded(stub):
    stub.answer = lambda asked: {"reply": asked.query["q"]}
    send = {"method": "GET", "path": "/{{userInfo.plan.name}}/{{userInfo.x}}"}
    send |= {"query": {"q": "{{message}}", "v": "1"}}
    (reply,) = await say(agent_at(stub.url, options={"send": send}), "a/b?c=d&e é #")
    (asked,) = stub.asked
    assert reply.agent == "a/b?c=d&e é #"
    assert (asked.method, asked.path, asked.body) == ("GET", "/Pro & Co/", None)
    assert (asked.query["v"], "content-type" in asked.headers) == ("1", False)


async def test_placeholders_in_a_message_are_not_filled_in(stub):
    (reply,) = await say(agent_at(stub.url), "{{key}} {{session}}")
    assert reply.agent == "You said: {{key}} {{session}}"


async def test_configured_headers_are_filled_in_and_replace_the_key_header(stub):
    own = {"X-Key": "Token {{key}}", "X-Session": "s-{{session}}", "X-Plan": "{{userInfo.days}}"}
    options = {"headers": own | {"X-Team": "a", "x-over": "{{userInfo.days}}"}}
    await say(agent_at(stub.url, options=options, headers={"x-team": "b", "X-Over": "c"}), "Hello")
    headers = stub.asked[0].headers
    assert headers["x-key"] == f"Token {endpoints.KEY}"
    assert headers["x-session"].startswith("s-")
    assert (headers["x-plan"], headers["x-team"], headers["x-over"]) == ("3", "b", "c")
    assert "authorization" not in headers


async def test_placeholders_in_the_body_are_filled_in(stub):
    """A bare placeholder becomes the JSON value, one inside other text its text."""
    body = {
        "text": "{{message}}", "before": "{{history}}", "all": "{{messages}}", "parts": "{{uiMessages}}",
        "user": "{{userInfo}}", "plan": "{{ userInfo.plan.name }}", "days": "{{userInfo.days}}",
        "note": "{{userInfo.name}} stays {{userInfo.days}} days {{userInfo.none}}",
        "none": "{{userInfo.none}}", "who": ["{{agentId}}", "{{model}}", "{{systemPrompt}}"],
        "id": "{{session}}", "kept": True,
    }  # fmt: skip
    agent = agent_at(stub.url, options={"send": {"body": body}}, agent_id="a1", model="m1")
    await say(agent, "Hello", 'A "quote"')
    one, two = (asked.body for asked in stub.asked)
    assert one["before"] == []
    reply = {"role": "assistant", "content": "You said: Hello"}
    assert two["before"] == [{"role": "user", "content": "Hello"}, reply]
    assert two["all"] == [*two["before"], {"role": "user", "content": 'A "quote"'}]
    assert two["parts"] == [
        {"id": str(n), "role": each["role"], "parts": [{"type": "text", "text": each["content"]}]}
        for n, each in enumerate(two["all"])
    ]
    assert one["user"] == TEST.user_info
    assert (one["plan"], one["days"], one["none"]) == ("Pro & Co", 3, None)
    assert (one["note"], one["who"]) == ("Ida Berg stays 3 days ", ["a1", "m1", "Be brief."])
    assert (one["id"], len(one["id"])) == (two["id"], 32)
    assert one["kept"] is True


async def test_turn_number_and_uuids_are_filled_into_paths_and_bodies(stub):
    stub.answer = lambda asked: {"id": "c1"} if asked.path == "/open" else {"reply": "Hi"}
    body = {"text": "{{message}}", "n": "{{turn}}", "id": "{{uuid}}", "key": "k-{{uuid}}"}
    send = {"path": "/chat/{{turn}}", "body": body | {"chat": "{{session}}"}}
    options = {"open": {"path": "/open", "body": "{{uuid}}", "session": "$.id"}, "send": send}
    await say(agent_at(stub.url, options=options), "Hello", "Bye")
    opened, *sent = stub.asked
    assert [asked.body["n"] for asked in sent] == [1, 2]
    assert [asked.path for asked in sent] == ["/chat/1", "/chat/2"]
    assert all(asked.body["chat"] == "c1" for asked in sent)
    assert all(asked.body["key"] == f"k-{asked.body['id']}" for asked in sent)
    ids = [opened.body, *(asked.body["id"] for asked in sent)]
    assert len({str(UUID(text)) for text in ids}) == 3


async def test_opened_session_id_is_filled_into_paths_headers_and_close(stub):
    stub.answer = lambda asked: {"data": {"id": 42}} if asked.path == "/open" else {"reply": "Hi"}
    options = {
        "headers": {"X-Session": "{{session}}"},
        "open": {"path": "/open", "body": {"user": "{{userInfo.name}}"}, "session": "$.data.id"},
        "send": {"path": "/chats/{{session}}", "body": "{{message}}"},
        "close": {"method": "DELETE", "path": "/chats/{{session}}"},
    }
    await say(agent_at(stub.url, options=options), "Hello")
    opened, sent, closed = stub.asked
    assert (opened.path, opened.body) == ("/open", {"user": "Ida Berg"})
    assert "x-session" not in opened.headers
    assert (sent.path, sent.body, sent.headers["x-session"]) == ("/chats/42", "Hello", "42")
    assert (closed.method, closed.path, closed.body) == ("DELETE", "/chats/42", None)


async def test_close_is_requested_once_and_its_failure_is_ignored(stub):
    stub.answer = lambda asked: world.SERVER_ERROR if asked.path == "/bye" else {"reply": "Hi"}
    agent = agent_at(stub.url, options={"close": {"path": "/bye"}})
    session = await agent.open_session(TEST)
    await agent.close(session)
    await agent.close(session)
    assert [asked.path for asked in stub.asked] == ["/bye"]


@each_row("body", [{}, {"id": None}, {"id": " "}, {"id": {"x": 1}}, {"id": True}, []])
async def test_open_response_without_session_id_is_an_error_that_names_its_path(stub, body):
    stub.answer = lambda asked: body
    agent = agent_at(stub.url, options={"open": {"session": "$.id"}})
    with pytest.raises(AgentError, match=r"without an id at \$\.id: .*adapterOptions\.open\.session"):
        await agent.open_session(TEST)


@each_row(("body", "path", "text"), [
    ({"reply": "Hi"}, "$.reply", "Hi"),
    ({"reply": ["Hi", "there"]}, "$.reply", "Hi\n\nthere"),
    ([{"text": "Hi"}, {"image": 1}, {"text": "there"}], "$[*].text", "Hi\n\nthere"),
    ([], "$[*].text", ""),
    ({"reply": ""}, "$.reply", ""),
    ({"reply": 42}, "$.reply", "42"),
    ("Hi", "$", "Hi"),
    ({"o": [{"type": "call"}, {"type": "text", "text": "Hi"}]}, "$.o[?@.type == 'text'].text", "Hi"),
    # What a check must not find may stand in any part.
    ({"reply": ["Hi", {"type": "text", "text": "PIN 12"}, {"type": "image"}]}, "$.reply", "Hi\n\nPIN 12"),
])  # fmt: skip
def test_texts_at_the_path_are_joined_by_blank_lines(body, path, text):
    assert read(body, text=path).agent == text


@each_row("body", [
    {}, {"reply": None}, {"reply": {"text": "Hi"}}, {"reply": True}, {"reply": [None]}, [], "Hi", None,
])  # fmt: skip
def test_missing_reply_text_raises_error_that_quotes_the_answer(body):
    message = r"has no text at \$\.reply: .*adapterOptions\.reply\.text"
    with pytest.raises(AgentError, match=message) as caught:
        read(body)
    assert json.dumps(body) in str(caught.value)


@each_row(("body", "path", "names"), [
    ({"tools": ["a", "b"]}, "$.tools", ("a", "b")),
    ({"tools": [{"name": "a"}, {"code": "b"}]}, "$.tools", ("a", "b")),
    ({"tools": [{"name": "a"}, {"name": "b"}]}, "$.tools[*].name", ("a", "b")),
    ({"tools": "a"}, "$.tools", ("a",)),
    ({"tools": []}, "$.tools", ()),
    ({"tools": []}, "$.tools[*].name", ()),
    ({"tools": None}, "$.tools", None),
    ({}, "$.tools", None),
    ({}, "$.tools[*].name", None),
    ({"tools": [{"id": 1}]}, "$.tools", None),
    ({"tools": ["a", {"id": 1}]}, "$.tools", None),
    ({"tools": ["a", None]}, "$.tools", None),
    ({"tools": [{"name": "a"}, {"title": "b"}]}, "$.tools[*].name", None),
    ({"tools": [{"name": "a"}, None]}, "$.tools[*].name", None),
    ({"tools": [{"of": ["a"]}, {"of": None}]}, "$.tools[*].of", None),
    ({"tools": [{"call": "a"}, {"text": "b"}]}, "$.tools[*].call", ("a",)),
    ({"tools": [{"id": 1}]}, "$.tools[*].name", None),
    ({"tools": 7}, "$.tools", None),
])  # fmt: skip
def test_unreadable_workflows_or_rules_are_unknown_and_empty_list_means_none(body, path, names):
    reply = read({"reply": "Hi", **body}, workflows=path, rules=path)
    assert (reply.workflows, reply.rules) == (names, names)


@each_row(("listed", "path", "params", "named"), [
    ({"plan": "Pro", "name": "Ida", "value": 1}, "$.p", {"plan": "Pro", "name": "Ida", "value": 1}, ()),
    ([{"name": "plan", "value": "Pro"}, {"code": "n", "value": 0}], "$.p", {"plan": "Pro", "n": 0}, ()),
    ([{"key": "plan", "value": None}], "$.p[*]", {"plan": None}, ()),
    ([{"plan": "Pro"}, {"plan": "Basic", "days": 1}], "$.p[*]", {"plan": "Basic", "days": 1}, ()),
    ([{"name": "Ida", "plan": "Pro"}], "$.p[*]", None, ()),
    ([None], "$.p", None, ()),
    ([{"q": None}, {"q": None}], "$.p[*].q", None, ()),
    ([{"name": "plan"}, "days"], "$.p", {}, ("plan", "days")),
    ({}, "$.p", {}, ()),
    ([], "$.p", {}, ()),
    ([], "$.p[*]", {}, ()),
    (None, "$.p", None, ()),
    ([7], "$.p", None, ()),
    (["plan", 7], "$.p", None, ()),
    ("plan", "$.q", None, ()),
])  # fmt: skip
def test_params_are_read_from_objects_or_lists_else_unknown(listed, path, params, named):
    reply = read({"reply": "Hi", "p": listed}, params=path)
    assert (reply.params, reply.named_params) == (params, named)


@each_row(("body", "calls"), [
    ({"tools": [{"name": "refund", "args": {"n": 42}}, "look"]}, [("refund", {"n": 42}), ("look", None)]),
    ({"tools": [{"function": {"name": "refund", "arguments": "{}"}}]}, [("refund", {})]),
    ({"tools": []}, []),
    ({"tools": None}, None),
    ({}, None),
    ({"tools": {"refund": {}}}, None),
    ({"tools": [{"name": "refund", "args": {}}, {"title": "x"}]}, None),
])  # fmt: skip
def test_unreadable_tool_calls_are_unknown_and_empty_list_means_none(body, calls):
    reply = read({"reply": "Hi", **body}, toolCalls="$.tools")
    assert [(call.name, call.arguments) for call in reply.tool_calls or ()] == (calls or [])
    assert (reply.tool_calls is None) is (calls is None)
    assert reply.workflows == (None if calls is None else tuple(name for name, _ in calls))


PATHS = {"toolCalls": "$.tools", "params": "$.slots", "rules": "$.rules", "integrations": "$.calls"}
PATHS |= {"escalated": "$.over", "error": "$.error"}


def test_path_that_finds_nothing_is_reported_with_shape_of_answer():
    tools = [{"title": "refund", "cost": 3}, {"title": "x", "cost": 4}]
    body = {"reply": "Hi", "tools": tools, "slots": None}
    reply = read(body, **PATHS)
    assert reply.not_found.keys() == PATHS.keys()
    form = '{"reply": "…", "tools": [{"title": "…", "cost": "…"}], "slots": null}'
    hint = "Correct the path, or have the agent return an empty value for none"
    assert reply.not_found["toolCalls"] == (
        f"$.tools (adapterOptions.reply.toolCalls) finds nothing readable in the answer {form}. "
        "Each call there needs its name under name, toolName, tool_name, tool or function"
    )
    rules = f"$.rules (adapterOptions.reply.rules) finds nothing in the answer {form}. {hint}"
    assert reply.not_found["rules"] == rules
    empty = {"tools": [], "slots": {}, "rules": [], "calls": [], "over": False, "error": None}
    assert read({"reply": "Hi"} | empty, **PATHS).not_found == {}
    assert read({"reply": "Hi"}).not_found == {}, "no path, nothing to correct"


def test_reported_shape_of_answer_is_short_and_has_no_secrets():
    # A key of an object may be anything, and an answer of any size.
    reader = Reader(HttpReply.model_validate(REPLY | PATHS))
    deep: Any = "x"
    for _ in range(90):
        deep = {"inner": [deep] * 2}
    body = {"reply": "Hi", "sk-very-secret-key": 1, "deep": deep, "many": [{str(n): n} for n in range(9999)]}
    message = reader.reply(body, 1.0, Redactor(["sk-very-secret-key"])).not_found["rules"]
    assert "very-secret" not in message
    assert '"***": "…"' in message
    assert len(message) < 500


def test_integrations_are_read_with_every_spelling_of_status_else_unknown():
    called = [
        "crm", {"name": "bank", "status": 503, "type": "REST", "error": {"message": "down"}},
        {"code": "mail", "statusCode": "200"}, {"code": "sms", "status_code": "late"},
    ]  # fmt: skip
    assert read({"reply": "Hi", "x": called}, integrations="$.x").integrations == (
        Integration(code="crm"), Integration(code="bank", status=503, type="REST", error="down"),
        Integration(code="mail", status=200), Integration(code="sms"),
    )  # fmt: skip
    unreadable = ({}, {"x": None}, {"x": [{"id": 4}]}, {"x": ["crm", {"id": 4}]})
    for body, integrations in (({"x": []}, ()), *((each, None) for each in unreadable)):
        assert read({"reply": "Hi", **body}, integrations="$.x").integrations == integrations


FLAGS = [(True, True), (False, False), ([True, False], True), ([False], False), ([], False), (None, None)]


@each_row(("flag", "escalated"), FLAGS)
def test_escalated_flag_decides_hand_over_and_missing_flag_is_unknown(flag, escalated):
    assert read({"reply": "Hi", "x": flag}, escalated="$.x").handed_over is escalated
    assert read({"reply": "Hi"}, escalated="$.x").handed_over is None
    if escalated:  # words may be missing then
        assert read({"x": flag}, escalated="$.x").agent == ""


@each_row("value", ["open", "agent-7", "", "true", 1, 0, {"to": "team"}, ["x"], [True, "x"]])
def test_non_boolean_hand_over_value_is_error_that_suggests_escalated_when(value):
    """A ticket's status "open" once ended every conversation after its first turn."""
    with pytest.raises(AgentError) as error:
        read({"reply": "Hi", "x": value}, escalated="$.x")
    shown = json.dumps(value[-1] if isinstance(value, list) else value)
    assert str(error.value) == (
        f"adapterOptions.reply.escalated ($.x) finds {shown}, which is neither true nor false. Say which "
        "value is a hand-over, as in `escalatedWhen: {oneOf: [handoff, human]}` next to `escalated: $.x`, or "
        "let `escalated` be the path of true or false"
    )


@each_row(("wanted", "value", "escalated"), [
    ("handoff", "handoff", True),
    ("handoff", "open", False),
    ("handoff", ["bot", "handoff"], True),
    ("handoff", [], False),
    ("handoff", None, None),
    ({"oneOf": ["human", "team"]}, "team", True),
    ({"regex": "^agent-"}, "agent-7", True),
    ({"exists": True}, {"to": "team"}, True),
    ({"exists": True}, None, False),
    ({"min": 1}, 0, False),
    ({"contains": "team"}, ["team"], True),
    (True, "true", True),
])  # fmt: skip
def test_escalated_when_decides_which_value_is_a_hand_over(wanted, value, escalated):
    paths = {"escalated": "$.x", "escalatedWhen": wanted}
    assert read({"reply": "Hi", "x": value}, **paths).handed_over is escalated
    assert read({"reply": "Hi"}, **paths).handed_over is None


def test_hand_over_is_found_by_json_path_filter_and_unknown_if_unreported():
    paths = {"escalated": "$.events[?@.type == 'handoff']", "escalatedWhen": {"exists": True}}
    events = [{"type": "text"}, {"type": "handoff"}]
    assert read({"reply": "Hi", "events": events}, **paths).handed_over is True
    assert read({"reply": "Hi", "events": events[:1]}, **paths).handed_over is False
    body = {"reply": "Hi", "tools": []}
    assert read(body, workflows="$.tools", escalated="$.handover").hand_over is None
    assert read(body | {"handover": False}, workflows="$.tools", escalated="$.handover").hand_over is False
    assert read(body, workflows="$.tools").hand_over is False
    assert read(body, toolCalls="$.tools").hand_over is None


@each_row(("body", "paths", "handed_over"), [
    ({"tools": ["to_person"]}, {}, True),
    ({"reply": "Hi", "tools": ["refund"]}, {}, False),
    ({"reply": "Hi", "tools": [{"title": "?"}]}, {}, None),
    ({"reply": "Hi"}, {}, None),
    ({"reply": "Hi", "tools": [], "x": None}, {"escalated": "$.x"}, None),
    ({"reply": "Hi", "tools": [], "x": False}, {"escalated": "$.x"}, False),
    ({"reply": "Hi", "tools": ["to_person"], "x": False}, {"escalated": "$.x"}, True),
    ({"reply": "Hi", "x": False}, {"escalated": "$.x"}, None),
    ({"reply": "Hi", "flows": [], "tools": ["to_person"]}, {"workflows": "$.flows"}, True),
])  # fmt: skip
def test_call_of_escalation_tool_counts_as_hand_over(body, paths, handed_over):
    """That none was called is known only if all calls are known, and the agent's own report is."""
    options = HttpReply.model_validate({**REPLY, "toolCalls": "$.tools", **paths})
    reader = Reader(options, escalation_tools=["to_person"])
    assert reader.reply(body, 0.5, Redactor()).hand_over is handed_over


@each_row(("error", "failed", "detail"), [
    ("No stock", True, "No stock"),
    ({"message": "No stock", "code": "E7"}, True, "E7: No stock"),
    (True, True, None),
    (False, False, None),
    (None, False, None),
    ("", False, None),
    ([], False, None),
])  # fmt: skip
def test_error_path_is_read_as_text_object_or_flag(error, failed, detail):
    reply = read({"reply": "Hi", "x": error}, error="$.x")
    assert (reply.error_response, reply.error_detail) == (failed, detail)
    assert read({"reply": "Hi"}, error="$.x").error_response is None
    if failed:
        assert read({"x": error}, error="$.x").agent == ""


def test_tokens_are_summed_over_readable_values_and_trace_is_kept():
    body = {"reply": "Hi", "steps": [{"in": 3, "out": 1.0}, {"in": 4, "out": "x"}, {"in": True}]}
    paths = {"inputTokens": "$.steps[*].in", "outputTokens": "$.steps[*].out", "trace": "$.steps[0]"}
    reply = read(body, **paths)
    assert (reply.input_tokens, reply.output_tokens, reply.trace) == (7, 1, {"in": 3, "out": 1.0})
    assert read(body, trace="$.steps[*].in").trace == [3, 4, True]
    nothing = read({"reply": "Hi"}, **paths)
    assert (nothing.input_tokens, nothing.output_tokens, nothing.trace) == (None, None, None)


def test_workflows_and_params_come_only_from_paths_of_their_own():
    body = {"reply": "Hi", "tools": [], "flows": None, "slots": None}
    flows = read(body, toolCalls="$.tools", workflows="$.flows")
    assert (flows.workflows, flows.tool_calls_partial) == (None, True)
    slots = read(body, toolCalls="$.tools", params="$.slots")
    assert (slots.params, slots.workflows, slots.tool_calls_partial) == (None, (), True)
    both = read(body | {"flows": []}, toolCalls="$.tools", workflows="$.flows")
    assert (both.workflows, both.tool_calls_partial) == ((), False)
    with_calls(flows)
    assert with_calls(flows).workflows is None


@pytest.mark.parametrize(("answer", "message"), [
    (world.GARBAGE, "cannot be read .not JSON.: an HTML page titled 'Wrong door'"),
    (world.EMPTY, "cannot be read .not JSON.: an empty body"),
    (Fault(200, "Hello"), "cannot be read .not JSON.: Hello"),
    (Fault(200, "[" * 90_000), "nested too deep"),
    (Fault(404, "Not Found"), r"404 to POST /chat: Not Found \(see baseUrl and adapterOptions\.send\)"),
    (Fault(422, "no text"), r"status 422: no text \(see baseUrl and adapterOptions\.send\)"),
    (world.GARBAGE, r"'Wrong door' \(see baseUrl and adapterOptions\.send\)"),
    (Fault(500, "oops"), "answered with status 500: oops"),
    (Fault(302, headers={"Location": "https://a.example/"}), "redirects to https://a.example .302"),
    ({"reply": " " * 17_000_000}, "answered with more than 16 MB"),
])  # fmt: skip
async def test_unusable_http_answer_is_an_error_with_the_reason(stub, answer, message):
    stub.answer = lambda asked: answer
    with pytest.raises(AgentError, match=message):
        await say(agent_at(stub.url), "Hello")


async def test_refused_key_error_names_the_option_and_hides_the_key(stub):
    message = r"refused the key.*Key \*\*\* is unknown.*CI_EVALS_AGENT_KEY"
    for status in (401, 403):
        stub.faults = [Fault(status, json.dumps({"detail": f"Key {endpoints.KEY} is unknown"}))]
        with pytest.raises(AgentAccessError, match=message):
            await say(agent_at(stub.url), "Hello")


async def test_status_400_is_a_refused_key_only_until_the_key_was_accepted(stub):
    """LiteLLM refuses a key with this status; once it was accepted, something else is wrong."""
    refusal = Fault(400, '{"error": {"message": "No connected db.", "type": "no_db_connection"}}')
    stub.faults = [refusal]
    agent = agent_at(stub.url)
    with pytest.raises(AgentAccessError, match=r"refused the key \(400\).*CI_EVALS_AGENT_KEY"):
        await say(agent, "Hello")
    await say(agent, "Hello")
    stub.faults = [refusal]
    with pytest.raises(AgentError, match="answered with status 400: No connected db"):
        await say(agent, "Hello")


async def test_errors_that_quote_the_answer_hide_all_secrets(stub):
    redactor = Redactor(values=["long-secret-value"])
    agent = agent_at(stub.url, redactor=redactor, headers={"x-t": "header-secret"})
    echo = f"long-secret-value header-secret {endpoints.KEY}"
    for body in ({"oops": "x" * 200 + echo}, {echo: 1}, Fault(200, echo), Fault(500, echo)):
        stub.answer = lambda asked, body=body: body
        with pytest.raises(AgentError) as caught:
            await say(agent, "Hello")
        for secret in ("long-secret", "header-secret", endpoints.KEY):
            assert secret not in str(caught.value)


async def test_only_openings_and_rate_limited_messages_are_resent(stub):
    waits = []
    stub.answer = lambda asked: {"id": "c1"} if asked.path == "/open" else {"reply": "Hi"}
    agent = agent_at(stub.url, waits, options={"open": {"path": "/open", "session": "$.id"}})
    stub.faults = [Fault(500), Fault(502)]
    async with session_of(agent) as session:
        assert len(waits) == 2
        stub.faults = [Fault(429)]
        await agent.send_message(session, "Hello", timeout=5)
        assert len(waits) == 3
        stub.faults = [Fault(503)]
        with pytest.raises(AgentError, match="answered with status 503"):
            await agent.send_message(session, "Hello", timeout=5)
    assert len(waits) == 3


async def test_unreachable_unsendable_or_oversized_requests_name_the_option(stub):
    options = {"headers": {"X-Name": "{{userInfo.name}}"}}
    odd = TEST.model_copy(update={"user_info": {"name": "Łukasz"}})
    with pytest.raises(AgentError, match="header 'X-Name' holds characters"):
        await say(agent_at(stub.url, options=options), "Hello", test=odd)
    send = {"method": "GET", "path": "/{{message}}"}
    with pytest.raises(AgentError):
        await say(agent_at(stub.url, options={"send": send}), "x" * 100_000)
    assert stub.asked == []
    with pytest.raises(AgentError, match=r"could not be reached: .*; start it, or correct baseUrl"):
        await say(agent_at("http://127.0.0.1:9"), "Hello")
    with pytest.raises(AgentError, match="it does not speak TLS; write http:// in baseUrl"):
        await say(agent_at(stub.url.replace("http:", "https:")), "Hello")
    stub.answer = lambda asked: Fault(404, "Not Found")
    opening = {"path": "/chats", "session": "$.id"}
    with pytest.raises(AgentError, match=r"\(see baseUrl and adapterOptions\.open\)"):
        await say(agent_at(stub.url, options={"open": opening}), "Hello")
    stub.answer = lambda asked: Fault(404, "no such chat")
    send = {"path": "/chats/{{session}}", "body": "{{message}}"}
    with pytest.raises(AgentError, match=r"to POST /v2/chats/\{\{session\}\}: no such chat"):
        await say(agent_at(f"{stub.url}/v2", options={"send": send}), "Hello")
    stub.answer = lambda asked: {"reply": "Hi", "log": [{}] * 60_000}
    with pytest.raises(AgentError, match=r"holds too much to look through for the path \$\.log\[\*\]\.tool"):
        await say(agent_at(stub.url, options={"reply": {**REPLY, "workflows": "$.log[*].tool"}}), "Hello")


@each_row(("options", "place", "message"), [
    ({"send": {"body": "{{x}}"}}, ("send", "body"), "{{x}}, which is unknown; available: message,"),
    ({"send": {"body": ["{{key}} {{message}}"]}}, ("send", "body"), "the key goes in headers only"),
    ({"send": {"query": {"q": "{{userinfo.x}}"}}}, ("send", "query"), "{{userinfo.x}}, which is unknown"),
    ({"send": {"path": "chat"}}, ("send", "path"), "must begin with '/'"),
    ({"send": {"path": "/chat?x={{message}}"}}, ("send", "path"), "parameters go in 'query'"),
    ({"send": {"body": {"text": "Hi"}}}, ("send",), "neither {{message}} nor {{messages}}"),
    ({"open": {"session": "$", "body": "{{session}}"}}, ("open", "body"), "{{session}}, which is unknown"),
    ({"open": {"session": "id"}}, ("open", "session"), "must begin with '$'"),
    ({"close": {"body": "{{message}}"}}, ("close", "body"), "{{message}}, which is unknown"),
    ({"headers": {"x": "{{message}}"}}, ("headers",), "{{message}}, which is unknown"),
    ({"reply": {"text": "$.a["}}, ("reply", "text"), "is not a JSONPath"),
    ({"reply": REPLY | {"error": "$[?match(@.a, 'b')]"}}, ("reply", "error"), "'match' is not defined"),
    ({"reply": REPLY | {"escalatedWhen": "x"}}, ("reply",), "escalatedWhen is given, but escalated is not"),
])  # fmt: skip
def test_invalid_options_are_refused_with_their_position(options, place, message):
    with pytest.raises(ValidationError) as refused:
        HttpOptions.model_validate({"send": SEND, "reply": REPLY, **options})
    (error,) = refused.value.errors()
    assert (error["loc"], message in error["msg"]) == (place, True)


@pytest.mark.parametrize(("config", "message"), [
    ({"api_key": "clé"}, "the agent's key holds characters"),
    ({"headers": {"X-Team": "a\r\nb"}}, "the agent's header 'X-Team' holds characters"),
    ({"base_url": "agents.example"}, "`base_url=`"),
    ({"base_url": "https://u:p@agents.example"}, "may not contain a user name"),
    ({"options": {"headers": {"x team": "{{session}}"}}}, "'x team' is not the name"),
])  # fmt: skip
def test_unsendable_key_header_or_base_url_is_refused_before_the_run(config, message):
    with pytest.raises(UsageError, match=message) as caught:
        agent_at(config.pop("base_url", "http://127.0.0.1"), **config)
    assert "clé" not in str(caught.value)


def test_secrets_in_configured_headers_are_found_by_header_name():
    headers = {"Authorization": "Bearer abc-123456", "X-Api-Key": "{{key}}", "X-A": "qa", "cookie": "sid=1"}
    assert [*secrets_of({"headers": headers})] == ["Bearer", "abc-123456", "sid=1"]
    for odd in (None, {}, {"headers": None}, {"headers": [1]}, {"headers": {"key": 7}}):
        assert [*secrets_of(odd)] == []


@settings(max_examples=examples(60))
@given(world.odd_responses())
def test_arbitrary_http_bytes_are_read_or_raise_agent_error(answer):
    async def say_once() -> None:
        options = {"open": {"session": "$.id"}, "reply": {"text": "$"}}
        async with world.raw_server(*[answer, world.HANG_UP] * 3) as (url, _):
            with suppress(AgentError):
                await say(agent_at(url, options=options), "Hello")

    asyncio.run(say_once())


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(endpoints.any_json())
def test_arbitrary_json_reply_is_read_or_raises_agent_error(value):
    for path in ("$", "$.*", "$..name", "$[?@.name]"):
        paths = {name: path for name in HttpReply.model_fields if name != "text"}
        with suppress(AgentError):
            reply = Reader(HttpReply(text="$", **paths)).reply(value, 0.5, Redactor())
            assert Reply.model_validate_json(reply.model_dump_json()) == reply
