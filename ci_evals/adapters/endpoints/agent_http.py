"""An agent's server over HTTP: requests, resent where that can do no harm, and what goes wrong, in words.

What adapters of agents that are asked over HTTP have in common. Each conversation has a client of its own,
with its cookies and connections, so that no answer can reach another conversation.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
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
"""What asking whether a key is good may take."""

_UNAUTHORIZED = 401
_OF_ONE = re.compile(r"/[^/]*[0-9{][^/]*")
"""Parts of a path that name one conversation or message: what holds of one path holds of all such."""
_OF_MONEY = frozenset({402, 429})
"""Any other status of an agent may be about a model that it asks with a key of its own."""


@dataclass(frozen=True)
class Call:
    """One request, and what may be done when it fails."""

    method: str
    url: httpx2.URL
    timeout: float
    """Seconds that one attempt may take."""
    idempotent: bool
    """Whether a second one would do no harm."""
    body: JsonValue = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Beside those of every request."""
    of_seconds: float | None = None
    """What the whole turn may take, where `timeout` is only the rest of it."""
    template: str | None = None
    """The path before its `{{names}}` were replaced: an error that many trials meet is told once."""


@dataclass(frozen=True)
class Answer:
    """The body of an answer with a status of success, not yet read."""

    content: bytes
    seconds: float
    """How long the request that succeeded took, without refused ones and waits."""
    headers: httpx2.Headers = field(repr=False)


class NoSuchPathError(AgentError):
    """The server does not have the path, or not for this method (404, 405)."""


class AgentServer:
    """The server behind an agent. Opens nothing by itself."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        redactor: Redactor,
        *,
        limiter: RateLimiter | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Looks at the environment for a proxy.

        Args:
            url: An http(s) address, which paths go after.
            headers: Of every request.
            redactor: Knows the run's and the agent's secrets, for what is told of errors.
            limiter: Shared by all calls to this server with this key; by default for this object alone.
            clock: Seconds, for latencies.

        Raises:
            UsageError: the environment names a proxy that cannot be used.
        """
        connections.load()
        self.host = connections.host_of(url)
        self.redactor = redactor
        self._url = url
        self._path = urlsplit(url).path
        self._proxy = connections.proxy_for(url)
        self._headers = dict(headers)
        self._limiter = limiter or RateLimiter()
        self._clock = clock
        self._key_held = False
        """Whether the key was accepted once: a 403 after that is about one request, not about the key."""

    def at(self, path: str, query: Mapping[str, str] | None = None) -> httpx2.URL:
        """The address of a path.

        Raises:
            UsageError: there can be none.
        """
        try:
            return httpx2.URL(self._url + path, params=query or None)
        except httpx2.InvalidURL as error:
            raise UsageError(f"the agent's base URL {self._url!r}: {error} (see --base-url)") from None

    def new_client(self) -> httpx2.AsyncClient:
        """A client for one conversation."""
        return connections.new_client(proxy=self._proxy, headers=self._headers, alone=True)

    async def end(self, client: httpx2.AsyncClient) -> None:
        """Close a conversation's connections.

        Raises:
            AgentError: more has come over them than was asked for.
        """
        if client.is_closed:
            return
        try:
            await asyncio.sleep(0)  # what has arrived is read
            self._check_surplus(client)
        finally:
            await close(client)

    async def ask(self, client: httpx2.AsyncClient, call: Call) -> tuple[JsonValue, float]:
        """Sends a request as `send` does; the JSON in its answer, and the seconds it took.

        Raises:
            AgentError: also where the answer is no JSON.
        """
        answer = await self.send(client, call)
        try:
            return payload.parse(answer.content), answer.seconds
        except ValueError as error:
            found = payload.excerpt(answer.content, self.redactor)
            raise AgentError(
                f"the agent at {self.host} gave an answer that cannot be read ({error}): {found}"
            ) from None

    async def send(self, client: httpx2.AsyncClient, call: Call) -> Answer:
        """Sends a request when its turn comes, again where that can do no harm.

        Raises:
            AgentError: it was refused, or there was no answer in time.
        """
        kind = f"{call.method} {_OF_ONE.sub('/*', call.template or call.url.path)}"
        return await self._limiter.send(lambda _: self._attempt(client, call), kind)

    async def check(self, *calls: Call) -> None:
        """Learns whether the key is good from calls that cost nothing. Most answers, or none, say nothing.

        Args:
            calls: The key is good if one of them is not refused for it: a server may refuse a path to all.

        Raises:
            AgentAccessError: the key is not good, or has no credit left.
        """
        refused: AgentError | None = None
        client = self.new_client()
        try:
            for call in calls:
                async with asyncio.timeout(call.timeout):
                    response = await _request(client, call)
                if not rate_limits.refuses_key(response.status_code, response.content):
                    return
                refused = self._refused(response, call)
                if response.status_code != _UNAUTHORIZED:
                    break
        except (TimeoutError, httpx2.HTTPError, AnswerTooLargeError):
            return
        finally:
            await close(client)
        if refused:
            raise refused

    async def _attempt(self, client: httpx2.AsyncClient, call: Call) -> Answer:
        self._check_surplus(client)
        started = self._clock()
        try:
            async with asyncio.timeout(call.timeout):
                response = await _request(client, call)
        except TimeoutError:
            seconds = call.of_seconds or call.timeout
            raise AgentError(f"the agent did not answer within {seconds:g} s") from None
        except AnswerTooLargeError as error:
            raise AgentError(f"the agent at {self.host} {error}") from None
        except httpx2.HTTPError as error:
            self._check_surplus(client)
            # Only a connection that was never made is sure to have carried nothing. One that was kept
            # from the message before and is broken may have: the agent may have acted on it. That is
            # rare, for the pool looks whether the other end has closed before it uses a connection
            # again, and keeps none for long (KEEPALIVE_SECONDS).
            failure = self._unreachable(error)
            sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            if sent and not call.idempotent:
                raise failure from error
            raise RetryableError(failure) from error
        if response.is_success:
            self._key_held = True
            return Answer(response.content, self._clock() - started, response.headers)
        failure = self._refused(response, call)
        if isinstance(failure, AgentAccessError):
            raise failure
        wait = rate_limits.requested_wait(response.headers, datetime.now(UTC))
        status, requested = response.status_code, "retry-after" in response.headers and wait is not None
        repeatable = retry.may_resend(status, idempotent=call.idempotent, wait_requested=requested)
        if repeatable or retry.limits_rate(status, wait_requested=requested):
            final = AgentAccessError(f"{failure}; {retry.GAVE_UP}")
            raise RetryableError(failure, status, wait, repeatable=repeatable, final=final)
        raise failure

    def _check_surplus(self, client: httpx2.AsyncClient) -> None:
        """Refuse a conversation whose answers may be shifted by one.

        Raises:
            AgentError: an answer came that no request asked for.
        """
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

    def _refused(self, response: httpx2.Response, call: Call) -> AgentError:
        status = response.status_code
        if target := connections.redirect_of(response):
            return AgentError(
                f"the agent at {self.host} redirects to {target} ({status}), which is not followed: "
                "set --base-url to the final address"
            )
        detail = payload.error_detail(response.content, self.redactor)
        if status in _OF_MONEY and rate_limits.quota_used_up(status, response.content):
            return AgentAccessError(
                f"the agent at {self.host} has no quota left for this key ({status}): {detail}; "
                "see its billing"
            )
        if status == _UNAUTHORIZED or (status == 403 and not self._key_held):
            return AgentAccessError(
                f"the agent at {self.host} refused the key ({status}): {detail}; "
                "set CI_EVALS_AGENT_KEY (in a workflow the input agent-key), or the variable that the "
                "suite's apiKey names, to a key of this agent"
            )
        if status in (404, 405):
            path = call.url.path if call.template is None else f"{self._path}{call.template}"
            asked = payload.shorten(self.redactor.text(f"{call.method} {path}"))
            return NoSuchPathError(
                f"the agent at {self.host} answered with status {status} to {asked}: {detail}"
            )
        return AgentError(f"the agent at {self.host} answered with status {status}: {detail}")


def knowing(redactor: Redactor | None, secrets: Iterable[str]) -> Redactor:
    """The run's redactor, which also knows these secrets of an agent."""
    known = redactor or Redactor()
    return Redactor(known.keys.union(secret.strip() for secret in secrets), known.values)


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without the white space around them.

    Raises:
        UsageError: HTTP has no room for one. No value is shown.
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
    """The headers of every request: those that options name, the key, and over all of them the user's own.

    The key goes where `{{key}}` stands, else as `Authorization: Bearer`; nowhere if it is `placed` already.

    Raises:
        UsageError: HTTP has no room for one. No value is shown.
    """
    key = connections.header_value(key, "the agent's key")
    headers = {name: placeholders.text(value, lambda _: key) for name, value in named.items()}
    if key and not placed and "key" not in placeholders.names(dict(named)):
        headers = with_headers({"Authorization": f"Bearer {key}"}, headers)
    return with_headers(checked_headers(headers), checked_headers(over))


def with_headers(headers: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """`headers`, with those of `over` in place of any that have the same name in whatever case."""
    named = {name.lower() for name in over}
    return {name: value for name, value in headers.items() if name.lower() not in named} | dict(over)


async def close(client: httpx2.AsyncClient) -> None:
    """Closes a conversation's connections; raises nothing."""
    try:
        await client.aclose()
    except (httpx2.HTTPError, OSError):
        return  # the connection was broken already


async def _request(client: httpx2.AsyncClient, call: Call) -> httpx2.Response:
    body: Any = None if call.body is None else json.dumps(payload.clean(call.body)).encode()
    kind = {} if body is None else {"content-type": "application/json"}
    headers = with_headers(kind, call.headers)
    return await client.request(call.method, call.url, content=body, headers=headers or None)
