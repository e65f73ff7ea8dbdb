"""An agent behind any JSON endpoint. Its answers: `http_wire`."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.endpoints import agent_server, http_wire
from ci_evals.adapters.endpoints.agent_server import AgentRequest, AgentServer
from ci_evals.adapters.transport import address, connections
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.domain.agents import HttpOptions, HttpRequest
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support import placeholders
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

CLOSE_SECONDS = 3.0
"""Timeout of ending a conversation: a run that is stopped has few seconds left."""


@dataclass(frozen=True)
class HttpConfig:
    """Settings of an agent behind a JSON endpoint."""

    base_url: str
    options: HttpOptions
    key: str = field(default="", repr=False)
    agent_id: str | None = None
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that replace those of the options. Their values are secrets."""
    debug: bool = False
    """True if replies keep their raw body."""
    open_timeout: float = DEFAULT_TIMEOUT_SECONDS
    """Seconds that opening a conversation may take; a message has its turn's timeout."""


@dataclass
class _HttpSession:
    """One conversation, with the values of placeholders in its requests."""

    client: httpx2.AsyncClient
    values: dict[str, JsonValue]
    headers: Mapping[str, str]
    history: list[JsonValue] = field(default_factory=list)
    is_open: bool = True


class HttpAgent:
    """The agent under test, asked as its user's options say. Implements the port `Agent`."""

    def __init__(
        self,
        config: HttpConfig,
        *,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
        clock: Callable[[], float] = time.perf_counter,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        """Prepare requests without opening connections; arguments as for `AgentServer`.

        Raises:
            UsageError: the address is no http(s) address, or a header cannot be sent.
        """
        self._config = config
        self._options = options = config.options
        fixed, self._varying = _headers(config)
        self._server = AgentServer(
            address.base(config.base_url),
            agent_server.headers_with_key(
                fixed, config.headers, config.key, placed="key" in placeholders.names(self._varying)
            ),
            (config.key, *config.headers.values()),
            redactor=redactor,
            limiter=limiter,
            clock=clock,
        )
        self._session_path = JsonPath(options.open.session) if options.open else None
        self._reader = http_wire.Reader(options.reply)
        self._new_id = new_id

    async def open_session(self, test: Test) -> _HttpSession:
        """Begin a conversation, with a request if the options define one."""
        values: dict[str, JsonValue] = {
            "userInfo": dict(test.user_info),
            "agentId": self._config.agent_id,
            "model": self._config.model,
            "systemPrompt": test.system_prompt,
        }
        session = _HttpSession(self._server.new_client(), values, {})
        try:
            await self._open(session)
        except BaseException:
            await agent_server.close(session.client)
            raise
        return session

    async def send_message(self, session: _HttpSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message."""
        message: JsonValue = {"role": "user", "content": text}
        message_id = self._new_id()
        values: dict[str, JsonValue] = {
            "message": text,
            "messageId": message_id,
            "history": [*session.history],
            "messages": [*session.history, message],
        }
        request = self._request(session, self._options.send, timeout, idempotent=False, values=values)
        answer, seconds = await self._server.ask(session.client, request)
        self._reader.check_message(answer, message_id, self._server.redactor)
        reply = self._reader.reply(answer, seconds, self._server.redactor, keep_raw=self._config.debug)
        session.history += [message, {"role": "assistant", "content": reply.agent}]
        return reply

    async def close(self, session: _HttpSession) -> None:
        """End the conversation, with a request if the options define one. Its answer is ignored."""
        template, session.is_open, was_open = self._options.close, False, session.is_open
        try:
            if template and was_open:
                request = self._request(session, template, CLOSE_SECONDS, idempotent=False)
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._server.send(session.client, request)
        except (AgentError, TimeoutError):
            pass  # the conversation is over anyway
        except BaseException:
            await agent_server.close(session.client)
            raise
        await self._server.end(session.client)

    async def _open(self, session: _HttpSession) -> None:
        template = self._options.open
        if template is None or self._session_path is None:
            session.values["session"] = self._new_id()
        else:
            # A second, unused conversation does no harm: opening one counts as idempotent.
            request = self._request(session, template, self._config.open_timeout, idempotent=True)
            answer, _ = await self._server.ask(session.client, request)
            session.values["session"] = http_wire.session_of(
                answer, self._session_path, self._server.redactor
            )
        session.headers = self._session_headers(session)

    def _request(
        self,
        session: _HttpSession,
        template: HttpRequest,
        timeout: float,
        *,
        idempotent: bool,
        values: Mapping[str, JsonValue] | None = None,
    ) -> AgentRequest:
        lookup = _lookup({**session.values, **(values or {})})
        path = placeholders.text(template.path, lookup, lambda value: quote(value, safe=""))
        query = {name: placeholders.text(value, lookup) for name, value in template.query.items()}
        body = placeholders.filled(template.body, lookup)
        try:
            url = self._server.at(path, query)
        except UsageError as error:  # because of a long message, for example
            raise AgentError(str(error)) from None
        headers = session.headers or self._session_headers(session)
        return AgentRequest(template.method, url, timeout, idempotent, body, headers, template=template.path)

    def _session_headers(self, session: _HttpSession) -> dict[str, str]:
        """Return the headers that depend on the conversation; those with its id once it has one."""
        lookup = _lookup({**session.values, "key": self._config.key.strip()})
        try:
            return {
                name: connections.header_value(
                    placeholders.text(value, lookup), f"the agent's header {name!r}"
                )
                for name, value in self._varying.items()
                if "session" in session.values or "session" not in placeholders.names(value)
            }
        except UsageError as error:
            raise AgentError(str(error)) from None


def _headers(config: HttpConfig) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options' headers: those known now, and those that depend on the conversation."""
    headers = config.options.headers
    agent_server.checked_headers(dict.fromkeys(headers, ""))
    overridden = {name.strip().lower() for name in config.headers}
    varying = {
        name: value
        for name, value in headers.items()
        if any(placeholder != "key" for placeholder in placeholders.names(value))
        and name.lower() not in overridden
    }
    return {name: value for name, value in headers.items() if name not in varying}, varying


def _lookup(values: Mapping[str, JsonValue]) -> placeholders.Lookup:
    return lambda name: values[name] if name in values else placeholders.member(dict(values), name)
