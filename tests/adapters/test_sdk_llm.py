"""OpenAI's and Anthropic's models against a local server that speaks both APIs."""

import asyncio
import base64
import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any, get_args

import pytest
import world
from hypothesis import HealthCheck, given, settings
from property_examples import examples
from world import Fault, ModelRequest, Models

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.providers import ANTHROPIC, OPENAI
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}},
    "required": ["verdict"],
    "additionalProperties": False,
}
PLAIN = Prompt(system="You are a customer.", text="What do you say?")
BOMB = gzip.compress(b"{" + b" " * 17_000_000 + b"}", 1)
JUDGING = Prompt(system="You are a judge.", text="Did it help?", schema=SCHEMA, schema_name="verdict")

LLM = OpenAILLM | AnthropicLLM
Make = Callable[..., LLM]


@pytest.fixture
def models() -> Iterator[Models]:
    with world.llm(lambda asked: '{"verdict": "pass"}') as models:
        yield models


@pytest.fixture(params=["openai", "anthropic"])
def make(request: pytest.FixtureRequest, models: Models) -> Make:
    """Makes a model of each provider in turn, without repeats unless a test wants some."""

    def make(model: str = "some-model", **options: Any) -> LLM:
        options = {"limiter": world.limiter(budget=world.NO_RETRIES), "timeout": 5, **options}
        if request.param == "openai":
            return OpenAILLM(model, options.pop("key", models.key), models.openai_url, **options)
        return AnthropicLLM(model, options.pop("key", models.key), models.url, **options)

    return make


@asynccontextmanager
async def closing(llm: LLM) -> AsyncIterator[LLM]:
    try:
        yield llm
    finally:
        await llm.aclose()


async def ask(llm: LLM, prompt: Prompt = PLAIN) -> Completion:
    async with closing(llm):
        return await llm.complete(prompt)


async def failure(llm: LLM, prompt: Prompt = PLAIN) -> LLMError:
    """The error that asking ends in."""
    with pytest.raises(LLMError) as caught:
        await ask(llm, prompt)
    return caught.value


async def test_a_plain_question(make: Make, models: Models) -> None:
    """System and text go along, no temperature does, and the tokens are counted."""
    models.answer = lambda asked: "I want a refund."
    assert await ask(make()) == Completion("I want a refund.", input_tokens=21, output_tokens=5)
    (asked,) = models.asked
    assert (asked.model, asked.mode) == ("some-model", "text")
    assert (asked.system, asked.text) == ("You are a customer.", "What do you say?")
    assert (
        not {"temperature", "response_format", "output_config", "max_completion_tokens"} & asked.body.keys()
    )


async def test_answer_is_checked_against_the_questions_schema(make: Make, models: Models) -> None:
    """The provider is told the schema, and the prompt stays as it is."""
    assert (await ask(make(), JUDGING)).text == '{"verdict": "pass"}'
    (asked,) = models.asked
    assert asked.text == "Did it help?"
    if asked.provider == "openai":
        expected = {"name": "verdict", "schema": SCHEMA, "strict": True}
        assert asked.body["response_format"] == {"type": "json_schema", "json_schema": expected}
    else:
        assert asked.body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


async def test_a_server_that_knows_no_schema_is_asked_in_words(make: Make, models: Models) -> None:
    """Each refused form is followed by the next plainer one, and the last that works is remembered."""
    models.refuses = {"json_schema", "json_object"}
    models.answer = lambda asked: '{"verdict": "pass"}'
    async with closing(make()) as llm:
        first = await llm.complete(JUDGING)
        models.asked, tried = [], models.asked
        second = await llm.complete(JUDGING)
    forms = {"openai": ["json_schema", "json_object", "text"], "anthropic": ["json_schema", "text"]}
    assert [asked.mode for asked in tried] == forms[tried[0].provider]
    assert [asked.mode for asked in models.asked] == ["text"]
    assert json.dumps(SCHEMA, indent=2) in tried[-1].text
    assert tried[-1].text.startswith("Did it help?")
    assert [json.loads(answer.text) for answer in (first, second)] == [{"verdict": "pass"}] * 2


@pytest.mark.parametrize("status", [404, 422, 501])
async def test_a_form_can_be_refused_in_many_ways(make: Make, models: Models, status: int) -> None:
    """Compatible servers differ in how they say that they do not know a form."""
    models.faults = [world.fault(status)]
    assert (await ask(make(), JUDGING)).text == '{"verdict": "pass"}'
    assert len(models.asked) == 2


LLAMA_CPP = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' "
    "or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]"
)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, LLAMA_CPP),
        (500, "Failed to parse grammar"),
        (502, "guided_json is not enabled"),
        (503, "structured output backend is not installed"),
        (405, "JSON mode is not supported"),
        (415, "no such output_config"),
    ],
)
async def test_a_refusal_of_the_form_counts_whatever_its_status(
    make: Make, models: Models, status: int, message: str
) -> None:
    """`llama_cpp.server` answers 500: the next form is asked for at once, and never this one again."""
    models.faults = [world.fault(status, message)]
    waits: list[float] = []
    async with closing(make(limiter=world.limiter(waits))) as llm:
        assert (await llm.complete(JUDGING)).text == '{"verdict": "pass"}'
        await llm.complete(JUDGING)
    assert waits == []
    assert [asked.mode == "json_schema" for asked in models.asked] == [True, False, False]


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_plain_error_of_the_server_weakens_no_form(make: Make, models: Models, status: int) -> None:
    """It is asked again in the same form."""
    models.faults = [world.fault(status, "The server fell over")]
    await ask(make(limiter=world.limiter()), JUDGING)
    assert [asked.mode for asked in models.asked] == ["json_schema"] * 2


@pytest.mark.parametrize("status", [401, 429])
async def test_neither_keys_nor_rates_are_of_the_form(make: Make, models: Models, status: int) -> None:
    """Whatever their refusals are called."""
    models.always = world.fault(status, "no structured output for you")
    await failure(make(), JUDGING)
    assert {asked.mode for asked in models.asked} == {"json_schema"}


@pytest.mark.parametrize(
    ("message", "remembered"),
    [
        ("Unknown parameter: 'response_format'", True),
        ("output_config: Extra inputs are not permitted", True),
        ("This model does not support Structured Outputs", True),
        ("Invalid schema for 'verdict'", True),
        ("The model `schema-9` does not exist for json_schema", True),
        ("bad request", False),
        ("could not parse the JSON body", False),
    ],
)
async def test_only_a_refusal_of_the_form_is_remembered(
    make: Make, models: Models, message: str, remembered: bool
) -> None:
    """One odd refusal weakens the judge for that question, not for the rest of the run."""
    models.faults = [world.fault(400, message)]
    async with closing(make()) as llm:
        await llm.complete(JUDGING)
        await llm.complete(JUDGING)
        assert [asked.mode == "json_schema" for asked in models.asked] == [True, False, not remembered]


@pytest.mark.parametrize(
    "message",
    [
        "The model `gpt-9` does not exist or you do not have access to it",
        "model 'llama' not found, try pulling it first",
        "model: claude-9",
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
async def test_a_refusal_that_is_not_of_the_form_is_final(make: Make, models: Models, message: str) -> None:
    """No plainer form would help, and its answer would hide the cause."""
    models.faults = [world.fault(400, message)]
    assert message in str(await failure(make(), JUDGING))
    assert len(models.asked) == 1


async def test_a_real_mistake_is_not_hidden_by_falling_back(make: Make, models: Models) -> None:
    """Where the plainest form is refused too, its error is shown, and the forms are not given up."""
    models.always = world.fault(400, "no schema, nor anything else")
    async with closing(make()) as llm:
        with pytest.raises(LLMError, match=r"status 400: no schema, nor anything else"):
            await llm.complete(JUDGING)
        models.always, models.asked = None, []
        await llm.complete(JUDGING)
    assert [asked.mode for asked in models.asked] == ["json_schema"]


async def test_a_plain_question_is_not_asked_again(make: Make, models: Models) -> None:
    """Without a schema there is no plainer form to try."""
    models.always = world.fault(400, "too long")
    assert "status 400: too long" in str(await failure(make()))
    assert len(models.asked) == 1


async def test_a_refused_key_says_what_to_do(make: Make, models: Models) -> None:
    """The error names provider, host, options and variables, never the key."""
    error = await failure(make(key="wrong-key-123"))
    assert isinstance(error, LLMAccessError)
    assert "127.0.0.1:" in str(error)
    assert "refused the key (401): Invalid key provided; set LLM_API_KEY or " in str(error)
    models.always = world.fault(403, f"key {models.key} may not " + "x" * 500)
    error = await failure(make(), JUDGING)
    assert isinstance(error, LLMAccessError)
    assert "key *** may not" in str(error)
    assert models.key not in str(error)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (world.SERVER_ERROR, "answered with status 500: The server fell over"),
        (world.RATE_LIMITED, "limits the rate of calls (429): Too many requests; lower parallel"),
        (world.NO_QUOTA, "has no quota left for this key (429)"),
        (world.GARBAGE, "cannot be read (not JSON): an HTML page titled 'Wrong door'"),
        (world.EMPTY, "cannot be read (not JSON): an empty body"),
        (Fault(200, "[]"), "gave an answer that is not a JSON object"),
        (Fault(200, '{"error": {"message": "upstream down"}}'), "upstream down"),
        (
            Fault(302, headers={"Location": "http://127.0.0.1:9/?k=1"}),
            "redirects to 127.0.0.1:9 (302), which is",
        ),
        (
            Fault(308, headers={"Location": "/v2"}),
            "redirects to another path on the same host (308), which is",
        ),
        (Fault(304), "answered with status 304: an empty body"),
        (Fault(400, "x", content_type="text/plain; charset=hex"), "answered with status 400: x"),
        (Fault(429, "x", {"Retry-After": "1 Jan 99999999999999999999 0:0:0 GMT"}), "limits the rate"),
        (Fault(200, BOMB, {"Content-Encoding": "gzip"}), "answered with more than 16 MB"),
        (Fault(500, BOMB, {"Content-Encoding": "gzip"}), "answered with more than 16 MB"),
        (Fault(502, "<html><title>Bad gateway</title>", content_type="text/html"), "titled 'Bad gateway'"),
    ],
)
async def test_failures_are_told_in_a_sentence(
    make: Make, models: Models, fault: Fault, message: str
) -> None:
    """Provider and host, what happened, and what to do where something can be done."""
    models.always = fault
    error = str(await failure(make()))
    assert message in error
    assert error.startswith(("OpenAI at 127.0.0.1:", "Anthropic at 127.0.0.1:"))


@pytest.mark.parametrize(("kind", "variable"), [(OpenAILLM, "OPENAI"), (AnthropicLLM, "ANTHROPIC")])
async def test_a_redirect_names_the_variable_to_set(models: Models, kind: type[LLM], variable: str) -> None:
    """The address of a model comes from its SDK's own variable."""
    models.always = Fault(301, headers={"Location": "https://other.example/v1"})
    url = models.openai_url if kind is OpenAILLM else models.url
    error = str(await failure(kind("m", models.key, url)))
    assert error.endswith(
        f"redirects to https://other.example (301), which is not followed: "
        f"set {variable}_BASE_URL to the final address"
    )


UNUSABLE = [
    world.GARBAGE,
    world.EMPTY,
    Fault(200, "[]"),
    Fault(200, "{}"),
    Fault(200, '{"error": "busy"}'),
    Fault(200, BOMB, {"Content-Encoding": "gzip"}),
]


@pytest.mark.parametrize("fault", UNUSABLE)
async def test_useless_answer_differs_from_no_answer(make: Make, models: Models, fault: Fault) -> None:
    """A model that answered may be asked once more; one that could not be reached was asked often enough."""
    models.always = fault
    assert isinstance(await failure(make()), LLMAnswerError)
    models.always = world.SERVER_ERROR
    assert not isinstance(await failure(make()), LLMAnswerError)


async def test_a_message_holds_no_half_of_a_secret(make: Make, models: Models) -> None:
    """The run's secrets go before a foreign text is cut."""
    secret = "long-secret-value-abcdef"
    text = "x" * 280 + secret
    refusal = {"choices": [{"message": {"refusal": "x" * 240 + secret}}]}
    for fault in (
        world.fault(400, text),
        Fault(200, text),
        Fault(200, json.dumps({"error": text})),
        Fault(200, json.dumps(refusal)),
    ):
        models.always = fault
        error = str(await failure(make(redactor=Redactor(values=[secret]))))
        assert "xxx" in error
        assert "long" not in error


async def test_what_is_broken_is_asked_three_times(make: Make, models: Models) -> None:
    """A question does no harm twice; what does not mend in two waits is told, and nothing is hidden."""
    waits: list[float] = []
    models.faults = [world.SERVER_ERROR, world.fault(408)]
    assert (await ask(make(limiter=world.limiter(waits)))).text == '{"verdict": "pass"}'
    assert waits == [0.25, 2.0]
    models.always = world.SERVER_ERROR
    assert "answered with status 500" in str(await failure(make(limiter=world.limiter())))
    assert len(models.asked) == 6


async def test_a_limited_rate_is_waited_for(make: Make, models: Models) -> None:
    """For as long as the server says in any of its ways, sixteen times, and it is told of afterwards."""
    waits: list[float] = []
    models.faults = [
        world.fault(429, retry_after="7"),
        world.fault(503, retry_after="7"),
        world.fault(529),
        Fault(429, "{}", {"retry-after-ms": "1500", "Retry-After": "2"}),
        Fault(429, "{}", {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6s"}),
        world.fault(429, retry_after="86400"),
        *[world.fault(429, retry_after="0.01")] * 2,
    ]
    llm = make(limiter=world.limiter(waits))
    assert (await ask(llm)).text == '{"verdict": "pass"}'
    expected = [7.35, 7.35, 1.0, 1.575, 6.3, 60, 4, 8]
    assert [wait for wait in waits if wait] == pytest.approx(expected)
    note = llm.limiter.note(llm.who)
    assert note is not None
    assert " at 127.0.0.1:" in note
    assert " limited the rate 8 times (429, 503, 529): calls waited " in note
    models.always = world.fault(429, retry_after="1")
    error = await failure(make(limiter=world.limiter()))
    assert "limits the rate of calls (429)" in str(error)
    assert len(models.asked) == 9 + 17


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (world.fault(500, x_should_retry="false"), 1),
        (world.fault(409, x_should_retry="true"), 3),
        (world.fault(429, x_should_retry="false"), 1),
        (world.fault(429, x_should_retry="perhaps"), 17),
        (world.fault(400), 1),
    ],
)
async def test_the_vendors_own_word_on_asking_again_counts(
    make: Make, models: Models, fault: Fault, times: int
) -> None:
    """Their servers know best, and their SDKs obey them too."""
    models.always = fault
    await failure(make(limiter=world.limiter()))
    assert len(models.asked) == times


QUOTAS = [
    Fault(402, ""),
    Fault(429, json.dumps({"error": {"message": "x", "code": "billing_hard_limit_reached"}})),
    Fault(403, json.dumps({"error": {"type": "billing_error", "message": "x"}})),
    Fault(400, json.dumps({"error": {"message": "Your credit balance is too low to access the API."}})),
    Fault(400, json.dumps({"error": {"message": "You have reached your specified API usage limits. You"}})),
]


@pytest.mark.parametrize("fault", [world.NO_QUOTA, *QUOTAS])
async def test_a_quota_that_is_used_up_is_not_waited_for(make: Make, models: Models, fault: Fault) -> None:
    """No wait brings it back: the run is to end, and the account's owner to be told."""
    models.always = fault
    error = await failure(make(limiter=world.limiter()))
    assert isinstance(error, LLMAccessError)
    assert f"has no quota left for this key ({fault.status})" in str(error)
    assert len(models.asked) == 1


async def test_a_request_that_is_more_than_the_limit_is_not_made_again(make: Make, models: Models) -> None:
    """No wait makes it smaller; and others would wait with it."""
    text = "Request too large for some-model on tokens per min (TPM): Limit 30000, Requested 45000."
    models.always = world.fault(429, text)
    error = await failure(make(limiter=world.limiter()))
    assert not isinstance(error, LLMAccessError)
    assert "Request too large" in str(error)
    assert len(models.asked) == 1


async def test_a_quoted_conversation_is_no_refusal(make: Make, models: Models) -> None:
    """Servers repeat what they cannot read: a customer who speaks of his balance ends no run."""
    models.always = world.fault(400, "cannot read: 'Your credit balance is too low, insufficient_quota'")
    assert not isinstance(await failure(make()), LLMAccessError)


async def test_a_success_that_was_the_last_for_now_holds_the_next_back(make: Make, models: Models) -> None:
    """So that no call has to be refused first."""
    waits: list[float] = []
    limits = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "45s"}
    body = {"choices": [{"message": {"content": "Hi"}}], "content": [{"type": "text", "text": "Hi"}]}
    models.always = Fault(200, json.dumps(body), limits)
    async with closing(make(limiter=world.limiter(waits))) as llm:
        await llm.complete(PLAIN)
        assert waits == []
        await llm.complete(PLAIN)
        assert llm.limiter.note(llm.who) is None
    assert waits == [45.0]


async def test_long_waits_named_in_a_successful_answer_are_ignored(make: Make, models: Models) -> None:
    """Some servers tell with every answer that nothing is left. One that means it has to refuse a call."""
    waits: list[float] = []
    limits = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "87600h"}
    body = {"choices": [{"message": {"content": "Hi"}}], "content": [{"type": "text", "text": "Hi"}]}
    models.always = Fault(200, json.dumps(body), limits)
    async with closing(make(limiter=world.limiter(waits))) as llm:
        for _ in range(3):
            await llm.complete(PLAIN)
    assert waits == []


async def test_a_good_key_is_checked_by_a_list(make: Make, models: Models) -> None:
    """Once, without asking a model anything."""
    async with closing(make()) as llm:
        await llm.check()
    assert (models.listed, models.asked) == (1, [])


@pytest.mark.parametrize("listing", [None, *QUOTAS[:2]])
async def test_a_key_that_will_not_do_is_found_for_nothing(
    make: Make, models: Models, listing: Fault | None
) -> None:
    """A refused one, and one without quota; the message is the same as in mid-run."""
    models.listing = listing
    async with closing(make(**({} if listing else {"key": "wrong-key-123"}))) as llm:
        with pytest.raises(LLMAccessError, match=r"has no quota left|refused the key \(401\): Invalid key"):
            await llm.check()
    assert models.asked == []


@pytest.mark.parametrize(
    "listing",
    [
        world.fault(401, "You have insufficient permissions for this operation. Missing scopes: model.read."),
        world.fault(401, "This path is closed to everybody."),
        world.fault(403, "not you"),
        world.fault(404),
        world.fault(405),
        world.fault(501),
        world.SERVER_ERROR,
        world.RATE_LIMITED,
        world.GARBAGE,
        Fault(302, headers={"Location": "http://127.0.0.1:9/"}),
        Fault(200, BOMB, {"Content-Encoding": "gzip"}),
    ],
)
async def test_any_other_answer_says_nothing_of_the_key(make: Make, models: Models, listing: Fault) -> None:
    """Keys may be good for models, and not for their list; and not every server has one."""
    models.listing = listing
    async with closing(make()) as llm:
        await llm.check()
        assert (await llm.complete(PLAIN)).text == '{"verdict": "pass"}'


async def test_nobody_there_says_nothing_of_the_key(make: Make) -> None:
    """The run will tell. aiohttp may ask a second time for the list, which costs nothing."""
    async with world.raw_server() as (url, heard), closing(type(make())("m", "some-key", url)) as llm:
        await llm.check()
    async with closing(type(make())("m", "some-key", "http://127.0.0.1:1")) as llm:
        await llm.check()
    assert 1 <= len(heard) <= 2


@pytest.mark.parametrize(("kind", "name"), [(OpenAILLM, "OpenAI"), (AnthropicLLM, "Anthropic")])
async def test_a_server_that_is_not_there(kind: type[LLM], name: str) -> None:
    """The error says that it could not be reached."""
    llm = kind("m", "key", "http://127.0.0.1:1", limiter=world.limiter(budget=world.NO_RETRIES))
    assert f"{name} at 127.0.0.1:1 could not be reached" in str(await failure(llm))


async def test_a_connection_that_breaks(make: Make, models: Models) -> None:
    """The server was there: that is said otherwise than that it could not be reached."""
    async with world.raw_server() as (url, heard):
        error = str(
            await failure(type(make())("m", "some-key", url, limiter=world.limiter(budget=world.NO_RETRIES)))
        )
    assert f" at {url.removeprefix('http://')} broke: Server disconnected" in error
    models.always = Fault(200, b"\x1f\x8b garbage", {"Content-Encoding": "gzip"})
    assert " broke: Error -3 while decompressing" in str(await failure(make()))
    assert len(heard) == 1


async def test_an_answer_that_does_not_come_in_time(make: Make, models: Models) -> None:
    """The error says how long it was waited for."""
    late = asyncio.Event()
    loop = asyncio.get_running_loop()
    models.answer = lambda asked: asyncio.run_coroutine_threadsafe(late.wait(), loop).result(5) and "late"
    try:
        assert "did not answer within 0.05 s" in str(await failure(make(timeout=0.05)))
    finally:
        late.set()


async def test_the_time_is_for_a_whole_attempt(make: Make, models: Models) -> None:
    """A server that drips is as late as a silent one, and the error counts the attempts."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(500):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        dried.set()

    asked: list[bytes] = []
    dried = asyncio.Event()
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        llm = type(make())(
            "m",
            "some-key",
            f"http://{host}:{port}",
            limiter=world.limiter(budget=world.NO_RETRIES),
            timeout=0.05,
        )
        assert str(await failure(llm)).endswith("did not answer within 0.05 s")
        await dried.wait()
    assert len(asked) == 1


async def test_a_late_answer_counts_its_attempts(make: Make, models: Models) -> None:
    """Whoever waited three times as long as the timeout reads why."""
    late = threading.Event()
    models.answer = lambda asked: str(late.wait(5))
    try:
        error = str(await failure(make(timeout=0.05, limiter=world.limiter())))
    finally:
        late.set()
    assert error.endswith("did not answer within 0.05 s at the last of 3 attempts")
    assert len(models.asked) == 3


@settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(world.odd_responses())
def test_any_answer_is_read_or_an_error(make: Make, answer: bytes) -> None:
    """Whatever a server says in its status and headers is a completion or an `LLMError`."""
    kind = type(make())

    async def ask_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 2) as (url, _):
            with suppress(LLMError):
                await ask(kind("m", "some-key", url, limiter=world.limiter(budget=world.NO_RETRIES)), JUDGING)

    asyncio.run(ask_once())


@pytest.mark.parametrize("cookie", [b"session=1", b"session=\xe9; Path=/"])
async def test_cookies_are_not_kept(make: Make, cookie: bytes) -> None:
    """One beyond ASCII would even break the next request."""
    answer = b"HTTP/1.1 400 X\r\nSet-Cookie: " + cookie + b"\r\nContent-Length: 2\r\n\r\n{}"
    limiter = world.limiter(budget=world.NO_RETRIES)
    async with (
        world.raw_server(answer, answer, world.HANG_UP, world.HANG_UP) as (url, received),
        closing(type(make())("m", "some-key", url, limiter=limiter)) as llm,
    ):
        for _ in range(2):
            with pytest.raises(LLMError):
                await llm.complete(PLAIN)
    assert len(received) == 2
    assert not any(b"\r\ncookie:" in request.lower() for request in received)


async def test_a_key_goes_to_no_other_host(make: Make, models: Models) -> None:
    """Not where a server redirects to: the error names it, and nothing is sent there."""
    with world.llm() as other:
        models.always = Fault(307, headers={"Location": other.url})
        assert "(307), which is not followed" in str(await failure(make()))
    assert other.asked == []


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets a proxy, with user and password, for all addresses."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda url: monkeypatch.setenv("ALL_PROXY", url.replace("//", "//us%C3%A9r:p%40ss@"))


PASSWORD = b"Proxy-Authorization: Basic " + base64.b64encode("us\xe9r:p@ss".encode()) + b"\r\n"


async def test_a_proxy_gets_its_password(make: Make, proxied: Callable[[str], None]) -> None:
    """With the request itself, if the model's address has no TLS."""
    async with world.raw_server(world.http_response("{}", "418 No")) as (proxy, received):
        proxied(proxy)
        llm = type(make())(
            "m", "some-key", "http://model.example/v1", limiter=world.limiter(budget=world.NO_RETRIES)
        )
        assert "at model.example answered with status 418" in str(await failure(llm))
    assert received[0].startswith(b"POST http://model.example/v1/")
    assert PASSWORD in received[0].replace(b"proxy-authorization", b"Proxy-Authorization")


async def test_a_proxy_is_asked_for_a_tunnel(make: Make, proxied: Callable[[str], None]) -> None:
    """It gets its password and the host, but neither path nor key."""
    async with world.raw_server(world.http_response("", "407 Proxy Authentication Required")) as (
        proxy,
        received,
    ):
        proxied(proxy)
        llm = type(make())(
            "m", "some-key", "https://model.example/v1", limiter=world.limiter(budget=world.NO_RETRIES)
        )
        error = str(await failure(llm))
    assert error.endswith("at model.example could not be reached: 407 Proxy Authentication Required")
    assert received[0].startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")
    assert PASSWORD in received[0].replace(b"proxy-authorization", b"Proxy-Authorization")
    assert b"some-key" not in received[0]


async def test_a_truncated_answer_is_none(make: Make, models: Models) -> None:
    """Half an answer is not judged by."""
    models.truncates = True
    error = await failure(make(), JUDGING)
    assert "cut off the answer" in str(error)
    assert isinstance(error, LLMAnswerError)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("<think>I am to play a user.</think>\n\nHello", "Hello"),
        ("\n<think>\n</think>Hello <think>aloud</think>", "Hello <think>aloud</think>"),
        ("I <think> so", "I <think> so"),
        (" Hello", " Hello"),
    ],
)
async def test_what_a_model_thought_is_not_said(models: Models, content: str, value: str) -> None:
    """Some servers leave a model's thinking at the head of its answer; the agent must not hear it."""
    models.answer = lambda asked: content
    assert (await ask(OpenAILLM("m", models.key, models.openai_url))).text == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<think>I am to", "cut off the answer while the model was thinking"),
        ("<think>x</think>\n", "empty answer"),
    ],
)
async def test_a_thought_alone_is_no_answer(models: Models, content: str, message: str) -> None:
    """It is unusable, never said."""
    models.answer = lambda asked: content
    error = await failure(OpenAILLM("m", models.key, models.openai_url))
    assert message in str(error)
    assert isinstance(error, LLMAnswerError)


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_answer_is_none(make: Make, models: Models, text: str) -> None:
    """Blank is no answer."""
    models.answer = lambda asked: text
    assert "gave an empty answer" in str(await failure(make()))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"choices": [{"message": {"content": None, "refusal": "I cannot."}}]},
            "the model refuses: I cannot.",
        ),
        ({"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}, "content filter"),
        ({"choices": []}, "without a message"),
        ({"choices": [{"message": None}]}, "without a message"),
        ({"choices": [{"message": {"content": None}}]}, "empty answer"),
    ],
)
async def test_openai_answers_that_are_none(models: Models, answer: Any, message: str) -> None:
    """Refusals, filters, and shapes without a message."""
    models.always = Fault(200, json.dumps(answer))
    assert message in str(await failure(OpenAILLM("m", models.key, models.openai_url)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"content": [], "stop_reason": "refusal"}, "the model refuses"),
        (
            {"content": [{"type": "text", "text": "x"}], "stop_reason": "model_context_window_exceeded"},
            "too long",
        ),
        ({"content": None}, "without content"),
        ({"content": [{"type": "thinking", "thinking": "hm"}, None]}, "empty answer"),
    ],
)
async def test_anthropic_answers_that_are_none(models: Models, answer: Any, message: str) -> None:
    """Refusals, limits, and thoughts without an answer."""
    models.always = Fault(200, json.dumps(answer))
    assert message in str(await failure(AnthropicLLM("m", models.key, models.url)))


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "x", "completion_tokens": -1}, [], {"prompt_tokens": 10**19}]
)
async def test_a_server_may_tell_no_tokens(models: Models, usage: Any) -> None:
    """Tokens that are not told count as none; parts of a text are joined."""
    content = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}, {"type": "other"}]
    body = {"choices": [{"message": {"content": content}}], "usage": usage}
    models.always = Fault(200, json.dumps(body))
    assert await ask(OpenAILLM("m", models.key, models.openai_url)) == Completion("Hello")


async def test_unencodable_characters_are_replaced(make: Make, models: Models) -> None:
    """A lone surrogate in a conversation breaks neither the question nor the answer."""
    models.answer = lambda asked: f"{asked.text} \ud800"
    answer = await ask(make(), Prompt("s\ud800", "t\udfff"))
    assert answer.text == "t\ufffd \ufffd"


async def test_calls_at_the_same_time_each_get_their_own_answer(make: Make, models: Models) -> None:
    """Over one client, and connections that later calls take over."""
    models.answer = lambda asked: asked.text
    async with closing(make()) as llm:
        for _ in range(3):
            answers = await asyncio.gather(*(llm.complete(Prompt("", f"n{n}")) for n in range(8)))
            assert [answer.text for answer in answers] == [f"n{n}" for n in range(8)]


async def test_calls_under_way_are_bounded(make: Make, models: Models) -> None:
    """However many are asked for at once: each takes a connection, and a process may open only so many."""
    lock, under_way, most = threading.Lock(), 0, 0

    def answer(asked: ModelRequest) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return asked.text

    models.answer = answer
    async with closing(make(limiter=world.limiter(most=3))) as llm:
        answers = await asyncio.gather(*(llm.complete(Prompt("", f"n{n}")) for n in range(12)))
    assert [answer.text for answer in answers] == [f"n{n}" for n in range(12)]
    assert 1 < most <= 3


def test_a_model_serves_one_event_loop_after_the_other(make: Make, models: Models) -> None:
    """A library's user may call `asyncio.run` twice, with calls waiting for each other in both."""
    llm = make(limiter=world.limiter(most=1))

    async def ask_some() -> list[Completion]:
        async with closing(llm):
            return await asyncio.gather(*(llm.complete(PLAIN) for _ in range(3)))

    assert [len(asyncio.run(ask_some())) for _ in range(2)] == [3, 3]


@pytest.mark.parametrize("key", ["", "  ", "clé", "a\nb"])
def test_a_key_that_cannot_be_sent(make: Make, key: str) -> None:
    """A blank key or one with foreign characters is found before the run; its value is not shown."""
    with pytest.raises(UsageError, match=r"key for (OpenAI|Anthropic)") as caught:
        make(key=key)
    assert "clé" not in str(caught.value)


@pytest.mark.parametrize("url", ["api.example.com/v1", "http://\x7f.example", "ftp://example.com"])
def test_an_address_that_is_none(url: str) -> None:
    """A base URL that is no http(s) address is the user's mistake."""
    with pytest.raises(UsageError, match=r"base URL"):
        OpenAILLM("m", "k", url)


def test_default_models_are_known_and_not_on_their_way_out() -> None:
    """The defaults stand in the SDKs' own lists, and not in the list of models that will be switched off."""
    from anthropic.resources.messages.messages import DEPRECATED_MODELS  # noqa: PLC0415  # takes seconds, for one test
    from anthropic.types.model import Model  # noqa: PLC0415  # takes seconds, for one test
    from openai.types.shared.chat_model import ChatModel  # noqa: PLC0415  # takes seconds, for one test

    anthropic, openai = ({row.judge, row.user} for row in (ANTHROPIC, OPENAI))
    assert openai <= set(get_args(ChatModel))
    assert anthropic <= set(get_args(get_args(Model)[0]))
    assert not anthropic & DEPRECATED_MODELS.keys()


def run_python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, **env},
    )  # fmt: skip


async def test_an_import_that_nobody_waits_for_is_left(make: Make) -> None:
    """Whoever closes the event loop next would be told of a task that is pending."""
    llm, others = make(), asyncio.all_tasks()
    asking = asyncio.create_task(llm.complete(PLAIN))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await llm.aclose()
    assert asyncio.all_tasks() == others


@pytest.mark.slow
def test_an_sdk_is_imported_only_for_a_call() -> None:
    """A model costs nothing until it is asked, and then the event loop goes on meanwhile."""
    run = run_python(
        "import asyncio, sys\n"
        "from ci_evals.adapters.models import openai_llm, anthropic_llm\n"
        "llm = openai_llm.OpenAILLM('m', 'k', 'http://127.0.0.1:1')\n"
        "anthropic_llm.AnthropicLLM('m', 'k')\n"
        "assert not {'openai', 'anthropic', 'aiohttp'} & sys.modules.keys()\n"
        "async def main():\n"
        "    checking, turns = asyncio.create_task(llm.check()), 0\n"
        "    while not checking.done():\n"
        "        await asyncio.sleep(0)\n"
        "        turns += 1\n"
        "    await llm.aclose()\n"
        "    assert 'openai' in sys.modules\n"
        "    assert turns > 5\n"
        "asyncio.run(main())\n"
        "assert 'anthropic' not in sys.modules\n"
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("kind", "variable", "value", "base_url"),
    [
        (OpenAILLM, "OPENAI_BASE_URL", None, None),
        (OpenAILLM, "OPENAI_BASE_URL", "https://gateway.example/v1/", None),
        (OpenAILLM, "OPENAI_BASE_URL", "https://gateway.example/v1", "https://other.example/v1"),
        (AnthropicLLM, "ANTHROPIC_BASE_URL", None, None),
        (AnthropicLLM, "ANTHROPIC_BASE_URL", "https://gateway.example/api", None),
        (AzureOpenAILLM, "AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/", None),
        (AzureOpenAILLM, "AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/some/gateway", None),
    ],
)
async def test_the_address_is_the_one_that_the_sdk_would_take(
    monkeypatch: pytest.MonkeyPatch, kind: type[LLM], variable: str, value: str | None, base_url: str | None
) -> None:
    """It is looked at before the run, and the SDK is not imported for that."""
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.delenv(variable, raising=False)
    if value:
        monkeypatch.setenv(variable, value)
    vendor = kind.vendor
    client = getattr(import_module(vendor.module), vendor.client)(api_key="key", base_url=base_url)
    assert str(client.base_url).rstrip("/") == vendor.url(base_url, os.environ).rstrip("/")
    await client.close()


@pytest.mark.slow
def test_sdk_variables_are_honoured_and_their_warnings_kept_off_the_console(models: Models) -> None:
    """Without a base URL the SDK's own variable counts, and an ageing model prints no warning of the SDK."""
    code = (
        "import asyncio, os\n"
        "from ci_evals.adapters.models.{0}_llm import {1} as LLM\n"
        "from ci_evals.ports import Prompt\n"
        "async def main():\n"
        "    llm = LLM('{2}', '{3}', environ=os.environ)\n"
        "    print((await llm.complete(Prompt('', 'Hi'))).text)\n"
        "    await llm.aclose()\n"
        "asyncio.run(main())\n"
    )
    for provider, name, model in [
        ("openai", "OpenAILLM", "gpt-6-luna"),
        ("anthropic", "AnthropicLLM", "claude-3-5-haiku-latest"),
    ]:
        run = run_python(code.format(provider, name, model, models.key), **models.env)
        assert (run.stdout, run.stderr) == ('{"verdict": "pass"}\n', "")


@pytest.mark.parametrize("key", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize(
    "value", [None, -21, 0, 21.0, 1e15, "21", True, [21], {"value": 21}, 10**9 + 1], ids=repr
)
async def test_a_count_that_cannot_be_true_is_unknown(models, key, value):
    """And never nothing: whoever watches the cost has to know that it is not known."""
    models.usage = lambda _, counts: counts | {key: value}
    answer = await ask(OpenAILLM("m", models.key, models.openai_url))
    known = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    assert known == {"prompt_tokens": 21, "completion_tokens": 5} | {key: None}


@pytest.mark.parametrize(
    ("cached", "read"), [(0, 21), (21, 21), (None, 21), (22, None), (-1, None), ("3", None)]
)
async def test_more_from_the_cache_than_was_read_cannot_be_true(models, cached, read):
    """Then nobody knows what was read."""
    models.usage = lambda _, counts: counts | {"prompt_tokens_details": {"cached_tokens": cached}}
    assert (await ask(OpenAILLM("m", models.key, models.openai_url))).input_tokens == read
