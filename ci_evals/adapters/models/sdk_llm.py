"""The base of models behind a vendor's Python SDK: clients, fallback of answer formats, error messages.

Calls go through the SDK's documented low-level `post`. Its typed methods would cost twice the processor time,
warn on the console about aging models, and fail on answers of compatible servers that differ in a field that
is not read here. The SDK retries nothing: all calls have to learn of a rate limit (`transport.rate_limiter`).
"""

import asyncio
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.transport import connections, payload, rate_limits, retry
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, Paid, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import whole
from ci_evals.threads import in_thread

CHECK_SECONDS = 5.0
"""Timeout of a key check."""

_HEAD_START = 0.05
"""Seconds for the first messages to go out."""
_JSON_ANSWER = "adapters/prompts/json_answer.md.j2"
_MODEL_KEYS = frozenset({"usage", "choices", "content"})
"""Keys of an answer that a model gave and that is paid for, usable or not."""
_MAX_NUMBERS = 1_000_000
"""Maximum of values in an answer that holds vectors: those of some hundred texts."""
_MAYBE_FORMAT = frozenset({400, 404, 422, 501})
"""Statuses that may be about the format even if the message does not mention it."""
_NEVER_FORMAT = frozenset({401, 402, 403, 408, 429, 529})
_MENTIONS_FORMAT = re.compile(
    r"response_format|json_schema|json_object|json[ _]mode|output_config|schema|structured|grammar|gbnf"
    r"|guided[ _](json|decoding)",
    re.IGNORECASE,
)
_FORMAT_KEYS = frozenset({"response_format", "output_config"})
_OTHER_CAUSE = re.compile(
    r"(model|deployment)\b.{0,200}\b(not (found|exist)|unavailable)|(unknown|invalid|no such) model"
    r"|model_not_found|\bmodel:|context[ _]?(length|window|size)|too long|too many tokens",
    re.IGNORECASE,
)


class AnswerFormat(StrEnum):
    """A way to request an answer that fits a schema."""

    JSON_SCHEMA = "json_schema"
    """The request holds the schema, and the provider enforces it."""
    JSON_OBJECT = "json_object"
    """The provider guarantees JSON; the prompt holds the schema."""
    TEXT = "text"
    """The prompt holds the schema; the provider guarantees nothing."""


@dataclass(frozen=True)
class Vendor:
    """The differences between SDKs."""

    name: str
    module: str
    """Module of the SDK, which takes a second or two to import."""
    client: str
    key: str
    """Environment variable of the API key."""
    address: str
    """Environment variable of the API's address."""
    default_address: str | None
    path: str
    models_path: str
    """Path of the list of models: a request that costs nothing."""
    formats: tuple[AnswerFormat, ...]
    bearer: str | None = None
    """Environment variable of a bearer token instead of the key."""
    bearer_argument: str = "api_key"
    """The client's argument for the bearer token."""
    below: str = ""
    """Path of the API below the address in the variable."""

    def url(self, base_url: str | None, environ: Mapping[str, str]) -> str:
        """Return the API's address as the SDK would choose it. An empty variable counts as unset."""
        configured = environ.get(self.address)
        return base_url or (
            f"{configured.rstrip('/')}{self.below}" if configured else self.default_address or ""
        )


class SdkLLM(ABC):
    """A model behind a vendor's SDK. Implements the port `LLM`.

    If a server refuses an answer format, the next one is tried, since compatible servers often support only
    some. If the refusal names the format, this object never requests that format again; any other refusal may
    be about one question and has no effect on later ones.
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
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Create the model without opening connections or importing the SDK, which takes seconds.

        Without a `key` the bearer `token` is used, and without a `base_url` the address in `environ` or the
        vendor's own; raise `UsageError` if they cannot be used. Each attempt may take `timeout` seconds. By
        default as many calls run at once as open files allow.
        """
        self.model = model
        vendor = self.vendor
        self._key_hint = f"set LLM_API_KEY or {vendor.key} to a valid key (in a workflow the input llm-key)"
        if token and not key and vendor.bearer:
            self._key_hint = f"set {vendor.bearer} to a valid token"
        self._key = connections.header_value(key or token or "", f"the key for {vendor.name}")
        if not self._key:
            raise UsageError(f"there is no key for {vendor.name}: {self._key_hint}")
        self._key_argument = vendor.bearer_argument if token and not key else "api_key"
        self._redactor = (redactor or Redactor()).knowing(keys=[self._key])
        self._timeout = timeout
        try:
            self.address = str(httpx2.URL(vendor.url(base_url, environ or {})))
        except httpx2.InvalidURL as error:
            raise UsageError(f"the base URL for {vendor.name} cannot be used: {error}") from None
        if not self.address.startswith(("http://", "https://")):
            raise UsageError(f"the base URL {self.address!r} for {vendor.name} is not an http(s):// address")
        self._who = f"{vendor.name} at {connections.host_of(self.address)}"
        self._proxy = connections.proxy_for(self.address)
        self._key_accepted = False
        """True if the key was accepted once: a later 403 is about one prompt, not about the key."""
        self._importing: asyncio.Task[ModuleType] | None = None
        self._client: Any = None
        self.limiter = limiter or RateLimiter(max_concurrent=connections.fair_share())
        self._refused_formats = 0
        """Number of the vendor's formats that the server has refused for good."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, in the strictest format that the server has not refused for good."""
        prompt = replace(prompt, system=whole(prompt.system), text=whole(prompt.text))
        known = self._refused_formats
        formats = self.vendor.formats[known:] if prompt.schema is not None else (AnswerFormat.TEXT,)
        refused = 0
        for index, answer_format in enumerate(formats):
            fitted = prompt if answer_format is AnswerFormat.JSON_SCHEMA else with_schema(prompt)
            try:
                response = await self._send(self.vendor.path, self._body(fitted, answer_format))
            except _RefusedError as error:
                # If plain text is refused as well, the format was not the problem: nothing is
                # remembered, and the last error is the one to show.
                if answer_format is AnswerFormat.TEXT or not error.may_mean_format:
                    raise error.failure from None
                if error.names_format and refused == index:
                    refused += 1
            else:
                self._refused_formats = max(self._refused_formats, known + refused)
                return self._completion(response)
        raise AssertionError("plain text is answered or raises")

    async def check(self) -> None:
        """Check the key at no cost: list the models; if that is refused, send a request without a question.

        Raise `LLMAccessError` if it is invalid or has no quota left. Any other answer proves nothing.
        """
        refusal = await self._key_refusal("get", self.vendor.models_path)
        if refusal and refusal.status_code == httpx2.codes.UNAUTHORIZED:
            refusal = await self._key_refusal("post", self.vendor.path, body={"model": self.model})
        if refusal:
            raise self._status_failure(refusal)

    async def _key_refusal(self, method: str, path: str, **options: Any) -> httpx2.Response | None:
        """Return the answer to a request that costs nothing, if it shows that the key is refused."""
        sdk = await self._sdk()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await getattr(self._client_of(sdk), method)(path, cast_to=httpx2.Response, **options)
        except sdk.APIStatusError as error:
            response: httpx2.Response = error.response
            return response if rate_limits.refuses_key(response.status_code, response.content) else None
        except (TimeoutError, sdk.APIConnectionError, payload.AnswerTooLargeError):
            pass
        return None

    def waits(self) -> tuple[str, Waiting | None]:
        """Return the name of the service and the current wait for it."""
        return self._who, self.limiter.waiting()

    def note(self) -> str | None:
        """Return a sentence on rate limits of the provider; None if there were none."""
        return self.limiter.note(f"{self._who} ({self.model})")

    async def aclose(self) -> None:
        """Close the client. The object can be used again afterwards."""
        if self._importing and not self._importing.done():
            self._importing.cancel()
            await asyncio.gather(self._importing, return_exceptions=True)
            self._importing = None
        if self._client:
            client, self._client = self._client, None
            await client.close()

    @abstractmethod
    def _body(self, prompt: Prompt, answer_format: AnswerFormat) -> dict[str, Any]:
        """Return the body of a request, without the model's name."""

    @abstractmethod
    def _paid(self, usage: JsonValue) -> Paid:
        """Return the tokens that an answer reports."""

    @abstractmethod
    def _read(self, answer: dict[str, JsonValue]) -> str:
        """Return the text in an answer, or raise `ValueError` to go after "OpenAI at api.openai.com …"."""

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, JsonValue]:
        """Send another request than for words, with the same client, retries and errors."""
        try:
            return self._object(await self._send(path, body), _MAX_NUMBERS)
        except _RefusedError as error:
            raise error.failure from None

    async def _send(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        sdk = await self._sdk()
        return await self.limiter.send(lambda attempt: self._attempt(sdk, path, body, attempt))

    async def _attempt(self, sdk: Any, path: str, body: dict[str, Any], attempt: int) -> httpx2.Response:
        try:
            response: httpx2.Response = await self._client_of(sdk).post(
                path, cast_to=httpx2.Response, body={"model": self.model, **body}
            )
        except sdk.APIStatusError as error:
            raise self._refusal(error.response, wants_format=not _FORMAT_KEYS.isdisjoint(body)) from None
        except sdk.APITimeoutError:
            which = f" at the last of {attempt} attempts" if attempt > 1 else ""
            failure = LLMError(f"{self._who} did not answer within {self._timeout:g} s{which}")
            raise RetryableError(failure) from None
        except sdk.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, payload.AnswerTooLargeError):  # one SDK takes every error for one of these
                raise LLMAnswerError(f"{self._who} {cause}") from None
            reason = payload.shorten(self._redactor.text(str(cause or error))) or type(cause).__name__
            if isinstance(cause, httpx2.ConnectError | httpx2.ProxyError):
                raise RetryableError(LLMError(f"{self._who} could not be reached: {reason}")) from error
            raise RetryableError(LLMError(f"the connection to {self._who} broke: {reason}")) from error
        except payload.AnswerTooLargeError as error:
            raise LLMAnswerError(f"{self._who} {error}") from None
        self._key_accepted = True
        return response

    def _refusal(self, response: httpx2.Response, *, wants_format: bool) -> Exception:
        """Turn an error status into an error, retryable or final. A question asked twice does no harm.

        A format that the server refuses by name is not requested again, whatever the status.
        """
        status, failure = response.status_code, self._status_failure(response)
        wait = rate_limits.requested_wait(response.headers, datetime.now(UTC))
        repeatable = retry.may_resend(status, idempotent=True, wait_requested=wait is not None)
        # Both vendors' SDKs obey this header of their servers.
        repeatable = {"true": True, "false": False}.get(
            response.headers.get("x-should-retry", ""), repeatable
        )
        detail = payload.error_detail(response.content, self._redactor)
        refused = _RefusedError(failure, status, detail)
        if (
            not repeatable
            or isinstance(failure, LLMAccessError)
            or rate_limits.is_too_large(response.content)
            or (wants_format and refused.names_format)
        ):
            return refused
        given_up = LLMAccessError(f"{failure}; {retry.GAVE_UP}")
        return RetryableError(refused, status, wait, final=_RefusedError(given_up, status, detail))

    async def _sdk(self) -> Any:
        """Import the SDK in a thread at the first call, so that other work goes on meanwhile."""
        if self._importing is None:
            self._importing = asyncio.create_task(_imported(self.vendor.module))
        return await asyncio.shield(self._importing)  # other calls wait for it too

    def _client_of(self, sdk: Any) -> Any:
        if not self._client:
            self._client = getattr(sdk, self.vendor.client)(
                **{self._key_argument: self._key},
                base_url=self.address,
                max_retries=0,
                timeout=None,  # the HTTP client has one for the whole of an attempt
                http_client=connections.new_client(proxy=self._proxy, timeout=self._timeout),
            )
        return self._client

    def _completion(self, response: httpx2.Response) -> Completion:
        answer = self._object(response)
        paid = self._paid(answer.get("usage"))
        try:
            return Completion.of(self._read(answer), paid)
        except ValueError as error:
            reason = payload.shorten(self._redactor.text(str(error)))
            by_model = _MODEL_KEYS & answer.keys()
            raise LLMAnswerError(f"{self._who} {reason}", paid if by_model else None) from None

    def _object(
        self, response: httpx2.Response, max_values: int = payload.MAX_VALUES
    ) -> dict[str, JsonValue]:
        try:
            answer = payload.parse(response.content, max_values)
        except ValueError as error:
            excerpt = payload.excerpt(response.content, self._redactor)
            raise LLMAnswerError(
                f"{self._who} gave an answer that cannot be read ({error}): {excerpt}"
            ) from None
        if not isinstance(answer, dict):
            raise LLMAnswerError(f"{self._who} gave an answer that is not a JSON object")
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
        wrong_key = status == 403 or rate_limits.is_wrong_key(status, response.content)
        if status == 401 or (wrong_key and not self._key_accepted):
            return LLMAccessError(f"{self._who} refused the key ({status}): {detail}; {self._key_hint}")
        if status == 429:
            return LLMError(f"{self._who} limits the rate of calls (429): {detail}; lower --parallel")
        return LLMError(f"{self._who} answered with status {status}: {detail}")


async def _imported(module: str) -> ModuleType:
    """Import an SDK after the first messages went out, since the loop hardly gets its turn meanwhile."""
    if module not in sys.modules:
        await asyncio.sleep(_HEAD_START)
    return await in_thread(import_module, module)


class _RefusedError(Exception):
    """The server answered with an error status."""

    def __init__(self, failure: LLMError, status: int, detail: str) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.names_format = status not in _NEVER_FORMAT and _MENTIONS_FORMAT.search(detail) is not None
        """True if it is about the answer format: some servers answer 500 to an unknown one."""
        unclear = status in _MAYBE_FORMAT and not _OTHER_CAUSE.search(detail)
        self.may_mean_format = self.names_format or unclear


def with_schema(prompt: Prompt) -> Prompt:
    """Put a prompt's schema into its text, for a model that is asked in plain text."""
    if prompt.schema is None:
        return prompt
    schema = json.dumps(prompt.schema, indent=2, ensure_ascii=False)
    return replace(prompt, text=render(_JSON_ANSWER, text=prompt.text, schema=schema))


def explanation(answer: dict[str, JsonValue]) -> str:
    """Return the text of an answer that holds no message, unshortened."""
    return payload.explain(answer) or json.dumps(answer)


def tokens(usage: JsonValue, key: str) -> int | None:
    """Return a token count of a usage object; None if it is missing or implausible.

    Servers that do not count report 0.
    """
    return token_count(payload.member(usage, key)) or None
