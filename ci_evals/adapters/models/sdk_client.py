"""Requests by a vendor's Python SDK. Imported together with the SDK, which takes a second or two.

They go through the SDK's documented low-level `post`. Its typed methods would cost twice the processor time,
warn on the console about aging models, and fail on answers of compatible servers that differ in a field that
is not read here. The SDK retries nothing: all calls have to learn of a rate limit (`transport.rate_limiter`).
"""

from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2

from ci_evals.adapters.transport import http_client
from ci_evals.adapters.transport.addresses import split_proxy
from ci_evals.adapters.transport.aiohttp_errors import network_error
from ci_evals.adapters.transport.network import Answer, NetworkError, certificates
from ci_evals.support.json_text import JsonObject
from ci_evals.support.payload import MAX_ANSWER_MB, AnswerTooLargeError


class SdkClient:
    """The SDK's client, on its own HTTP client over aiohttp."""

    def __init__(self, module: str, client: str, base_url: str, proxy: str | None, **key: str) -> None:
        """Create the `client` of the SDK in `module`. `key` is its argument for the key."""
        self._sdk = import_module(module)
        # A kept connection would give an answer too many, which some servers send, to the next question.
        headers = http_client.ACCEPT_ENCODING | {"Connection": "close"}
        if proxy and urlsplit(base_url).scheme == "http":
            headers |= split_proxy(proxy)[1]  # aiohttp gives it only to a proxy that makes a tunnel
        http = self._sdk.DefaultAioHttpClient(
            proxy=http_client.proxy_of(proxy),
            verify=certificates(),
            trust_env=False,  # the proxy is known already
            follow_redirects=False,  # or the key would go along
            headers=headers,
            timeout=None,
            limits=httpx2.Limits(max_connections=0, keepalive_expiry=0),  # 0 connections: any number
            cookies=http_client.no_cookies(),
            event_hooks=http_client.size_limit(MAX_ANSWER_MB),
        )
        # No timeout: an SDK's are for each step, which a drip never exceeds. Callers limit an attempt.
        self._client: Any = getattr(self._sdk, client)(
            base_url=base_url, max_retries=0, timeout=None, http_client=http, **key
        )

    async def send(self, method: str, path: str, body: JsonObject | None = None) -> Answer:
        """Make one request, and return its answer, also one with an error status.

        Raises:
            NetworkError: there is no answer. The SDK calls most of these failures time-outs.
            AnswerTooLargeError: it is too long.
        """
        options = {} if body is None else {"body": body}
        try:
            response = await getattr(self._client, method)(path, cast_to=httpx2.Response, **options)
        except self._sdk.APIStatusError as error:
            response = error.response
        except (self._sdk.APIConnectionError, aiohttp.ClientError) as error:
            raise _cause(error) from error
        return Answer(response.status_code, response.headers, response.content)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def _cause(error: BaseException) -> Exception:
    """Return what is behind an error of the SDK, as an error of ours."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AnswerTooLargeError):
            return cause
        if isinstance(cause, aiohttp.ClientError):
            return network_error(cause)
        cause = cause.__cause__
    return NetworkError(str(error.__cause__ or error))
