"""The adapter `openai` against endpoints on loopback."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import endpoints
import pytest
import world
from endpoints import Endpoint, EndpointRequest, completion, tool_calls
from hypothesis import HealthCheck, given, settings
from property_examples import examples
from world import Fault

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.openai_api import chat_wire
from ci_evals.extensions.openai_api.chat_agent import ChatAgent
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit",
    user_info={"name": "Ida Berg", "days": 3},
    guidelines="You want your deposit back.",
    system_prompt="Be brief.",
    turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)
REFUND = tool_calls(("refund", {"plan": "Pro", "days": 3}))


@pytest.fixture
def stub() -> Iterator[Endpoint]:
    with endpoints.serving(lambda asked: completion(f"You said: {asked.texts[-1]}")) as stub:
        yield stub


@pytest.fixture
def waits() -> list[float]:
    """How long an agent waited before each resend; no test does."""
    return []


def agent_at(
    url: str,
    waits: list[float] | None = None,
    redactor: Redactor | None = None,
    *,
    options: dict[str, Any] | None = None,
    **config: Any,
) -> ChatAgent:
    given = {"model": "refund-agent", "api_key": endpoints.KEY, "base_url": url, **config}
    return ChatAgent(
        AgentSettings(**given, options=options or {}), redactor=redactor, limiter=world.limiter(waits)
    )


@asynccontextmanager
async def session_of(agent: ChatAgent, test: Test = TEST) -> AsyncIterator[Any]:
    session = await agent.open_session(test)
    try:
        yield session
    finally:
        await agent.close(session)


async def say(agent: ChatAgent, *texts: str, test: Test = TEST) -> list[Reply]:
    async with session_of(agent, test) as session:
        return [await agent.send_message(session, text, timeout=60) for text in texts]


async def reply_to(stub: Endpoint, body: Any, **options: Any) -> Reply:
    """The reply that an endpoint's answer becomes."""
    stub.answer = lambda asked: body
    (reply,) = await say(agent_at(stub.url, options=options), "Hello")
    return reply


async def test_a_conversation_on_the_wire(stub: Endpoint) -> None:
    """We keep it: each message goes with all before it, and with what the test says of the user."""
    first, second = await say(agent_at(f"{stub.url}/v1/"), "Hello", "My deposit?")
    assert [asked.path for asked in stub.asked] == ["/v1/chat/completions"] * 2
    assert stub.asked[0].headers["authorization"] == f"Bearer {endpoints.KEY}"
    body = stub.asked[1].body
    assert {key: body[key] for key in body if key != "messages"} == {"model": "refund-agent"}
    system, *rest = body["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("Be brief.\n\n")
    assert '"name": "Ida Berg"' in system["content"]
    assert rest == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "You said: Hello"},
        {"role": "user", "content": "My deposit?"},
    ]
    assert (first.agent, second.agent) == ("You said: Hello", "You said: My deposit?")
    assert 0 < first.latency_seconds < 5
    assert (first.input_tokens, first.output_tokens, first.error_response) == (21, 5, False)


async def test_options_reach_the_wire(stub: Endpoint) -> None:
    """More of the body, of the address and of the headers; the user's own headers go over all."""
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
    (reply,) = await say(agent, "Hello")
    (asked,) = stub.asked
    assert (asked.path, asked.query) == ("/v1/chat/completions", {"api-version": "2026-01-01"})
    assert (asked.headers["api-key"], asked.headers["x-team"]) == (endpoints.KEY, "other")
    assert "authorization" not in asked.headers
    assert asked.body["temperature"] == 0
    assert asked.body["metadata"] == {"team": "qa", "name": "Ida Berg", "days": "3"}
    assert asked.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert reply.raw["id"] == "chatcmpl-1"


async def test_user_without_facts_needs_no_system_message(stub: Endpoint) -> None:
    """And with `userInfo: none` what is known is kept to ourselves."""
    plain = TEST.model_copy(update={"system_prompt": None, "user_info": {}})
    await say(agent_at(stub.url), "Hello", test=plain)
    kept = TEST.model_copy(update={"system_prompt": None})
    await say(agent_at(stub.url, options={"userInfo": "none"}), "Hello", test=kept)
    for asked in stub.asked:
        assert asked.body["messages"] == [{"role": "user", "content": "Hello"}]
        assert "metadata" not in asked.body


async def test_a_key_is_not_needed(stub: Endpoint) -> None:
    """Many servers on one's own machine want none."""
    stub.key = "gzip,"
    await say(agent_at(stub.url, api_key=""), "Hello")
    assert "authorization" not in stub.asked[0].headers


async def test_calls_of_tools_are_evidence(stub: Endpoint) -> None:
    """Names and arguments of all calls, later arguments over earlier ones."""
    named = tool_calls(("look_up", {"plan": "Basic"}), ("refund", {"plan": "Pro", "days": 3}))
    reply = await reply_to(stub, completion("Done.", tool_calls=named))
    assert reply.workflows == ("look_up", "refund")
    assert reply.params == {"plan": "Pro", "days": 3}
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("call_1", "look_up", {"plan": "Basic"}),
        ("call_2", "refund", {"plan": "Pro", "days": 3}),
    ]
    assert reply.handed_over is None


@pytest.mark.parametrize(
    ("message", "options", "workflows"),
    [
        ({}, {}, None),
        ({"tool_calls": None}, {}, None),
        ({"tool_calls": []}, {}, ()),
        ({"tool_calls": [1, {"function": {}}]}, {}, None),
        ({"tool_calls": "refund"}, {}, None),
        ({}, {"request": {"tools": [{"type": "function"}]}}, ()),
        ({}, {"request": {"functions": [{"name": "refund"}]}}, ()),
        ({}, {"request": {"tools": []}}, None),
        ({"tool_calls": [{"function": {}}]}, {"request": {"tools": [{"type": "function"}]}}, None),
        ({"tool_calls": "refund"}, {"request": {"tools": [{"type": "function"}]}}, None),
        (
            {"tool_calls": [*tool_calls(("refund", {})), 1]},
            {"request": {"tools": [{"type": "function"}]}},
            None,
        ),
        ({"function_call": "refund"}, {"request": {"functions": [{"name": "refund"}]}}, None),
    ],
)
async def test_no_evidence_is_not_nothing_happened(
    stub: Endpoint, message: dict[str, Any], options: dict[str, Any], workflows: Any
) -> None:
    """Only a message that speaks of tools, or the offer of some, tells that none was called."""
    reply = await reply_to(stub, completion("Hi", **message), **options)
    assert reply.workflows == workflows
    why = 'return "tool_calls": []' if not any(message.values()) else "cannot be read"
    assert why in reply.not_found["toolCalls"] if workflows is None else reply.not_found == {}
    assert reply.params == (None if workflows is None else {})
    assert reply.tool_calls == workflows


@pytest.mark.parametrize(
    ("given", "params"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ("last week", {"input": "last week"}),
        ('["a"]', {"input": ["a"]}),
        ('{"a": 1', None),
    ],
)
async def test_arguments_that_are_no_object_are_the_input(
    stub: Endpoint, given: str, params: dict[str, Any] | None
) -> None:
    """Whether JSON or not; an empty text is how servers write none. Half an object is unknown."""
    reply = await reply_to(stub, completion("Hi", tool_calls=tool_calls(("look_up", given))))
    assert reply.params == params


@pytest.mark.parametrize("function", [{"name": "look_up"}, {"name": "look_up", "arguments": None}])
async def test_arguments_that_were_not_captured_leave_the_parameters_unknown(
    stub: Endpoint, function: dict[str, Any]
) -> None:
    """Also those of other calls: a check that a parameter was not given must not pass."""
    others = tool_calls(("refund", {"plan": "Pro"}))
    reply = await reply_to(stub, completion("Hi", tool_calls=[*others, {"id": "c", "function": function}]))
    assert (reply.workflows, reply.params) == (("refund", "look_up"), None)
    assert [call.arguments for call in reply.tool_calls] == [{"plan": "Pro"}, None]
    assert "reports none under arguments" in reply.tool_calls[1].not_captured


async def test_other_forms_of_calls(stub: Endpoint) -> None:
    """Arguments as an object, tools with free text, and the old single `function_call`."""
    an_object = [{"function": {"name": "refund", "arguments": {"days": 3}}}]
    assert (await reply_to(stub, completion("Hi", tool_calls=an_object))).params == {"days": 3}
    custom = [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}]
    reply = await reply_to(stub, completion("Hi", tool_calls=custom))
    assert (reply.workflows, reply.params) == (("sql",), {"input": "SELECT 1"})
    old = {"name": "refund", "arguments": '{"days": 3}'}
    reply = await reply_to(stub, completion("Hi", function_call=old))
    assert (reply.workflows, reply.params) == (("refund",), {"days": 3})


async def test_tools_that_are_left_to_the_caller(stub: Endpoint) -> None:
    """Their results are sent until the agent says something; all of it is one reply."""
    answers = [
        completion(
            "Let me look.", finish="tool_calls", tool_calls=tool_calls(("look_up", {"id": 7}), ("clock", ""))
        ),
        completion(None, finish="tool_calls", tool_calls=REFUND),
        completion("You get it back."),
    ]
    stub.answer = lambda asked: answers[len(stub.asked) - 1] if len(stub.asked) < 4 else completion("Bye")
    agent = agent_at(
        stub.url,
        options={"toolResults": {"look_up": {"order": "é"}, "clock": "noon", "refund": None}},
        debug=True,
    )
    reply, _ = await say(agent, "My deposit?", "Thanks")
    assert reply.agent == "Let me look.\n\nYou get it back."
    assert reply.workflows == ("look_up", "clock", "refund")
    assert reply.params == {"id": 7, "plan": "Pro", "days": 3}
    assert [(call.name, call.result, call.status.value) for call in reply.tool_calls] == [
        ("look_up", {"order": "é"}, "ok"),
        ("clock", "noon", "ok"),
        ("refund", None, "ok"),
    ]
    assert (reply.input_tokens, reply.output_tokens) == (63, 15)
    assert len(reply.raw) == 3
    _, user, asked, one, two, again, three, answer, _ = stub.asked[3].body["messages"]
    assert user == {"role": "user", "content": "My deposit?"}
    assert asked == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": answers[0]["choices"][0]["message"]["tool_calls"],
    }
    assert one == {"role": "tool", "tool_call_id": "call_1", "content": '{"order": "é"}'}
    assert two == {"role": "tool", "tool_call_id": "call_2", "content": "noon"}
    assert again["content"] is None
    assert three == {"role": "tool", "tool_call_id": "call_1", "content": "null"}
    assert answer == {"role": "assistant", "content": "You get it back."}


async def test_a_function_call_of_the_old_form_gets_its_result_in_the_old_form(stub: Endpoint) -> None:
    """As an answer of the role `function`."""
    call = {"name": "refund", "arguments": "{}"}
    answers = [completion(None, finish="function_call", function_call=call), completion("Done.")]
    stub.answer = lambda asked: answers[len(stub.asked) - 1]
    (reply,) = await say(agent_at(stub.url, options={"toolResults": {"refund": "ok"}}), "Hello")
    assert (reply.agent, reply.workflows) == ("Done.", ("refund",))
    asked, result = stub.asked[1].body["messages"][-2:]
    assert asked == {"role": "assistant", "content": None, "function_call": call}
    assert result == {"role": "function", "name": "refund", "content": "ok"}


async def test_a_result_that_is_an_error_is_that_of_a_failed_call(stub: Endpoint) -> None:
    """Checks of `status` then see it; a call that got no result has none."""
    answers = [completion(None, finish="tool_calls", tool_calls=REFUND), completion("No.", tool_calls=REFUND)]
    stub.answer = lambda asked: answers[len(stub.asked) - 1]
    (reply,) = await say(agent_at(stub.url, options={"toolResults": {"refund": {"error": "declined"}}}), "Hi")
    assert [call.status.value for call in reply.tool_calls] == ["error", "unknown"]
    assert [call.result for call in reply.tool_calls] == [{"error": "declined"}, None]


async def test_calls_without_an_id_get_one(stub: Endpoint) -> None:
    """Some servers leave it out, and want it back."""
    nameless = [{"function": {"name": "refund", "arguments": "{}"}}]
    answers = [completion(None, tool_calls=nameless), completion("Done.")]
    stub.answer = lambda asked: answers[len(stub.asked) - 1]
    await say(agent_at(stub.url, options={"toolResults": {"refund": "ok"}}), "Hello")
    asked, result = stub.asked[1].body["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"]


async def test_a_call_without_a_result_says_what_to_add(stub: Endpoint) -> None:
    """The name of the tool and the place in the suite."""
    with pytest.raises(
        AgentError, match=r"the tool 'refund' and waits for its result.*adapterOptions\.toolResults"
    ):
        await reply_to(stub, completion(None, finish="tool_calls", tool_calls=REFUND))


async def test_an_agent_that_never_stops_calling_tools(stub: Endpoint) -> None:
    """Ten rounds, not more."""
    with pytest.raises(AgentError, match="called tools more than 10 times in a row"):
        await reply_to(stub, completion(None, tool_calls=REFUND), toolResults={"refund": "ok"})
    assert len(stub.asked) == 11


async def test_calls_beside_words_were_run_by_the_endpoint_itself(stub: Endpoint) -> None:
    """Where nobody here knows its tools it is not waiting for us, whatever it calls the end."""
    reply = await reply_to(stub, completion("Done.", finish="tool_calls", tool_calls=REFUND))
    assert (reply.agent, reply.workflows) == ("Done.", ("refund",))


async def test_a_tool_that_hands_over(stub: Endpoint) -> None:
    """Its call ends the reply, with or without words."""
    person = tool_calls(("to_person", {"why": "angry"}))
    for text in (None, "A colleague will call."):
        body = completion(text, finish="tool_calls", tool_calls=person)
        reply = await reply_to(stub, body, escalationTools=["to_person"], toolResults={"x": 1})
        assert (reply.agent, reply.handed_over, reply.escalated) == (text or "", True, True)
    assert len(stub.asked) == 2
    reply = await reply_to(stub, completion("Hi", tool_calls=[]), escalationTools=["to_person"])
    assert reply.handed_over is False
    assert (await reply_to(stub, completion("Hi"), escalationTools=["to_person"])).handed_over is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}], "Hi there"),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "Look"}, 7, "!"], "Look!"),
        ([{"type": "refusal", "refusal": "I can't."}], "I can't."),
    ],
)
async def test_content_as_text_or_parts(stub: Endpoint, content: Any, text: str) -> None:
    """What is no text is passed over."""
    assert (await reply_to(stub, completion(content))).agent == text


async def test_a_refusal_is_an_answer(stub: Endpoint) -> None:
    """The user is told of it, and so are the criteria."""
    reply = await reply_to(stub, completion(None, refusal="I can't help with that."))
    assert (reply.agent, reply.error_response) == ("I can't help with that.", False)


async def test_what_a_filter_withholds_is_an_error_of_the_agent(stub: Endpoint) -> None:
    """It answered, with nothing or half of it."""
    for text in (None, "You could"):
        reply = await reply_to(stub, completion(text, finish="content_filter"))
        assert (reply.agent, reply.error_response) == (text or "", True)
        assert "content filter" in reply.error_detail


@pytest.mark.parametrize("usage", [None, (None, None), ("21", 5.5), (-1, True), (10**20, 10**20)])
async def test_tokens_that_nobody_told(stub: Endpoint, usage: Any) -> None:
    """Unknown is not zero."""
    body = completion("Hi", usage=None)
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    reply = await reply_to(stub, body)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
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
        (
            Fault(404, '{"detail": "Not Found"}'),
            r"404 to POST /chat/completions: Not Found \(see baseUrl and model\)",
        ),
        (Fault(400, '{"error": {"message": "bad", "param": null}}'), "answered with status 400: bad$"),
        (Fault(302, headers={"Location": "https://login.example/"}), "redirects to https://login.example"),
    ],
)
async def test_an_answer_that_is_none(stub: Endpoint, body: Any, message: str) -> None:
    """Status 200 alone makes no reply."""
    with pytest.raises(AgentError, match=message):
        await reply_to(stub, body)


@pytest.mark.parametrize("finish", ["length", "tool_calls", "function_call"])
async def test_an_answer_that_may_lack_calls_says_nothing_of_them(stub: Endpoint, finish: str) -> None:
    """It was cut off, or ends with calls and has none."""
    reply = await reply_to(stub, completion("Done.", finish=finish, tool_calls=[]))
    assert (reply.agent, reply.tool_calls, reply.workflows) == ("Done.", None, None)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_says_what_to_do(stub: Endpoint, status: int) -> None:
    """The message names the host and the option, and never the key, not even half of it."""
    message = "x" * 280 + endpoints.KEY
    stub.faults = [
        Fault(status, json.dumps({"error": {"message": f"Incorrect key: {endpoints.KEY} {message}"}}))
    ]
    with pytest.raises(AgentAccessError) as caught:
        await say(agent_at(stub.url), "Hello")
    assert f"refused the key ({status}): Incorrect key: ***" in str(caught.value)
    assert "CI_EVALS_AGENT_KEY" in str(caught.value)
    assert endpoints.KEY[:8] not in str(caught.value)


async def test_errors_hold_no_secret_of_the_run(stub: Endpoint) -> None:
    """Nor one of the headers."""
    agent = agent_at(
        stub.url, redactor=Redactor(values=["Ida Berg the user"]), headers={"x-t": "header-secret"}
    )
    echo = f"Ida Berg the user header-secret {endpoints.KEY}"
    messages = []
    for body in ({"oops": echo}, {echo: 1}, echo, Fault(500, echo)):
        stub.answer = lambda asked, body=body: body
        with pytest.raises(AgentError) as caught:
            await say(agent, "Hello")
        messages.append(str(caught.value))
    stub.answer = lambda asked: {"error": {"message": echo}}
    (reply,) = await say(agent, "Hello")
    for text in (*messages, reply.error_detail):
        for secret in ("Ida Berg the user", "header-secret", endpoints.KEY):
            assert secret not in text


async def test_a_message_is_sent_again_only_where_it_was_not_taken(
    stub: Endpoint, waits: list[float]
) -> None:
    """Refused for the rate, yes; fallen over, no."""
    agent = agent_at(stub.url, waits)
    stub.faults = [Fault(429), world.fault(503, retry_after="7")]
    (reply,) = await say(agent, "Hello")
    assert reply.agent == "You said: Hello"
    assert len(waits) == 2
    for status in (500, 502, 503, 529):
        stub.faults, before = [Fault(status)], len(stub.asked)
        with pytest.raises(AgentError, match=f"answered with status {status}"):
            await say(agent, "Hello")
        assert len(stub.asked) == before + 1


async def test_a_connection_that_breaks_under_a_message_ends_it(waits: list[float]) -> None:
    """The server had read the message when it hung up."""
    async with world.raw_server() as (url, heard):
        with pytest.raises(AgentError, match=r"the connection to the agent at 127.0.0.1:\d+ broke"):
            await say(agent_at(url, waits), "Hello")
    assert len(heard) == 1
    assert waits == []


async def test_all_rounds_share_the_turns_timeout() -> None:
    """What the first rounds took is missing to the last; the message names the whole."""

    def answer(_: EndpointRequest) -> Any:
        time.sleep(0.3)
        return completion(None, tool_calls=tool_calls(("refund", {})))

    with endpoints.serving(answer) as stub:
        agent = agent_at(stub.url, options={"toolResults": {"refund": "ok"}})
        async with session_of(agent) as session:
            with pytest.raises(AgentError, match=r"^the agent did not answer within 0.5 s$"):
                await agent.send_message(session, "Hello", timeout=0.5)


async def test_a_failed_message_leaves_the_conversation_as_it_was(stub: Endpoint) -> None:
    """What was not answered was not said."""
    agent = agent_at(stub.url)
    async with session_of(agent) as session:
        stub.faults = [Fault(500)]
        with pytest.raises(AgentError):
            await agent.send_message(session, "Hello", timeout=5)
        await agent.send_message(session, "Again", timeout=5)
    assert stub.asked[-1].texts == ["Again"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"api_key": "clé"}, "the agent's key holds characters"),
        ({"headers": {"X-Team": "a\r\nb"}}, "the agent's header 'X-Team' holds characters"),
        ({"headers": {"x team": "a"}}, "'x team' is not the name"),
        ({"options": {"headers": {"x team": "a"}}}, "'x team' is not the name"),
        ({"base_url": "api.openai.com"}, "`base_url=`"),
        ({"base_url": "https://h/v1?x=1"}, "must end before"),
    ],
)
def test_what_cannot_be_sent_is_found_before_the_run(config: dict[str, Any], message: str) -> None:
    """A key that was pasted wrongly is the user's mistake; its value is not shown."""
    with pytest.raises(UsageError, match=message) as caught:
        ChatAgent(AgentSettings(**{"model": "m", "api_key": "k", "base_url": "http://127.0.0.1", **config}))
    assert "clé" not in str(caught.value)


@pytest.mark.parametrize("request_", [{"messages": []}, {"model": "m"}, {"stream": True}])
def test_a_request_leaves_ours_to_us(request_: dict[str, Any]) -> None:
    """It would be sent twice, or not be read."""
    with pytest.raises(ValueError, match=f"may not hold '{next(iter(request_))}'"):
        ChatOptions(request=request_)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(world.odd_responses())
def test_any_answer_is_read_or_an_error(answer: bytes) -> None:
    """Whatever a server says in its status and headers is an answer or an `AgentError`."""

    async def say_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 3) as (url, _):
            with suppress(AgentError):
                await say(agent_at(url), "Hello")

    asyncio.run(say_once())


@settings(max_examples=examples(200))
@given(endpoints.any_json())
def test_any_completion_is_read_or_an_error(message: Any) -> None:
    """Whatever stands where the message should be."""
    for body in (message, {"choices": [message]}, {"choices": [{"message": message}], "usage": message}):
        with suppress(AgentError):
            read = chat_wire.read(body, Redactor())
            chat_wire.reply([read], 1.0, ChatOptions(escalation_tools=("a",)))
            if read.waits:
                chat_wire.results(read, {call.name: 1 for call in read.calls or ()})
