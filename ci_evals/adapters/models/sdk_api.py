"""A vendor's API behind its Python SDK: the client, its key and address, retries, and errors in words.

Calls go through the SDK's documented low-level `post`. Its typed methods would cost twice the processor time,
warn on the console about aging models, and fail on answers of compatible servers that differ in a field that
is not read here. The SDK retries nothing: all calls have to learn of a rate limit (`transport.rate_limiter`).
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

from pydantic import JsonValue

from ci_evals.adapters.models.answer_formats import asks_for_format, names_format
from ci_evals.adapters.transport import addresses, refusals, retry
from ci_evals.adapters.transport.network import (
    Answer,
    NetworkError,
    ProxyError,
    UnreachableError,
    certificates,
)
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting, fair_share
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor
from ci_evals.threads import in_thread

CHECK_SECONDS = 5.0
"""Timeout of a key check."""

_HEAD_START = 0.05
"""Seconds for the first messages to go out."""
_MAX_NUMBERS = 1_000_000
"""Maximum of values in an answer that holds vectors: those of some hundred texts."""
_UNAUTHORIZED = 401


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


class RefusedError(Exception):
    """The server answered with an error status."""

    def __init__(self, failure: LLMError, status: int, detail: str) -> None:
        super().__init__(str(failure))
        self.failure, self.status, self.detail = failure, status, detail


class SdkApi:
    """A vendor's API, asked about one model."""

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
        self._key = addresses.header_value(key or token or "", f"the key for {vendor.name}")
        if not self._key:
            raise UsageError(f"there is no key for {vendor.name}: {self._key_hint}")
        self._key_argument = vendor.bearer_argument if token and not key else "api_key"
        self._redactor = (redactor or Redactor()).knowing(keys=[self._key])
        self._timeout = timeout
        self.address = vendor.url(base_url, environ or {})
        if not addresses.is_address(self.address):
            raise UsageError(f"the base URL {self.address!r} for {vendor.name} is not an http(s):// address")
        self._who = f"{vendor.name} at {addresses.host_of(self.address)}"
        self._proxy = addresses.proxy_for(self.address)
        self._key_accepted = False
        """True if the key was accepted once: a later 403 is about one prompt, not about the key."""
        self._importing: asyncio.Task[ModuleType] | None = None
        self._client: Any = None
        self.limiter = limiter or RateLimiter(max_concurrent=fair_share())

    async def check(self) -> None:
        """Check the key at no cost: list the models; if that is refused, send a request without a question.

        Raise `LLMAccessError` if it is invalid or has no quota left. Any other answer proves nothing.
        """
        refusal = await self._key_refusal("get", self.vendor.models_path)
        if refusal and refusal.status == _UNAUTHORIZED:
            refusal = await self._key_refusal("post", self.vendor.path, body={"model": self.model})
        if refusal:
            raise self._status_failure(refusal)

    async def _key_refusal(self, method: str, path: str, **options: Any) -> Answer | None:
        """Return the answer to a request that costs nothing, if it shows that the key is refused."""
        sdk = await self._sdk()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._call(sdk, method, path, **options)
        except sdk.APIStatusError as error:
            answer = _answer(error.response)
            return answer if refusals.refuses_key(answer.status, answer.body) else None
        except (TimeoutError, NetworkError, payload.AnswerTooLargeError):
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

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, JsonValue]:
        """Send a request, and return the object in its answer; raise `LLMError` if there is none."""
        try:
            return self._object(await self._send(path, body), _MAX_NUMBERS)
        except RefusedError as error:
            raise error.failure from None

    async def _send(self, path: str, body: dict[str, Any]) -> Answer:
        sdk = await self._sdk()
        return await self.limiter.send(lambda attempt: self._attempt(sdk, path, body, attempt))

    async def _attempt(self, sdk: Any, path: str, body: dict[str, Any], attempt: int) -> Answer:
        try:
            # The SDK's own limits are for each step, which a drip never exceeds.
            async with asyncio.timeout(self._timeout):
                answer = await self._call(sdk, "post", path, body={"model": self.model, **body})
        except TimeoutError:
            which = f" at the last of {attempt} attempts" if attempt > 1 else ""
            failure = LLMError(f"{self._who} did not answer within {self._timeout:g} s{which}")
            raise RetryableError(failure) from None
        except sdk.APIStatusError as error:
            raise self._refusal(_answer(error.response), asks_for_format(body)) from None
        except NetworkError as error:
            raise RetryableError(self._unreachable(error)) from error
        except payload.AnswerTooLargeError as error:
            raise LLMAnswerError(f"{self._who} {error}") from None
        self._key_accepted = True
        return answer

    async def _call(self, sdk: Any, method: str, path: str, **options: Any) -> Answer:
        """Make one request.

        Raises:
            APIStatusError: of the SDK, for a status that is an error.
            NetworkError: there is no answer. The SDK calls most of these failures time-outs.
            AnswerTooLargeError: the answer is too long.
        """
        import aiohttp  # noqa: PLC0415  # the SDK has brought both along
        import httpx2  # noqa: PLC0415

        from ci_evals.adapters.transport.aiohttp_errors import network_error  # noqa: PLC0415  # as above

        call = getattr(self._client_of(sdk), method)
        try:
            return _answer(await call(path, cast_to=httpx2.Response, **options))
        except (sdk.APIConnectionError, aiohttp.ClientError) as error:
            for cause in _causes(error):
                if isinstance(cause, payload.AnswerTooLargeError):
                    raise cause from None
                if isinstance(cause, aiohttp.ClientError):
                    raise network_error(cause) from error
            raise NetworkError(str(error.__cause__ or error)) from error

    def _unreachable(self, error: NetworkError) -> LLMError:
        reason = payload.shorten(self._redactor.text(str(error))) or type(error).__name__
        if isinstance(error, UnreachableError | ProxyError):
            return LLMError(f"{self._who} could not be reached: {reason}")
        return LLMError(f"the connection to {self._who} broke: {reason}")

    def _refusal(self, answer: Answer, is_formatted: bool) -> Exception:  # of one caller
        """Turn an error status into an error, retryable or final. A question asked twice does no harm.

        A format that the server refuses by name is not requested again, whatever the status.
        """
        status, failure = answer.status, self._status_failure(answer)
        detail = payload.error_detail(answer.body, self._redactor)
        refused = RefusedError(failure, status, detail)
        wait = refusals.requested_wait(answer.headers, datetime.now(UTC))
        repeatable = retry.may_resend(status, idempotent=True, wait_requested=wait is not None)
        # Both vendors' SDKs obey this header of their servers.
        repeatable = {"true": True, "false": False}.get(answer.headers.get("x-should-retry", ""), repeatable)
        is_final = isinstance(failure, LLMAccessError) or refusals.is_too_large(answer.body)
        if is_final or not repeatable or (is_formatted and names_format(status, detail)):
            return refused
        last = LLMAccessError(f"{failure}; {retry.BUDGET_SPENT}")
        return RetryableError(refused, status, wait, final=RefusedError(last, status, detail))

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
                timeout=None,  # an attempt has one as a whole
                http_client=self._new_http_client(sdk),
            )
        return self._client

    def _new_http_client(self, sdk: Any) -> Any:
        """Create the SDK's own client over aiohttp, with a connection for each request.

        A kept connection would give an answer too many, which some servers send, to the next question.
        """
        import httpx2  # noqa: PLC0415  # which the SDK has brought along

        from ci_evals.adapters.transport import http_client  # noqa: PLC0415  # as above

        return sdk.DefaultAioHttpClient(
            proxy=http_client.proxy_of(self._proxy),
            verify=certificates(),
            trust_env=False,  # the proxy is known already
            follow_redirects=False,  # or the key would go along
            headers=http_client.ACCEPT_ENCODING | {"Connection": "close"},
            timeout=None,
            limits=httpx2.Limits(max_connections=0, keepalive_expiry=0),  # 0 connections: any number
            cookies=http_client.no_cookies(),
            event_hooks=http_client.size_limit(payload.MAX_ANSWER_MB),
        )

    def _object(self, answer: Answer, max_values: int = payload.MAX_VALUES) -> dict[str, JsonValue]:
        try:
            value = payload.parse(answer.body, max_values)
        except ValueError as error:
            excerpt = payload.excerpt(answer.body, self._redactor)
            raise LLMAnswerError(
                f"{self._who} gave an answer that cannot be read ({error}): {excerpt}"
            ) from None
        if not isinstance(value, dict):
            raise LLMAnswerError(f"{self._who} gave an answer that is not a JSON object")
        return value

    def _status_failure(self, answer: Answer) -> LLMError:
        status, location = answer.status, answer.headers.get("location")
        if target := addresses.redirect_of(self.address, status, location):
            return LLMError(
                f"{self._who} redirects to {target} ({status}), which is not followed: "
                f"set {self.vendor.address} to the final address"
            )
        detail = payload.error_detail(answer.body, self._redactor)
        if refusals.quota_used_up(status, answer.body):
            return LLMAccessError(
                f"{self._who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        wrong_key = status == 403 or refusals.is_wrong_key(status, answer.body)
        if status == 401 or (wrong_key and not self._key_accepted):
            return LLMAccessError(f"{self._who} refused the key ({status}): {detail}; {self._key_hint}")
        if status == 429:
            return LLMError(f"{self._who} limits the rate of calls (429): {detail}; lower --parallel")
        return LLMError(f"{self._who} answered with status {status}: {detail}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _answer(response: Any) -> Answer:
    """Return an answer of the SDK's client, which was read."""
    return Answer(response.status_code, response.headers, response.content)


async def _imported(module: str) -> ModuleType:
    """Import an SDK after the first messages went out, since the loop hardly gets its turn meanwhile."""
    if module not in sys.modules:
        await asyncio.sleep(_HEAD_START)
    return await in_thread(import_module, module)
