"""An AUI agent over HTTP: when and how often it is spoken to. What is said, and what it means: `aui_wire`."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
from pydantic import JsonValue

from ci_evals.adapters import aui_wire, connections, payload, retry
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.redaction import Redactor

TRACE_TIMEOUT_SECONDS = 30.0
"""The longest to wait for a trace that has to be asked for apart. The reply is there already."""


@dataclass(frozen=True)
class AuiConfig:
    """Which agent, where, and how it is spoken to."""

    agent_id: str | None
    key: str = field(repr=False)
    base_url: str = aui_wire.DEFAULT_BASE_URL
    key_header: str = aui_wire.DEFAULT_KEY_HEADER
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers for every request. Their values are taken for secrets."""
    agent_id_in: aui_wire.AgentIdPlace = aui_wire.AgentIdPlace.TOP
    task_origin_type: str = aui_wire.DEFAULT_TASK_ORIGIN_TYPE
    debug: bool = False
    """Whether replies keep their raw body."""
    open_timeout: float = DEFAULT_TIMEOUT_SECONDS
    """Seconds that opening a task may take; a message has its turn's timeout."""


@dataclass
class _Session:
    """One conversation: its own client and what of the user's data goes with every message."""

    client: httpx2.AsyncClient
    task_id: str
    variables: Mapping[str, JsonValue]
    fetches_traces: bool = True


@dataclass(frozen=True)
class _Call:
    """One request, and what may be done when it fails."""

    method: str
    url: httpx2.URL
    timeout: float
    idempotent: bool
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Answer:
    body: JsonValue
    seconds: float
    """How long the request that succeeded took, without refused ones and waits."""


class _NoSuchPathError(AgentError):
    """The server does not have the path, or not for this method (404, 405)."""


class AuiAgent:
    """The agent under test, spoken to by AUI's task API. Implements the port `Agent`."""

    def __init__(
        self,
        config: AuiConfig,
        *,
        redactor: Redactor | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.perf_counter,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        """Opens nothing yet.

        Args:
            config: Which agent and where.
            redactor: Knows the run's secrets, for what is told of errors; the config's own are added.
            sleep: Waits before a resend.
            clock: Seconds, for latencies.
            new_id: A fresh id for each user.

        Raises:
            UsageError: the address is no http(s) address, or a header cannot be sent.
        """
        self._config = config
        self._url = aui_wire.external_url(config.base_url)
        # Made once: reading an address takes a noticeable share of a call's processor time.
        self._tasks = self._at(aui_wire.TASKS_PATH)
        self._messages = self._at(aui_wire.MESSAGE_PATH, aui_wire.MESSAGE_FLAGS)
        self._host = connections.host_of(self._url)
        self._proxy = connections.proxy_for(self._url)
        self._headers = _headers(config)
        known = redactor or Redactor()
        own = (config.key.strip(), *(value.strip() for value in config.headers.values()))
        self._redactor = Redactor(known.keys.union(own), known.values)
        self._sleep = sleep
        self._clock = clock
        self._new_id = new_id
        self._key_held = False
        """Whether the key was accepted once: a 403 after that is about one request, not about the key."""

    async def open_session(self, test: Test) -> _Session:
        """Creates a task for a user who never was before."""
        client = connections.new_client(self._url, proxy=self._proxy, headers=self._headers)
        config = self._config
        body = aui_wire.task_body(
            f"ci-evals-{self._new_id()}", config.agent_id, config.agent_id_in, config.task_origin_type
        )
        # A second task that nobody speaks in does no harm: creating one counts as idempotent.
        call = _Call("POST", self._tasks, config.open_timeout, idempotent=True, body=body)
        try:
            answer = await self._send(client, call)
            return _Session(client, aui_wire.task_id_of(answer.body, self._redactor), test.user_info)
        except BaseException:
            await client.aclose()
            raise

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Says `text`; asks for the trace apart where the reply lacks it."""
        call = _Call(
            "POST",
            self._messages,
            timeout,
            idempotent=False,
            body=aui_wire.message_body(session.task_id, text, session.variables),
        )
        answer = await self._send(session.client, call)
        trace = None
        if aui_wire.trace_of(answer.body) is None and session.fetches_traces:
            trace = await self._fetch_trace(session, aui_wire.message_id_of(answer.body), timeout)
        return aui_wire.read_reply(
            answer.body, answer.seconds, self._redactor, fetched_trace=trace, keep_raw=self._config.debug
        )

    async def close(self, session: _Session) -> None:
        """Closes the connection; the API knows no end of a task."""
        try:
            await session.client.aclose()
        except (httpx2.HTTPError, OSError):
            return  # the connection was broken already

    async def _fetch_trace(self, session: _Session, message_id: str | None, longest: float) -> JsonValue:
        """The trace of a reply that came without; null where it cannot be had, which is no error."""
        if message_id is None:
            return None
        call = _Call(
            "GET",
            self._at(aui_wire.trace_path(session.task_id, message_id), aui_wire.TRACE_FLAGS),
            min(longest, TRACE_TIMEOUT_SECONDS),
            idempotent=True,
        )
        try:
            answer = await self._send(session.client, call)
        except (_NoSuchPathError, AgentAccessError):
            session.fetches_traces = False
            return None
        except AgentError:
            return None
        return aui_wire.fetched_trace_of(answer.body, message_id)

    async def _send(self, client: httpx2.AsyncClient, call: _Call) -> _Answer:
        """Sends a request, again where that can do no harm, and reads the answer."""
        for resend in range(retry.MAX_RESENDS + 1):
            last = resend == retry.MAX_RESENDS
            told = None
            started = self._clock()
            try:
                async with asyncio.timeout(call.timeout):
                    response = await self._request(client, call)
            except TimeoutError:
                raise AgentError(f"the agent did not answer within {call.timeout:g} s") from None
            except connections.AnswerTooLargeError as error:
                raise AgentError(f"the agent at {self._host} {error}") from None
            except httpx2.HTTPError as error:
                # Only a connection that was never made is sure to have carried nothing. One that was kept
                # from the message before and is broken may have: the agent may have acted on it. That is
                # rare, for the pool looks whether the other end has closed before it uses a connection
                # again, and keeps none for long (KEEPALIVE_SECONDS).
                sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if last or (sent and not call.idempotent):
                    raise self._unreachable(error) from error
            else:
                if response.is_success:
                    self._key_held = True
                    return _Answer(self._read(response), self._clock() - started)
                told = retry.told_seconds(response.headers.get("retry-after"), datetime.now(UTC))
                again = retry.may_resend(
                    response.status_code, idempotent=call.idempotent, told_to_wait=told is not None
                )
                if last or not again:
                    raise self._refused(response)
            luck = random.random()  # noqa: S311  # spreads load, keeps no secret
            await self._sleep(retry.wait_seconds(resend, told, luck))
        raise AssertionError("the last resend returns or raises")

    async def _request(self, client: httpx2.AsyncClient, call: _Call) -> httpx2.Response:
        body = None if call.body is None else json.dumps(payload.clean(call.body)).encode()
        return await client.request(
            call.method,
            call.url,
            content=body,
            headers=None if body is None else {"content-type": "application/json"},
        )

    def _at(self, path: str, flags: Mapping[str, str] | None = None) -> httpx2.URL:
        try:
            return httpx2.URL(self._url + path, params=flags)
        except httpx2.InvalidURL as error:
            raise UsageError(
                f"the agent's base URL {self._config.base_url!r}: {error} (see --base-url)"
            ) from None

    def _read(self, response: httpx2.Response) -> JsonValue:
        try:
            return payload.parse(response.content)
        except ValueError as error:
            found = payload.excerpt(response.content, self._redactor)
            raise AgentError(
                f"the agent at {self._host} gave an answer that cannot be read ({error}): {found}"
            ) from None

    def _unreachable(self, error: httpx2.HTTPError) -> AgentError:
        reason = payload.shorten(self._redactor.text(str(error))) or type(error).__name__
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
            return AgentError(f"the agent at {self._host} could not be reached: {reason}")
        return AgentError(f"the connection to the agent at {self._host} broke: {reason}")

    def _refused(self, response: httpx2.Response) -> AgentError:
        status = response.status_code
        if target := connections.redirect_of(response):
            return AgentError(
                f"the agent at {self._host} redirects to {target} ({status}), which is not followed: "
                "set --base-url to the final address"
            )
        detail = payload.error_detail(response.content, self._redactor)
        if status == 401 or (status == 403 and not self._key_held):
            return AgentAccessError(
                f"the agent at {self._host} refused the key ({status}): {detail}; "
                "set --agent-key (or the suite's apiKey) to a key of this agent"
            )
        message = f"the agent at {self._host} answered with status {status}: {detail}"
        return _NoSuchPathError(message) if status in (404, 405) else AgentError(message)


def _headers(config: AuiConfig) -> dict[str, str]:
    headers = {
        name.strip(): connections.header_value(value, f"the agent's header {name.strip()!r}")
        for name, value in config.headers.items()
    }
    if key := connections.header_value(config.key, "the agent's key"):
        headers[config.key_header.strip()] = key
    for name in headers:
        if not connections.is_header_name(name):
            raise UsageError(f"{name!r} is no name of an HTTP header")
    return headers
