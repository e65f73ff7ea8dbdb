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
from each_row import each_row
from hypothesis import HealthCheck, given, settings
from property_examples import CLOCKS, examples
from world import Fault, ModelRequest, Models

from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import AzureOpenAILLM, OpenAILLM
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.providers import ANTHROPIC, OPENAI
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

SCHEMA = {
    "type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"],
    "additionalProperties": False,
}  # fmt: skip
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
    kind = {"openai": OpenAILLM, "anthropic": AnthropicLLM}[request.param]
    base_url = models.openai_url if kind is OpenAILLM else models.url

    def make(url: str = base_url, *, key: str = models.key, timeout: float = 300, **options: Any) -> LLM:
        options = {"limiter": world.limiter(budget=world.NO_RETRIES)} | options
        return kind("some-model", key, url, timeout=timeout, **options)

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


async def test_prompt_is_sent_as_utf_8_with_its_schema_and_without_temperature(make, models):
    models.answer = lambda asked: "I want a refund."
    assert await ask(make()) == Completion("I want a refund.", input_tokens=21, output_tokens=5)
    (asked,) = models.asked
    assert (asked.model, asked.mode) == ("some-model", "text")
    assert (asked.system, asked.text) == ("You are a customer.", "What do you say?")
    unwanted = {"temperature", "response_format", "output_config", "max_completion_tokens"}
    assert not unwanted & asked.body.keys()
    models.answer, models.asked = (lambda asked: '{"verdict": "pass"}'), []
    assert (await ask(make(), JUDGING)).text == '{"verdict": "pass"}'
    (asked,) = models.asked
    assert asked.text == "Did it help?"
    if asked.provider == "openai":
        expected = {"name": "verdict", "schema": SCHEMA, "strict": True}
        assert asked.body["response_format"] == {"type": "json_schema", "json_schema": expected}
    else:
        assert asked.body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    models.answer = lambda asked: f"{asked.text} \ud800"
    assert (await ask(make(), Prompt("s\ud800", "t\udfff"))).text == "t\ufffd \ufffd"


async def test_refused_response_formats_fall_back_and_are_remembered(make, models):
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


LLAMA_CPP = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' "
    "or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]"
)


@each_row(("status", "message", "remembered"), [
    *((status, "scripted fault", False) for status in (404, 422, 501)),
    (500, LLAMA_CPP, True),
    (500, "Failed to parse grammar", True),
    (502, "guided_json is not enabled", True),
    (503, "structured output backend is not installed", True),
    (405, "JSON mode is not supported", True),
    (415, "no such output_config", True),
    (400, "Unknown parameter: 'response_format'", True),
    (400, "output_config: Extra inputs are not permitted", True),
    (400, "This model does not support Structured Outputs", True),
    (400, "Invalid schema for 'verdict'", True),
    (400, "The model `schema-9` does not exist for json_schema", True),
    (400, "bad request", False),
    (400, "could not parse the JSON body", False),
])  # fmt: skip
async def test_refused_schema_format_is_dropped_for_good_only_if_the_error_names_it(
    make, models, status, message, remembered
):
    """Compatible servers differ in how they say that they do not know a form; `llama_cpp.server` answers 500.

    One odd refusal weakens the judge for that question, not for the rest of the run.
    """
    models.faults, models.asked = [world.fault(status, message)], []
    waits: list[float] = []
    limiter = world.limiter(waits, None if remembered else world.NO_RETRIES)
    async with closing(make(limiter=limiter)) as llm:
        assert (await llm.complete(JUDGING)).text == '{"verdict": "pass"}'
        await llm.complete(JUDGING)
    assert waits == []
    assert [asked.mode == "json_schema" for asked in models.asked] == [True, False, not remembered]


async def test_response_format_is_kept_after_server_access_and_rate_errors(make, models):
    for status in (500, 502, 503):
        models.faults, models.asked = [world.fault(status, "The server fell over")], []
        await ask(make(limiter=world.limiter()), JUDGING)
        assert [asked.mode for asked in models.asked] == ["json_schema"] * 2
    for status in (401, 429):
        models.always, models.asked = world.fault(status, "no structured output for you"), []
        await failure(make(), JUDGING)
        assert {asked.mode for asked in models.asked} == {"json_schema"}


@each_row("message", [
    "The model `gpt-9` does not exist or you do not have access to it",
    "model 'llama' not found, try pulling it first",
    "model: claude-9",
    "This model's maximum context length is 8192 tokens",
    "prompt is too long: 210000 tokens > 200000 maximum",
])  # fmt: skip
async def test_bad_request_unrelated_to_response_format_is_not_retried(make, models, message):
    """No plainer form would help, and its answer would hide the cause; a prompt without schema has none."""
    models.always, models.asked = world.fault(400, message), []
    assert message in str(await failure(make(), JUDGING))
    assert f"status 400: {message}" in str(await failure(make()))
    assert len(models.asked) == 2


async def test_error_of_last_fallback_format_is_reported_and_no_format_is_dropped(make, models):
    models.always = world.fault(400, "no schema, nor anything else")
    async with closing(make()) as llm:
        with pytest.raises(LLMError, match=r"status 400: no schema, nor anything else"):
            await llm.complete(JUDGING)
        models.always, models.asked = None, []
        await llm.complete(JUDGING)
    assert [asked.mode for asked in models.asked] == ["json_schema"]


async def test_rejected_key_error_names_host_and_variable_but_hides_key(make, models):
    error = await failure(make(key="wrong-key-123"))
    assert (isinstance(error, LLMAccessError), "127.0.0.1:" in str(error)) == (True, True)
    assert "refused the key (401): Invalid key provided; set LLM_API_KEY or " in str(error)
    models.always = world.fault(403, f"key {models.key} may not " + "x" * 500)
    error = await failure(make(), JUDGING)
    assert isinstance(error, LLMAccessError)
    assert "key *** may not" in str(error)
    assert models.key not in str(error)


def redirect(status: int, location: str) -> Fault:
    return Fault(status, headers={"Location": location})


PAGE = Fault(502, "<html><title>Bad gateway</title>", content_type="text/html")
YEARS = {"Retry-After": "1 Jan 99999999999999999999 0:0:0 GMT"}


@each_row(("fault", "message"), [
    (world.SERVER_ERROR, "answered with status 500: The server fell over"),
    (world.RATE_LIMITED, "limits the rate of calls (429): Too many requests; lower parallel"),
    (world.NO_QUOTA, "has no quota left for this key (429)"),
    (world.GARBAGE, "cannot be read (not JSON): an HTML page titled 'Wrong door'"),
    (world.EMPTY, "cannot be read (not JSON): an empty body"),
    (Fault(200, "[]"), "gave an answer that is not a JSON object"),
    (Fault(200, '{"error": {"message": "upstream down"}}'), "upstream down"),
    (redirect(302, "http://127.0.0.1:9/?k=1"), "redirects to 127.0.0.1:9 (302), which is"),
    (redirect(308, "/v2"), "redirects to another path on the same host (308), which is"),
    (Fault(304), "answered with status 304: an empty body"),
    (Fault(400, "x", content_type="text/plain; charset=hex"), "answered with status 400: x"),
    (Fault(429, "x", YEARS), "limits the rate"),
    (Fault(200, BOMB, {"Content-Encoding": "gzip"}), "answered with more than 16 MB"),
    (Fault(500, BOMB, {"Content-Encoding": "gzip"}), "answered with more than 16 MB"),
    (PAGE, "titled 'Bad gateway'"),
])  # fmt: skip
async def test_failed_call_error_names_provider_host_and_cause(make, models, fault, message):
    models.always = fault
    error = str(await failure(make()))
    assert message in error
    assert error.startswith(("OpenAI at 127.0.0.1:", "Anthropic at 127.0.0.1:"))


async def test_redirect_is_not_followed_and_its_error_names_the_base_url_variable(make, models):
    models.always = redirect(301, "https://other.example/v1")
    error = str(await failure(make()))
    variable = f"{models.asked[0].provider.upper()}_BASE_URL"
    target = "redirects to https://other.example (301), which is not followed"
    assert error.endswith(f"{target}: set {variable} to the final address")
    with world.llm() as other:
        models.always = redirect(307, other.url)
        assert "(307), which is not followed" in str(await failure(make()))
    assert other.asked == []


UNUSABLE = [
    *(world.GARBAGE, world.EMPTY, Fault(200, "[]"), Fault(200, "{}"), Fault(200, '{"error": "busy"}')),
    Fault(200, BOMB, {"Content-Encoding": "gzip"}),
]


async def test_unusable_answer_raises_other_error_than_server_failure(make, models):
    """A model that answered may be asked once more; one that could not be reached was asked often enough."""
    for fault in UNUSABLE:
        models.always = fault
        assert isinstance(await failure(make()), LLMAnswerError)
    models.always = world.SERVER_ERROR
    assert not isinstance(await failure(make()), LLMAnswerError)
    models.always = None
    for text in ("", "  \n"):
        models.answer = lambda asked, text=text: text
        assert "gave an empty answer" in str(await failure(make()))
    models.truncates = True
    error = await failure(make(), JUDGING)
    assert ("cut off the answer" in str(error), isinstance(error, LLMAnswerError)) == (True, True)


async def test_secret_at_truncation_point_of_llm_error_is_fully_masked(make, models):
    secret = "long-secret-value-abcdef"
    text = "x" * 280 + secret
    refusal = json.dumps({"choices": [{"message": {"refusal": "x" * 240 + secret}}]})
    bodies = (text, json.dumps({"error": text}), refusal)
    for fault in (world.fault(400, text), *(Fault(200, body) for body in bodies)):
        models.always = fault
        error = str(await failure(make(redactor=Redactor(values=[secret]))))
        assert "xxx" in error
        assert "long" not in error


async def test_server_errors_are_retried_twice_unless_the_vendor_header_decides(make, models):
    waits: list[float] = []
    models.faults = [world.SERVER_ERROR, world.fault(408)]
    assert (await ask(make(limiter=world.limiter(waits)))).text == '{"verdict": "pass"}'
    assert waits == [0.25, 2.0]
    models.always = world.SERVER_ERROR
    assert "answered with status 500" in str(await failure(make(limiter=world.limiter())))
    assert len(models.asked) == 6
    for fault, times in [
        (world.fault(500, x_should_retry="false"), 1),
        (world.fault(409, x_should_retry="true"), 3),
        (world.fault(429, x_should_retry="false"), 1),
        (world.fault(429, x_should_retry="perhaps"), 17),
        (world.fault(400), 1),
    ]:
        models.always, models.asked = fault, []
        await failure(make(limiter=world.limiter()))
        assert len(models.asked) == times, fault


async def test_rate_limited_call_is_retried_up_to_16_times_after_requested_wait(make, models):
    waits: list[float] = []
    models.faults = [
        *(world.fault(429, retry_after="7"), world.fault(503, retry_after="7"), world.fault(529)),
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


QUOTAS = [
    Fault(402, ""),
    Fault(429, json.dumps({"error": {"message": "x", "code": "billing_hard_limit_reached"}})),
    Fault(403, json.dumps({"error": {"type": "billing_error", "message": "x"}})),
    Fault(400, json.dumps({"error": {"message": "Your credit balance is too low to access the API."}})),
    Fault(400, json.dumps({"error": {"message": "You have reached your specified API usage limits. You"}})),
]


@each_row("fault", [world.NO_QUOTA, *QUOTAS])
async def test_used_up_quota_is_an_access_error_without_retry(make, models, fault):
    """No wait brings it back: the run is to end, and the account's owner to be told."""
    models.always, models.asked = fault, []
    error = await failure(make(limiter=world.limiter()))
    assert isinstance(error, LLMAccessError)
    assert f"has no quota left for this key ({fault.status})" in str(error)
    assert len(models.asked) == 1


async def test_oversized_request_or_quoted_quota_text_is_not_an_access_error(make, models):
    text = "Request too large for some-model on tokens per min (TPM): Limit 30000, Requested 45000."
    models.always = world.fault(429, text)
    error = await failure(make(limiter=world.limiter()))
    assert (isinstance(error, LLMAccessError), "Request too large" in str(error)) == (False, True)
    assert len(models.asked) == 1
    # Servers repeat what they cannot read: a customer who speaks of his balance ends no run.
    models.always = world.fault(400, "cannot read: 'Your credit balance is too low, insufficient_quota'")
    assert not isinstance(await failure(make()), LLMAccessError)


@pytest.mark.parametrize(("unit", "reset", "waited"), [("requests", "45s", [45.0]), ("tokens", "87600h", [])])
async def test_exhausted_rate_limit_in_success_response_delays_next_call(make, models, unit, reset, waited):
    """Some servers tell with every answer that nothing is left. One that means it has to refuse a call."""
    waits: list[float] = []
    limits = {f"x-ratelimit-remaining-{unit}": "0", f"x-ratelimit-reset-{unit}": reset}
    body = {"choices": [{"message": {"content": "Hi"}}], "content": [{"type": "text", "text": "Hi"}]}
    models.always = Fault(200, json.dumps(body), limits)
    async with closing(make(limiter=world.limiter(waits))) as llm:
        await llm.complete(PLAIN)
        assert waits == []
        await llm.complete(PLAIN)
        assert llm.limiter.note(llm.who) is None
    assert waits == waited


async def test_key_is_checked_by_listing_models_and_only_a_clear_refusal_is_an_error(make, models):
    """Keys may be good for models, and not for their list; and not every server has one."""
    async with closing(make()) as llm:
        await llm.check()
        assert models.listed == 1
        for listing in QUOTAS[:2]:
            models.listing = listing
            with pytest.raises(LLMAccessError, match="has no quota left"):
                await llm.check()
    models.listing = None
    async with closing(make(key="wrong-key-123")) as llm:
        with pytest.raises(LLMAccessError, match=r"refused the key \(401\): Invalid key"):
            await llm.check()
    assert models.asked == []
    scopes = "You have insufficient permissions for this operation. Missing scopes: model.read."
    for listing in [
        world.fault(401, scopes), world.fault(401, "This path is closed to everybody."),
        world.fault(403, "not you"), world.fault(404), world.fault(405), world.fault(501),
        world.SERVER_ERROR, world.RATE_LIMITED, world.GARBAGE, redirect(302, "http://127.0.0.1:9/"),
        Fault(200, BOMB, {"Content-Encoding": "gzip"}),
    ]:  # fmt: skip
        models.listing = listing
        async with closing(make()) as llm:
            await llm.check()
            assert (await llm.complete(PLAIN)).text == '{"verdict": "pass"}'
    async with world.raw_server() as (url, heard), closing(make(url, limiter=world.limiter())) as llm:
        await llm.check()
    async with closing(make("http://127.0.0.1:1")) as llm:
        await llm.check()
    assert 1 <= len(heard) <= 2


async def test_broken_connection_is_reported_unlike_an_unreachable_server(make, models):
    who = {OpenAILLM: "OpenAI", AnthropicLLM: "Anthropic"}[type(make())]
    assert f"{who} at 127.0.0.1:1 could not be reached" in str(await failure(make("http://127.0.0.1:1")))
    async with world.raw_server() as (url, heard):
        error = str(await failure(make(url)))
    assert f" at {url.removeprefix('http://')} broke: Server disconnected" in error
    models.always = Fault(200, b"\x1f\x8b garbage", {"Content-Encoding": "gzip"})
    assert " broke: Error -3 while decompressing" in str(await failure(make()))
    assert len(heard) == 1


async def test_timeout_covers_the_whole_answer_and_its_error_counts_attempts(make, models, dripping_server):
    """A server that drips is as late as a silent one. Whoever waited three times as long reads why.

    On a busy machine the time may be over before a request is out.
    """
    late = threading.Event()
    models.answer = lambda asked: str(late.wait(300))
    try:
        once = str(await failure(make(timeout=0.05)))
        thrice = str(await failure(make(timeout=0.05, limiter=world.limiter())))
    finally:
        late.set()
    assert once.endswith("did not answer within 0.05 s")
    assert thrice.endswith("did not answer within 0.05 s at the last of 3 attempts")
    assert len(models.asked) <= 4
    url, heard, finished = dripping_server
    assert str(await failure(make(url, timeout=0.05))).endswith("did not answer within 0.05 s")
    if heard:
        await finished.wait()
    assert len(heard) <= 1


@settings(
    max_examples=examples(50),
    suppress_health_check=[*CLOCKS, HealthCheck.function_scoped_fixture],
)
@given(world.odd_responses())
def test_any_response_gives_a_completion_or_an_llm_error(make, answer):
    async def ask_once() -> None:
        async with world.raw_server(*[answer, world.HANG_UP] * 2) as (url, _):
            with suppress(LLMError):
                await ask(make(url), JUDGING)

    asyncio.run(ask_once())


async def test_cookies_are_not_sent_back(make):
    """One beyond ASCII would even break the next request."""
    for cookie in (b"session=1", b"session=\xe9; Path=/"):
        answer = b"HTTP/1.1 400 X\r\nSet-Cookie: " + cookie + b"\r\nContent-Length: 2\r\n\r\n{}"
        answers = [answer, answer, world.HANG_UP, world.HANG_UP]
        async with world.raw_server(*answers) as (url, received), closing(make(url)) as llm:
            for _ in range(2):
                with pytest.raises(LLMError):
                    await llm.complete(PLAIN)
        assert len(received) == 2
        assert not any(b"\r\ncookie:" in request.lower() for request in received)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_proxy_gets_its_password_but_no_key_for_a_tls_host(make, monkeypatch, scheme):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    status = "407 Proxy Authentication Required" if scheme == "https" else "418 No"
    async with world.raw_server(world.http_response("{}", status)) as (proxy, received):
        monkeypatch.setenv("ALL_PROXY", proxy.replace("//", "//us%C3%A9r:p%40ss@"))
        error = str(await failure(make(f"{scheme}://model.example/v1", key="some-key")))
    password = b"Proxy-Authorization: Basic " + base64.b64encode("us\xe9r:p@ss".encode()) + b"\r\n"
    assert password in received[0].replace(b"proxy-authorization", b"Proxy-Authorization")
    if scheme == "https":
        assert error.endswith("at model.example could not be reached: 407 Proxy Authentication Required")
        assert received[0].startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")
        assert b"some-key" not in received[0]
    else:
        assert "at model.example answered with status 418" in error
        assert received[0].startswith(b"POST http://model.example/v1/")


async def test_leading_think_block_is_removed_from_the_answer(models):
    """Some servers leave a model's thinking at the head of its answer; the agent must not hear it."""
    for content, value in [
        ("<think>I am to play a user.</think>\n\nHello", "Hello"),
        ("\n<think>\n</think>Hello <think>aloud</think>", "Hello <think>aloud</think>"),
        *(("I <think> so", "I <think> so"), (" Hello", " Hello")),
    ]:
        models.answer = lambda asked, content=content: content
        assert (await ask(OpenAILLM("m", models.key, models.openai_url))).text == value
    cut_off = "cut off the answer while the model was thinking"
    for content, message in [("<think>I am to", cut_off), ("<think>x</think>\n", "empty answer")]:
        models.answer = lambda asked, content=content: content
        error = await failure(OpenAILLM("m", models.key, models.openai_url))
        assert (message in str(error), isinstance(error, LLMAnswerError)) == (True, True)


TOO_LONG = {"content": [{"type": "text", "text": "x"}], "stop_reason": "model_context_window_exceeded"}
FILTERED = {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}
REFUSAL = {"choices": [{"message": {"content": None, "refusal": "I cannot."}}]}


@each_row(("kind", "answer", "message"), [
    (OpenAILLM, REFUSAL, "the model refuses: I cannot."),
    (OpenAILLM, FILTERED, "content filter"),
    (OpenAILLM, {"choices": []}, "without a message"),
    (OpenAILLM, {"choices": [{"message": None}]}, "without a message"),
    (OpenAILLM, {"choices": [{"message": {"content": None}}]}, "empty answer"),
    (AnthropicLLM, {"content": [], "stop_reason": "refusal"}, "the model refuses"),
    (AnthropicLLM, TOO_LONG, "too long"),
    (AnthropicLLM, {"content": None}, "without content"),
    (AnthropicLLM, {"content": [{"type": "thinking", "thinking": "hm"}, None]}, "empty answer"),
])  # fmt: skip
async def test_answer_without_usable_text_is_reported(models, kind, answer, message):
    models.always = Fault(200, json.dumps(answer))
    url = models.openai_url if kind is OpenAILLM else models.url
    assert message in str(await failure(kind("m", models.key, url)))


@each_row("usage", [None, {}, {"prompt_tokens": "x", "completion_tokens": -1}, [], {"prompt_tokens": 10**19}])
async def test_missing_or_invalid_usage_leaves_tokens_unknown(models, usage):
    content = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}, {"type": "other"}]
    models.always = Fault(200, json.dumps({"choices": [{"message": {"content": content}}], "usage": usage}))
    assert await ask(OpenAILLM("m", models.key, models.openai_url)) == Completion("Hello")


async def test_concurrent_calls_get_their_own_answers_and_are_bounded_by_the_limiter(make, models):
    """Each takes a connection, and a process may open only so many."""
    lock, under_way = threading.Lock(), [0]

    def answer(asked: ModelRequest) -> str:
        for step, seconds in ((1, 0.01), (-1, 0)):
            with lock:
                under_way.append(under_way[-1] + step)
            time.sleep(seconds)
        return asked.text

    models.answer = answer
    async with closing(make(limiter=world.limiter(most=3))) as llm:
        answers = await asyncio.gather(*(llm.complete(Prompt("", f"n{n}")) for n in range(12)))
    assert [answer.text for answer in answers] == [f"n{n}" for n in range(12)]
    assert 1 < max(under_way) <= 3


def test_model_can_be_used_in_several_event_loops(make, models):
    """A library's user may call `asyncio.run` twice, with calls waiting for each other in both."""
    llm = make(limiter=world.limiter(most=1))

    async def ask_some() -> list[Completion]:
        async with closing(llm):
            return await asyncio.gather(*(llm.complete(PLAIN) for _ in range(3)))

    assert [len(asyncio.run(ask_some())) for _ in range(2)] == [3, 3]


def test_unsendable_key_or_base_url_is_rejected_without_showing_the_key(make):
    for key in ("", "  ", "clé", "a\nb"):
        with pytest.raises(UsageError, match=r"key for (OpenAI|Anthropic)") as caught:
            make(key=key)
        assert "clé" not in str(caught.value)
    for url in ("api.example.com/v1", "http://\x7f.example", "ftp://example.com"):
        with pytest.raises(UsageError, match=r"base URL"):
            OpenAILLM("m", "k", url)


def test_default_models_are_listed_and_not_deprecated_by_the_sdks():
    from anthropic.resources.messages.messages import DEPRECATED_MODELS  # noqa: PLC0415  # takes seconds, for one test
    from anthropic.types.model import Model  # noqa: PLC0415  # takes seconds, for one test
    from openai.types import ChatModel, EmbeddingModel  # noqa: PLC0415  # takes seconds, for one test

    anthropic, openai = ({row.judge, row.user} for row in (ANTHROPIC, OPENAI))
    assert openai <= set(get_args(ChatModel))
    assert OPENAI.embeddings in get_args(EmbeddingModel)
    assert anthropic <= set(get_args(get_args(Model)[0]))
    assert not anthropic & DEPRECATED_MODELS.keys()


SDKS = """
import asyncio, os, sys
from ci_evals.adapters.models import openai_llm, anthropic_llm
from ci_evals.ports import Prompt
unreachable = openai_llm.OpenAILLM('m', 'k', 'http://127.0.0.1:1')
anthropic_llm.AnthropicLLM('m', 'k')
assert not {'openai', 'anthropic', 'aiohttp'} & sys.modules.keys()

async def main():
    checking, turns = asyncio.create_task(unreachable.check()), 0
    while not checking.done():
        await asyncio.sleep(0)
        turns += 1
    await unreachable.aclose()
    assert 'openai' in sys.modules
    assert turns > 5
    assert 'anthropic' not in sys.modules
    openai = openai_llm.OpenAILLM('gpt-6-luna', sys.argv[1], environ=os.environ)
    anthropic = anthropic_llm.AnthropicLLM('claude-3-5-haiku-latest', sys.argv[1], environ=os.environ)
    for llm in (openai, anthropic):
        print((await llm.complete(Prompt('', 'Hi'))).text)
        await llm.aclose()

asyncio.run(main())
"""
"""A program of its own: SDKs are imported and warn once in a process."""


async def test_cancelled_sdk_import_leaves_no_pending_task(make):
    """Whoever closes the event loop next would be told of a task that is pending."""
    llm, others = make(), asyncio.all_tasks()
    asking = asyncio.create_task(llm.complete(PLAIN))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await llm.aclose()
    assert asyncio.all_tasks() == others


@pytest.mark.parametrize(("kind", "variable", "value", "base_url"), [
    (OpenAILLM, "OPENAI_BASE_URL", None, None),
    (OpenAILLM, "OPENAI_BASE_URL", "https://gateway.example/v1/", None),
    (OpenAILLM, "OPENAI_BASE_URL", "https://gateway.example/v1", "https://other.example/v1"),
    (AnthropicLLM, "ANTHROPIC_BASE_URL", None, None),
    (AnthropicLLM, "ANTHROPIC_BASE_URL", "https://gateway.example/api", None),
    (AzureOpenAILLM, "AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/", None),
    (AzureOpenAILLM, "AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/some/gateway", None),
])  # fmt: skip
async def test_computed_base_url_equals_that_of_vendor_sdk(monkeypatch, kind, variable, value, base_url):
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
def test_sdk_is_imported_at_first_call_without_blocking_and_obeys_base_url_variable(models):
    """Nor is its warning shown, as of a deprecated model."""
    run = subprocess.run(
        [sys.executable, "-W", "default", "-c", SDKS, models.key],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | models.env,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, '{"verdict": "pass"}\n' * 2, "")
    assert [asked.provider for asked in models.asked] == ["openai", "anthropic"]


@each_row("value", [None, -21, 0, 21.0, 1e15, "21", True, [21], {"value": 21}, 10**9 + 1])
async def test_impossible_token_count_is_treated_as_unknown(models, value):
    """And never nothing: whoever watches the cost has to know that it is not known."""
    for key in ("prompt_tokens", "completion_tokens"):
        models.usage = lambda _, counts, key=key: counts | {key: value}
        answer = await ask(OpenAILLM("m", models.key, models.openai_url))
        known = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
        assert known == {"prompt_tokens": 21, "completion_tokens": 5} | {key: None}


@each_row(("cached", "read"), [(0, 21), (21, 21), (None, 21), (22, None), (-1, None), ("3", None)])
async def test_more_cached_tokens_than_input_makes_the_input_unknown(models, cached, read):
    models.usage = lambda _, counts: counts | {"prompt_tokens_details": {"cached_tokens": cached}}
    assert (await ask(OpenAILLM("m", models.key, models.openai_url))).input_tokens == read
