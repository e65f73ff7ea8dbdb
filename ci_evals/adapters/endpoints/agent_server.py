"""The server behind an agent: requests, safe retries, error messages.

Shared by the adapters of agents over HTTP. Each conversation has its own client, with its own cookies and
connections, so that no answer can reach another conversation.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.transport import connections, payload, rate_limits, retry
from ci_evals.adapters.transport.payload import AnswerTooLargeError
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.support import placeholders
from ci_evals.support.redaction import Redactor

CHECK_SECONDS = 5.0
"""Timeout of a key check."""

_UNAUTHORIZED = 401
_ID_IN_PATH = re.compile(r"/[^/]*[0-9{][^/]*")
"""Parts of a path that name one conversation or message: paths that differ only there are of one kind."""
_QUOTA_STATUSES = frozenset({402, 429})
"""With any other status a message about a quota may be about a model that the agent itself calls."""


@dataclass(frozen=True)
class AgentRequest:
    """A request, and what may be done when it fails."""

    method: str
    url: httpx2.URL
    timeout: float
    """Seconds that one attempt may take."""
    idempotent: bool
    """True if a second attempt does no harm."""
    body: JsonValue = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers in addition to those of every request."""
    turn_timeout: float | None = None
    """Seconds that the whole turn may take, if `timeout` is only the rest of it."""
    template: str | None = None
    """The path before its `{{names}}` were replaced, so that equal errors of many trials are equal."""


@dataclass(frozen=True)
class AgentAnswer:
    """The unread body of an answer with a status of success."""

    content: bytes
    seconds: float
    """Duration of the request that succeeded, without refused ones and waits."""
    headers: httpx2.Headers = field(repr=False)


class NoSuchPathError(AgentError):
    """The server does not know the path, or not for this method (404, 405)."""


class AgentServer:
    """The server behind an agent."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        secrets: Iterable[str],
        *,
        redactor: Redactor | None,
        limiter: RateLimiter | None,
        clock: Callable[[], float],
    ) -> None:
        """Prepare requests without opening connections.

        Args:
            url: An http(s) address, which paths are appended to.
            headers: Headers of every request.
            secrets: The agent's secrets.
            redactor: Removes the run's secrets from error messages; `secrets` are added.
            limiter: Shared by all calls to this server with this key; by default for this object alone.
            clock: Current time in seconds, for latencies.

        Raises:
            UsageError: the environment names a proxy that cannot be used.
        """
        connections.load()
        self.host = connections.host_of(url)
        self.redactor = (redactor or Redactor()).knowing(keys=[secret.strip() for secret in secrets])
        self._url = url
        self._path = urlsplit(url).path
        self._proxy = connections.proxy_for(url)
        self._headers = dict(headers)
        self._limiter = limiter or RateLimiter()
        self._clock = clock
        self._key_accepted = False
        """True if the key was accepted once: a later 403 is about one request, not about the key."""

    def at(self, path: str, query: Mapping[str, str] | None = None) -> httpx2.URL:
        """Return the address of a path.

        Raises:
            UsageError: it is invalid.
        """
        try:
            return httpx2.URL(self._url + path, params=query or None)
        except httpx2.InvalidURL as error:
            raise UsageError(f"the agent's base URL {self._url!r}: {error} (see --base-url)") from None

    def new_client(self) -> httpx2.AsyncClient:
        """Create the client of one conversation."""
        return connections.new_client(proxy=self._proxy, headers=self._headers, alone=True)

    async def end(self, client: httpx2.AsyncClient) -> None:
        """Close a conversation's connections.

        Raises:
            AgentError: the server sent more answers than requested.
        """
        if client.is_closed:
            return
        try:
            await asyncio.sleep(0)  # what has arrived is read
            self._check_surplus(client)
        finally:
            await close(client)

    async def ask(self, client: httpx2.AsyncClient, request: AgentRequest) -> tuple[JsonValue, float]:
        """Send a request as `send` does, and return the JSON of its answer and the seconds it took.

        Raises:
            AgentError: it failed, or the answer is not JSON.
        """
        answer = await self.send(client, request)
        try:
            return payload.parse(answer.content), answer.seconds
        except ValueError as error:
            excerpt = payload.excerpt(answer.content, self.redactor)
            raise AgentError(
                f"the agent at {self.host} gave an answer that cannot be read ({error}): {excerpt}"
            ) from None

    async def send(self, client: httpx2.AsyncClient, request: AgentRequest) -> AgentAnswer:
        """Send a request when its turn comes, and retry it if that can do no harm.

        Raises:
            AgentError: it was refused, or there was no answer in time.
        """
        kind = f"{request.method} {_ID_IN_PATH.sub('/*', request.template or request.url.path)}"
        return await self._limiter.send(lambda _: self._attempt(client, request), kind)

    async def check(self, *requests: AgentRequest) -> None:
        """Check the key with requests that cost nothing. Most answers, or none, prove nothing.

        Args:
            requests: The key is refused if all of them are: a server may refuse a path to all keys.

        Raises:
            AgentAccessError: the key is invalid, or has no credit left.
        """
        refusal: AgentError | None = None
        client = self.new_client()
        try:
            for request in requests:
                async with asyncio.timeout(request.timeout):
                    response = await _send(client, request)
                if not rate_limits.refuses_key(response.status_code, response.content):
                    return
                refusal = self._refusal(response, request)
                if response.status_code != _UNAUTHORIZED:
                    break
        except (TimeoutError, httpx2.HTTPError, AnswerTooLargeError):
            return
        finally:
            await close(client)
        if refusal:
            raise refusal

    async def _attempt(self, client: httpx2.AsyncClient, request: AgentRequest) -> AgentAnswer:
        self._check_surplus(client)
        started = self._clock()
        try:
            async with asyncio.timeout(request.timeout):
                response = await _send(client, request)
        except TimeoutError:
            seconds = request.turn_timeout or request.timeout
            raise AgentError(f"the agent did not answer within {seconds:g} s") from None
        except AnswerTooLargeError as error:
            raise AgentError(f"the agent at {self.host} {error}") from None
        except httpx2.HTTPError as error:
            self._check_surplus(client)
            # Only a connection that was never made has certainly carried nothing. A broken one that was
            # kept from the message before may have, and the agent may have acted on it. That is rare: the
            # pool checks a connection before it is used again, and keeps none for long (KEEPALIVE_SECONDS).
            failure = self._unreachable(error)
            sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            if sent and not request.idempotent:
                raise failure from error
            raise RetryableError(failure) from error
        if response.is_success:
            self._key_accepted = True
            return AgentAnswer(response.content, self._clock() - started, response.headers)
        failure = self._refusal(response, request)
        if isinstance(failure, AgentAccessError):
            raise failure
        wait = rate_limits.requested_wait(response.headers, datetime.now(UTC))
        status, requested = response.status_code, "retry-after" in response.headers and wait is not None
        repeatable = retry.may_resend(status, idempotent=request.idempotent, wait_requested=requested)
        if repeatable or retry.limits_rate(status, wait_requested=requested):
            final = AgentAccessError(f"{failure}; {retry.GAVE_UP}")
            raise RetryableError(failure, status, wait, repeatable=repeatable, final=final)
        raise failure

    def _check_surplus(self, client: httpx2.AsyncClient) -> None:
        """Raise an error if the answers of the conversation may be shifted by one."""
        if connections.met_surplus(client):
            raise AgentError(
                f"the agent at {self.host} sent more than one answer to a request: which answer belongs to "
                "which message is not known"
            )

    def _unreachable(self, error: httpx2.HTTPError) -> AgentError:
        reason = payload.shorten(self.redactor.text(str(error))) or type(error).__name__
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            return AgentError(f"the agent at {self.host} could not be reached: {reason}")
        return AgentError(f"the connection to the agent at {self.host} broke: {reason}")

    def _refusal(self, response: httpx2.Response, request: AgentRequest) -> AgentError:
        status = response.status_code
        if target := connections.redirect_of(response):
            return AgentError(
                f"the agent at {self.host} redirects to {target} ({status}), which is not followed: "
                "set --base-url to the final address"
            )
        detail = payload.error_detail(response.content, self.redactor)
        if status in _QUOTA_STATUSES and rate_limits.quota_used_up(status, response.content):
            return AgentAccessError(
                f"the agent at {self.host} has no quota left for this key ({status}): {detail}; "
                "see its billing"
            )
        if status == _UNAUTHORIZED or (status == 403 and not self._key_accepted):
            return AgentAccessError(
                f"the agent at {self.host} refused the key ({status}): {detail}; "
                "set CI_EVALS_AGENT_KEY (in a workflow the input agent-key), or the variable that the "
                "suite's apiKey names, to a key of this agent"
            )
        if status in (404, 405):
            path = request.url.path if request.template is None else f"{self._path}{request.template}"
            shown = payload.shorten(self.redactor.text(f"{request.method} {path}"))
            return NoSuchPathError(
                f"the agent at {self.host} answered with status {status} to {shown}: {detail}"
            )
        return AgentError(f"the agent at {self.host} answered with status {status}: {detail}")


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without surrounding white space.

    Raises:
        UsageError: one is not valid in HTTP. No value is shown.
    """
    checked = {
        name.strip(): connections.header_value(value, f"the agent's header {name.strip()!r}")
        for name, value in headers.items()
    }
    for name in checked:
        if not connections.is_header_name(name):
            raise UsageError(f"{name!r} is no name of an HTTP header")
    return checked


def headers_with_key(
    named: Mapping[str, str], over: Mapping[str, str], key: str, *, placed: bool = False
) -> dict[str, str]:
    """Return the headers of every request: those of options, the key, and over all of them the user's own.

    The key replaces `{{key}}`, or becomes `Authorization: Bearer` unless it is `placed` elsewhere.

    Raises:
        UsageError: one is not valid in HTTP. No value is shown.
    """
    key = connections.header_value(key, "the agent's key")
    headers = {name: placeholders.text(value, lambda _: key) for name, value in named.items()}
    if key and not placed and "key" not in placeholders.names(dict(named)):
        headers = with_headers({"Authorization": f"Bearer {key}"}, headers)
    return with_headers(checked_headers(headers), checked_headers(over))


def with_headers(headers: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """Merge headers; those of `over` replace any of the same name, whatever the case."""
    replaced = {name.lower() for name in over}
    return {name: value for name, value in headers.items() if name.lower() not in replaced} | dict(over)


async def close(client: httpx2.AsyncClient) -> None:
    """Close a conversation's connections, broken or not."""
    with suppress(httpx2.HTTPError, OSError):
        await client.aclose()


async def _send(client: httpx2.AsyncClient, request: AgentRequest) -> httpx2.Response:
    body: Any = None if request.body is None else json.dumps(payload.clean(request.body)).encode()
    headers = with_headers({} if body is None else {"content-type": "application/json"}, request.headers)
    return await client.request(request.method, request.url, content=body, headers=headers or None)
