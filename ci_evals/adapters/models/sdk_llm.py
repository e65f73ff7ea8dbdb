"""What the models behind a vendor's Python SDK have in common: clients, falling back, and errors in words.

Calls go through the SDK's documented low-level `post`: its headers and variables serve as they are, while the
typed methods would cost twice the processor time, warn on the console about ageing models, and stumble over
answers of compatible servers that differ in a field which is not read here. Its retries are off: of a server
that limits the rate all calls have to know (`transport.rate_limiter`).
"""

import asyncio
import json
import os
import re
import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.models.vendor import Mode, Vendor
from ci_evals.adapters.transport import connections, payload, rate_limits, retry
from ci_evals.adapters.transport.payload import AnswerTooLargeError
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, Paid, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import whole
from ci_evals.threads import in_thread

CHECK_SECONDS = 5.0
"""What asking whether a key is good may take."""

_HEAD_START = 0.05
"""Seconds for the first messages to go out."""
_JSON_ANSWER = "adapters/prompts/json_answer.md.j2"
_OF_A_MODEL = frozenset({"usage", "choices", "content"})
"""Keys of an answer that a model gave, and that is paid for, whatever use it is of."""
_MOST_NUMBERS = 1_000_000
"""Of an answer that is vectors: those of some hundred texts."""
_FORM_REFUSED = frozenset({400, 404, 422, 501})
"""Statuses that may be meant for the form without a word of it."""
_NEVER_OF_THE_FORM = frozenset({401, 402, 403, 408, 429, 529})
_OF_THE_FORM = re.compile(
    r"response_format|json_schema|json_object|json[ _]mode|output_config|schema|structured|grammar|gbnf"
    r"|guided[ _](json|decoding)",
    re.IGNORECASE,
)
_FORMS = frozenset({"response_format", "output_config"})
"""Keys of a request that ask for a form."""
_OF_SOMETHING_ELSE = re.compile(
    r"(model|deployment)\b.{0,200}\b(not (found|exist)|unavailable)|(unknown|invalid|no such) model"
    r"|model_not_found|\bmodel:|context[ _]?(length|window|size)|too long|too many tokens",
    re.IGNORECASE,
)


class SdkLLM(ABC):
    """A model behind a vendor's SDK. Implements the port `LLM`.

    A server that refuses a form of asking is asked in the next one: servers that are compatible with a
    provider often know only some of its forms. If the refusal names the form, it is not tried again for the
    rest of this object's life; any other refusal may be about that one question, and weakens no later one.
    """

    vendor: ClassVar[Vendor]

    def __init__(
        self,
        model: str,
        key: str | None,
        base_url: str | None = None,
        timeout: float = 120,
        *,
        token: str | None = None,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        """Opens nothing yet, and does not import the SDK, which takes a second or two.

        Args:
            model: Its name.
            key: The API key; without one `token` counts.
            base_url: Where the API is; without it the vendor's own variable says so, or the vendor is asked.
            timeout: Seconds that each attempt may take in all.
            token: A bearer token in place of the key, for vendors and gateways that give such.
            redactor: Knows the run's secrets, for what is told of errors; the key is added.
            limiter: For its calls; by default as many at once as open files allow.

        Raises:
            UsageError: the key or the address cannot be used.
        """
        self.model = model
        vendor = self.vendor
        self._key_hint = f"set LLM_API_KEY or {vendor.key} to a valid key (in a workflow the input llm-key)"
        if token and not key and vendor.bearer:
            self._key_hint = f"set {vendor.bearer} to a valid token"
        self._key = connections.key_value(key or token or "", vendor.name, self._key_hint)
        self._key_argument = vendor.bearer_argument if token and not key else "api_key"
        known = redactor or Redactor()
        self._redactor = Redactor(known.keys | {self._key}, known.values)
        self._timeout = timeout
        try:
            self._url = str(httpx2.URL(vendor.url(base_url, os.environ)))
        except httpx2.InvalidURL as error:
            raise UsageError(f"the base URL for {vendor.name} cannot be used: {error}") from None
        if not self._url.startswith(("http://", "https://")):
            raise UsageError(f"the base URL {self._url!r} for {vendor.name} is no http(s):// address")
        self._who = f"{vendor.name} at {connections.host_of(self._url)}"
        self._proxy = connections.proxy_for(self._url)
        self._key_held = False
        """Whether the key was accepted once: a 403 after that is about one prompt, not about the key."""
        self._module: ModuleType | None = None
        self._importing: asyncio.Future[ModuleType] | None = None
        self._client: Any = None
        """The SDK's, once one was needed."""
        self._limiter = limiter or RateLimiter(most=connections.fair_share())
        self._refused = 0
        """How many of the vendor's forms of asking the server has refused for good."""

    @property
    def address(self) -> str:
        """Where the API is."""
        return self._url

    @property
    def mode(self) -> str:
        """How the next question with a schema is asked: `json_schema`, `json_object` or `text`."""
        return self.vendor.modes[self._refused].value

    async def complete(self, prompt: Prompt) -> Completion:
        """Asks once, in the strictest form that the server has not refused for good."""
        prompt = replace(prompt, system=whole(prompt.system), text=whole(prompt.text))
        if prompt.schema is None:
            return self._completion(await self._post(prompt, Mode.TEXT))
        modes = self.vendor.modes
        refused = self._refused
        for place in range(self._refused, len(modes)):
            try:
                fitted = prompt if modes[place] is Mode.JSON_SCHEMA else with_schema(prompt)
                response = await self._post(fitted, modes[place])
            except _FormRefusedError as error:
                # If the plainest form is refused as well, the form was not the trouble: nothing is
                # remembered then, and the last error is the one to show.
                if place == len(modes) - 1:
                    raise error.failure from None
                if error.named and refused == place:
                    refused += 1
            else:
                self._refused = max(self._refused, refused)
                return self._completion(response)
        raise AssertionError("the last form returns or raises")

    async def check(self) -> None:
        """Asks which models there are, to learn for nothing whether the key is good.

        A server may refuse its list to every key: then one without a question tells whether it takes ours.

        Raises:
            LLMAccessError: it is not, or has no quota left. Any other answer, or none, says nothing.
        """
        refused = await self._refusal_of_key("get", self.vendor.models_path)
        if refused and refused.status_code == httpx2.codes.UNAUTHORIZED:
            refused = await self._refusal_of_key("post", self.vendor.path, body={"model": self.model})
        if refused:
            raise self._status_failure(refused)

    async def _refusal_of_key(self, method: str, path: str, **options: Any) -> httpx2.Response | None:
        """The answer to a request that costs nothing, if it shows that the key will not do."""
        sdk = await self._sdk()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await getattr(self._client_of(sdk), method)(path, cast_to=httpx2.Response, **options)
        except sdk.APIStatusError as error:
            found: httpx2.Response = error.response
            return found if rate_limits.refuses_key(found.status_code, found.content) else None
        except (TimeoutError, sdk.APIConnectionError, AnswerTooLargeError):
            pass
        return None

    def waits(self) -> tuple[str, Waiting | None]:
        """Who is asked, and how long it is waited for now."""
        return self._who, self._limiter.waiting()

    def note(self) -> str | None:
        """What a person should know of limits that the provider set to the rate; None if it set none."""
        return self._limiter.note(f"{self._who} ({self.model})")

    async def aclose(self) -> None:
        """Closes what is open. The object can be used again afterwards."""
        importing, self._importing = self._importing, None
        if importing and importing.get_loop() is asyncio.get_running_loop():
            importing.cancel()  # nobody waits for it any more
            await asyncio.gather(importing, return_exceptions=True)
        if self._client:
            client, self._client = self._client, None
            await client.close()

    @abstractmethod
    def _body(self, prompt: Prompt, mode: Mode) -> dict[str, Any]:
        """The body of a request that asks a prompt in one of the forms, but for the model's name."""

    @abstractmethod
    def _paid(self, usage: JsonValue) -> Paid:
        """The tokens that an answer took, out of its `usage`."""

    @abstractmethod
    def _read(self, answer: dict[str, JsonValue]) -> str:
        """What the model said in an answer.

        Raises:
            ValueError: there is nothing to go on, with a clause to go after "OpenAI at api.openai.com".
        """

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, JsonValue]:
        """The answer to a request for another thing than words, with the same clients, resends and errors."""
        try:
            return self._object(await self._send(path, body), _MOST_NUMBERS)
        except _RefusedError as error:
            raise error.failure from None

    async def _post(self, prompt: Prompt, mode: Mode) -> httpx2.Response:
        try:
            return await self._send(self.vendor.path, self._body(prompt, mode))
        except _RefusedError as error:
            if prompt.schema is not None:
                told = payload.error_detail(error.content, self._redactor)
                named = _names_form(error.status, told)
                if named or (error.status in _FORM_REFUSED and not _OF_SOMETHING_ELSE.search(told)):
                    raise _FormRefusedError(error.failure, named=named) from None
            raise error.failure from None

    async def _send(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        sdk = await self._sdk()
        return await self._limiter.send(lambda attempt: self._attempt(sdk, path, body, attempt))

    async def _attempt(self, sdk: Any, path: str, body: dict[str, Any], attempt: int) -> httpx2.Response:
        try:
            response: httpx2.Response = await self._client_of(sdk).post(
                path, cast_to=httpx2.Response, body={"model": self.model, **body}
            )
        except sdk.APIStatusError as error:
            raise self._refusal(error.response, wants_form=not _FORMS.isdisjoint(body)) from None
        except sdk.APITimeoutError:
            which = f" at the last of {attempt} attempts" if attempt > 1 else ""
            failure = LLMError(f"{self._who} did not answer within {self._timeout:g} s{which}")
            raise RetryableError(failure) from None
        except sdk.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, AnswerTooLargeError):  # one SDK takes every error for one of these
                raise LLMAnswerError(f"{self._who} {cause}") from None
            reason = payload.shorten(self._redactor.text(str(cause or error))) or type(cause).__name__
            if isinstance(cause, httpx2.ConnectError | httpx2.ProxyError):
                raise RetryableError(LLMError(f"{self._who} could not be reached: {reason}")) from error
            raise RetryableError(LLMError(f"the connection to {self._who} broke: {reason}")) from error
        except AnswerTooLargeError as error:
            raise LLMAnswerError(f"{self._who} {error}") from None
        self._key_held = True
        return response

    def _refusal(self, response: httpx2.Response, *, wants_form: bool) -> Exception:
        """Turn an error status into an error, retryable or final. A question asked twice does no harm.

        A form that the server refuses by name is not asked for again, whatever the status.
        """
        status, failure = response.status_code, self._status_failure(response)
        told = rate_limits.told_wait(response.headers, datetime.now(UTC))
        again = retry.may_resend(status, idempotent=True, wait_requested=told is not None)
        # Both vendors' SDKs obey this header of their servers.
        again = {"true": True, "false": False}.get(response.headers.get("x-should-retry", ""), again)
        again = again and not rate_limits.is_too_large(response.content)
        if (
            again
            and wants_form
            and _names_form(status, payload.error_detail(response.content, self._redactor))
        ):
            again = False
        refused = _RefusedError(failure, status, response.content)
        if not again or isinstance(failure, LLMAccessError):
            return refused
        given_up = LLMAccessError(f"{failure}; {retry.GAVE_UP}")
        return RetryableError(refused, status, told, final=_RefusedError(given_up, status, response.content))

    async def _sdk(self) -> Any:
        """The SDK's module, imported in a thread at the first call: what is under way meanwhile goes on."""
        if self._module is None:
            loop = asyncio.get_running_loop()
            if self._importing is None or self._importing.get_loop() is not loop:
                self._importing = loop.create_task(_imported(self.vendor.module))
            self._module = await asyncio.shield(self._importing)  # others wait for it too
        return self._module

    def _client_of(self, sdk: Any) -> Any:
        """One client for all calls."""
        if not self._client:
            self._client = getattr(sdk, self.vendor.client)(
                **{self._key_argument: self._key},
                base_url=self._url,
                max_retries=0,
                timeout=None,  # the HTTP client has one for the whole of an attempt
                http_client=connections.new_client(proxy=self._proxy, timeout=self._timeout),
            )
        return self._client

    def _completion(self, response: httpx2.Response) -> Completion:
        answer = self._object(response)
        paid = self._paid(answer.get("usage"))
        try:
            return Completion(self._read(answer), paid.input_tokens, paid.output_tokens)
        except ValueError as error:
            told = payload.shorten(self._redactor.text(str(error)))
            by_model = _OF_A_MODEL & answer.keys()
            raise LLMAnswerError(f"{self._who} {told}", paid if by_model else None) from None

    def _object(
        self, response: httpx2.Response, most_values: int = payload.MOST_VALUES
    ) -> dict[str, JsonValue]:
        try:
            answer = payload.parse(response.content, most_values)
        except ValueError as error:
            found = payload.excerpt(response.content, self._redactor)
            told = f"{self._who} gave an answer that cannot be read ({error}): {found}"
            raise LLMAnswerError(told) from None
        if not isinstance(answer, dict):
            raise LLMAnswerError(f"{self._who} gave an answer that is no JSON object")
        return answer

    def _status_failure(self, response: httpx2.Response) -> LLMError:
        status = response.status_code
        if target := connections.redirect_of(response):
            return LLMError(
                f"{self._who} redirects to {target} ({status}), which is not followed: "
                f"set {self.vendor.address} to the final address"
            )
        detail = payload.error_detail(response.content, self._redactor)
        if rate_limits.quota_used_up(status, response.content):
            return LLMAccessError(
                f"{self._who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        if status == 401 or (status == 403 and not self._key_held):
            return LLMAccessError(f"{self._who} refused the key ({status}): {detail}; {self._key_hint}")
        if status == 429:
            return LLMError(f"{self._who} limits the rate of calls (429): {detail}; lower --parallel")
        return LLMError(f"{self._who} answered with status {status}: {detail}")


async def _imported(module: str) -> ModuleType:
    """An SDK. While it is imported the loop gets its turn only now and then: first messages go out before."""
    if module not in sys.modules:
        await asyncio.sleep(_HEAD_START)
    return await in_thread(import_module, module)


def _names_form(status: int, told: str) -> bool:
    """Whether a refusal names the form of asking: some servers answer 500 to one that they do not know."""
    return status not in _NEVER_OF_THE_FORM and _OF_THE_FORM.search(told) is not None


class _RefusedError(Exception):
    """The server answered with an error status."""

    def __init__(self, failure: LLMError, status: int, content: bytes) -> None:
        self.failure = failure
        self.status = status
        self.content = content
        super().__init__(str(failure))


class _FormRefusedError(Exception):
    """The server refused a request in a way that may be meant for its form, and is where that is `named`."""

    def __init__(self, failure: LLMError, *, named: bool) -> None:
        self.failure = failure
        self.named = named
        super().__init__(str(failure))


def with_schema(prompt: Prompt) -> Prompt:
    """The prompt with the schema in its text, if it has one, for a model that is asked in plain text."""
    if prompt.schema is None:
        return prompt
    schema = json.dumps(prompt.schema, indent=2, ensure_ascii=False)
    return replace(prompt, text=render(_JSON_ANSWER, text=prompt.text, schema=schema))


def told_by(answer: dict[str, JsonValue]) -> str:
    """What an answer that holds no message says instead, uncut."""
    return payload.explain(answer) or json.dumps(answer)


def tokens(usage: JsonValue, key: str) -> int | None:
    """A count of tokens out of a usage object; None where the server reports none, or none that can be true.

    No question and no answer has no tokens: servers that do not count report 0.
    """
    return token_count(payload.member(usage, key)) or None
