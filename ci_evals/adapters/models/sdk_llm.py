"""The base of models behind a vendor's SDK: key and address, formats of answers, errors in words."""

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from ci_evals.adapters.models.answer_formats import (
    AnswerFormat,
    asks_for_format,
    may_mean_format,
    names_format,
    with_schema,
)
from ci_evals.adapters.transport import addresses, refusals, retry
from ci_evals.adapters.transport.network import Answer, NetworkError, ProxyError, UnreachableError
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, fair_share
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, Paid, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import whole
from ci_evals.threads import in_thread

if TYPE_CHECKING:
    from ci_evals.adapters.models.sdk_client import SdkClient

CHECK_SECONDS = 5.0
"""Timeout of a key check."""

_HEAD_START = 0.05
"""Seconds for the first messages to go out before an SDK is imported: the loop hardly gets its turn then."""
_MAX_NUMBERS = 1_000_000
"""Maximum of values in an answer that holds vectors: those of some hundred texts."""
_MODEL_KEYS = frozenset({"usage", "choices", "content"})
"""Keys of an answer that a model gave and that is paid for, usable or not."""
_UNAUTHORIZED = 401


@dataclass(frozen=True)
class Vendor:
    """The differences between SDKs."""

    name: str
    module: str
    """Module of the SDK."""
    client: str
    key: str
    """Environment variable of the API key."""
    address: str
    """Environment variable of the API's address."""
    default_address: str | None
    path: str
    models_path: str
    """Path of the list of models: a request that costs nothing."""
    bearer: str | None = None
    """Environment variable of a bearer token instead of the key."""
    bearer_argument: str = "api_key"
    """The client's argument for the bearer token."""
    below: str = ""
    """Path of the API below the address in the variable."""

    def url(self, base_url: str | None, environ: Mapping[str, str]) -> str:
        """Return the API's address as the SDK would choose it. An empty variable counts as unset."""
        configured = environ.get(self.address)
        if configured and not base_url:
            return f"{configured.rstrip('/')}{self.below}"
        return base_url or self.default_address or ""


class RefusedError(LLMError):
    """The server answered with an error status that may be about the format of answers."""

    def __init__(self, message: str, status: int = 0, detail: str = "") -> None:
        super().__init__(message)
        self.status, self.detail = status, detail


class SdkLLM(ABC):
    """A model behind a vendor's SDK. Implements the port `LLM`.

    If a server refuses an answer format, the next one is tried, since compatible servers often support only
    some. If the refusal names the format, this object never requests that format again; any other refusal may
    be about one question and has no effect on later ones.
    """

    vendor: ClassVar[Vendor]
    formats: ClassVar[tuple[AnswerFormat, ...]]
    """From the strictest to text."""

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
        self._key = addresses.header_value(key or token or "", f"the key for {vendor.name}")
        if not self._key:
            raise UsageError(f"there is no key for {vendor.name}: {self._key_hint}")
        self._key_argument = vendor.bearer_argument if token and not key else "api_key"
        self._redactor = (redactor or Redactor()).knowing(keys=[self._key])
        self._timeout = timeout
        self.address = vendor.url(base_url, environ or {})
        if not addresses.is_address(self.address):
            raise UsageError(f"the base URL {self.address!r} for {vendor.name} is not an http(s):// address")
        self.who = f"{vendor.name} at {addresses.host_of(self.address)}"
        """The name of the service in messages."""
        self._proxy = addresses.proxy_for(self.address)
        self._key_accepted = False
        self._refused_formats = 0
        """Number of formats that the server has refused for good."""
        self._importing: asyncio.Task[type[SdkClient]] | None = None
        self._client: SdkClient | None = None
        self.limiter = limiter or RateLimiter(max_concurrent=fair_share())

    @classmethod
    def for_environment(cls, environ: Mapping[str, str]) -> "type[SdkLLM]":
        """Return the class for the address that the environment names."""
        del environ
        return cls

    async def check(self) -> None:
        """Check the key at no cost: list the models; if that is refused, send a request without a question.

        Raise `LLMAccessError` if it is invalid or has no quota left. Any other answer proves nothing.
        """
        refusal = await self._key_refusal("get", self.vendor.models_path)
        if refusal and refusal.status == _UNAUTHORIZED:
            refusal = await self._key_refusal("post", self.vendor.path, {"model": self.model})
        if refusal:
            raise self._status_failure(refusal)

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, in the strictest format that the server has not refused for good."""
        prompt = replace(prompt, system=whole(prompt.system), text=whole(prompt.text))
        known = self._refused_formats
        formats = self.formats[known:] if prompt.schema is not None else (AnswerFormat.TEXT,)
        refused = 0
        for index, answer_format in enumerate(formats):
            fitted = prompt if answer_format is AnswerFormat.JSON_SCHEMA else with_schema(prompt)
            try:
                answer = await self._send(self.vendor.path, self._body(fitted, answer_format))
            except RefusedError as error:
                # If plain text is refused as well, the format was not the problem: nothing is
                # remembered, and the last error is the one to show.
                if answer_format is AnswerFormat.TEXT or not may_mean_format(error.status, error.detail):
                    raise
                if refused == index and names_format(error.status, error.detail):
                    refused += 1
            else:
                self._refused_formats = max(self._refused_formats, known + refused)
                return self._completion(answer)
        raise AssertionError("plain text is answered or raises")

    async def post(self, path: str, body: JsonObject) -> dict[str, JsonValue]:
        """Send a request, and return the object in its answer; raise `LLMError` if there is none."""
        return self._object(await self._send(path, body), _MAX_NUMBERS)

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
    def _body(self, prompt: Prompt, answer_format: AnswerFormat) -> JsonObject:
        """Return the body of a request, without the model's name."""

    @abstractmethod
    def _paid(self, usage: JsonValue) -> Paid:
        """Return the tokens that an answer reports."""

    @abstractmethod
    def _read(self, answer: dict[str, JsonValue]) -> str:
        """Return the text in an answer, or raise `ValueError` to go after "OpenAI at api.openai.com …"."""

    async def _connect(self) -> "SdkClient":
        """Return the client. The first call imports the SDK in a thread, so that other work goes on."""
        if self._importing is None:
            self._importing = asyncio.create_task(_import_client(self.vendor.module))
        client_class = await asyncio.shield(self._importing)  # other calls wait for it too
        if self._client is None:
            vendor, key = self.vendor, {self._key_argument: self._key}
            self._client = client_class(vendor.module, vendor.client, self.address, self._proxy, **key)
        return self._client

    async def _key_refusal(self, method: str, path: str, body: JsonObject | None = None) -> Answer | None:
        """Return the answer to a request that costs nothing, if it shows that the key is refused."""
        client = await self._connect()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                answer = await client.send(method, path, body)
        except (TimeoutError, NetworkError, payload.AnswerTooLargeError):
            return None
        return answer if refusals.refuses_key(answer.status, answer.body) else None

    async def _send(self, path: str, body: JsonObject) -> Answer:
        client = await self._connect()
        return await self.limiter.send(lambda attempt: self._attempt(client, path, body, attempt))

    async def _attempt(self, client: "SdkClient", path: str, body: JsonObject, attempt: int) -> Answer:
        try:
            async with asyncio.timeout(self._timeout):
                answer = await client.send("post", path, {"model": self.model, **body})
        except TimeoutError:
            which = f" at the last of {attempt} attempts" if attempt > 1 else ""
            failure = LLMError(f"{self.who} did not answer within {self._timeout:g} s{which}")
            raise RetryableError(failure) from None
        except NetworkError as error:
            raise RetryableError(self._unreachable(error)) from error
        except payload.AnswerTooLargeError as error:
            raise LLMAnswerError(f"{self.who} {error}") from None
        if not answer.is_success:
            raise self._refusal(answer, is_formatted=asks_for_format(body))
        self._key_accepted = True
        return answer

    def _unreachable(self, error: NetworkError) -> LLMError:
        reason = payload.shorten(self._redactor.text(str(error))) or type(error).__name__
        if isinstance(error, UnreachableError | ProxyError):
            return LLMError(f"{self.who} could not be reached: {reason}")
        return LLMError(f"the connection to {self.who} broke: {reason}")

    def _refusal(self, answer: Answer, *, is_formatted: bool) -> Exception:
        """Turn an error status into an error, retryable or final. A question asked twice does no harm.

        A format that the server refuses by name is not requested again, whatever the status.
        """
        status, failure = answer.status, self._status_failure(answer)
        wait = refusals.requested_wait(answer.headers, datetime.now(UTC))
        repeatable = retry.may_resend(status, idempotent=True, wait_requested=wait is not None)
        # Both vendors' SDKs obey this header of their servers.
        repeatable = {"true": True, "false": False}.get(answer.headers.get("x-should-retry", ""), repeatable)
        if isinstance(failure, RefusedError):
            is_final = refusals.is_too_large(answer.body)
            is_final = is_final or (is_formatted and names_format(status, failure.detail))
        else:
            is_final = True
        if is_final or not repeatable:
            return failure
        return RetryableError(failure, status, wait, final=LLMAccessError(f"{failure}; {retry.BUDGET_SPENT}"))

    def _status_failure(self, answer: Answer) -> LLMAccessError | RefusedError:
        status, location = answer.status, answer.headers.get("location")
        detail = payload.error_detail(answer.body, self._redactor)
        if target := addresses.redirect_of(self.address, status, location):
            return RefusedError(
                f"{self.who} redirects to {target} ({status}), which is not followed: "
                f"set {self.vendor.address} to the final address",
                status,
                detail,
            )
        if refusals.quota_used_up(status, answer.body):
            return LLMAccessError(
                f"{self.who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        if refusals.denies_key(status, answer.body, accepted_before=self._key_accepted):
            return LLMAccessError(f"{self.who} refused the key ({status}): {detail}; {self._key_hint}")
        message = f"{self.who} answered with status {status}: {detail}"
        if status == 429:
            message = f"{self.who} limits the rate of calls (429): {detail}; lower parallel"
        return RefusedError(message, status, detail)

    def _object(self, answer: Answer, max_values: int = payload.MAX_VALUES) -> dict[str, JsonValue]:
        try:
            value = payload.parse(answer.body, max_values)
        except ValueError as error:
            excerpt = payload.excerpt(answer.body, self._redactor)
            raise LLMAnswerError(
                f"{self.who} gave an answer that cannot be read ({error}): {excerpt}"
            ) from None
        if not isinstance(value, dict):
            raise LLMAnswerError(f"{self.who} gave an answer that is not a JSON object")
        return value

    def _completion(self, answer: Answer) -> Completion:
        completed = self._object(answer)
        paid = self._paid(completed.get("usage"))
        try:
            return Completion.of(self._read(completed), paid)
        except ValueError as error:
            reason = payload.shorten(self._redactor.text(str(error)))
            by_model = _MODEL_KEYS & completed.keys()
            text = self._redactor.text(json.dumps(completed, ensure_ascii=False))
            raise LLMAnswerError(f"{self.who} {reason}", paid if by_model else None, text) from None


def explanation(answer: dict[str, JsonValue]) -> str:
    """Return the text of an answer that holds no message, unshortened."""
    return payload.explain(answer) or json.dumps(answer)


def tokens(usage: JsonValue, key: str) -> int | None:
    """Return a token count of a usage object; None if it is missing or implausible.

    Servers that do not count report 0.
    """
    return token_count(payload.member(usage, key)) or None


async def _import_client(sdk: str) -> "type[SdkClient]":
    if sdk not in sys.modules:
        await asyncio.sleep(_HEAD_START)
    await in_thread(import_module, sdk)
    from ci_evals.adapters.models.sdk_client import SdkClient  # noqa: PLC0415  # what the SDK brought along

    return SdkClient
