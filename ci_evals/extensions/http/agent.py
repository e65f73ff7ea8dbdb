"""An agent behind any JSON endpoint. Its answers: `wire`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport import addresses
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, AgentServer
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.server_agent import closed_on_error
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.http import wire
from ci_evals.extensions.http.options import HttpOptions, HttpRequest
from ci_evals.support import placeholders
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

CLOSE_SECONDS = 3.0
"""Timeout of ending a conversation: a run that is stopped has few seconds left."""


@dataclass
class _HttpSession:
    """One conversation, with the values of placeholders in its requests."""

    client: AgentClient
    values: dict[str, JsonValue]
    headers: Mapping[str, str]
    thread: Thread
    history: list[dict[str, JsonValue]] = field(default_factory=list)
    own_id: str | None = None
    """The id, if it was made here."""
    turn: int = 0
    """The number of the user's last message, from 1."""
    is_open: bool = True

    @property
    def id(self) -> JsonValue:
        """The conversation's id."""
        return self.values.get("session")


class HttpAgent:
    """The agent under test, asked as its user's options say. Implements the port `Agent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings = settings
        self._options = options = HttpOptions.model_validate(settings.options)
        agent_server.checked_headers(dict.fromkeys(options.headers, ""))
        overridden = {name.strip().lower() for name in settings.headers}
        self._varying = {
            name: value
            for name, value in options.headers.items()
            if name.lower() not in overridden and not {*placeholders.names(value)} <= {"key"}
        }
        """Headers that depend on the conversation."""
        fixed = {name: value for name, value in options.headers.items() if name not in self._varying}
        headers = agent_server.headers_with_key(fixed, settings, self._varying)
        url = agent_server.base_url(settings.base_url or "")
        self._server = AgentServer(settings, url, headers, redactor, limiter)
        self._over_websocket = options.stream == "websocket"
        self._reader = wire.Reader(
            options.reply,
            options.until,
            streamed=bool(options.stream),
            escalation_tools=options.escalation_tools,
        )

    async def open_session(self, test: Test) -> _HttpSession:
        """Begin a conversation, with a request if the options define one."""
        values = self._settings.placeholder_values(test)
        thread = Thread.of(test.history)
        async with closed_on_error(self._server.new_client()) as client:
            session = _HttpSession(client, values, {}, thread, [*test.history])
            values["session"] = await self._session_id(session)
            session.headers = self._session_headers(session)
        return session

    async def _session_id(self, session: _HttpSession) -> JsonValue:
        """Return the id of a conversation, which is made here unless the options define a request."""
        if self._options.open is None:
            session.own_id = uuid4().hex
            return session.own_id
        # A second, unused conversation does no harm: opening one counts as idempotent.
        request = self._request(session, self._options.open, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        answer, _ = await self._server.ask(session.client, request)
        path = JsonPath(self._options.open.session)
        return wire.session_of(answer, path, self._server.redactor)

    async def send_message(self, session: _HttpSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message."""
        message: dict[str, JsonValue] = {"role": "user", "content": text}
        message_id = uuid4().hex
        session.turn += 1
        session.thread.ask(text)
        messages = [*session.history, message]
        values: dict[str, JsonValue] = {
            "message": text,
            "messageId": message_id,
            "turn": session.turn,
            "history": [*session.history],
            "messages": [*messages],
            "uiMessages": [
                {"id": str(n), "role": each["role"], "parts": [{"type": "text", "text": each["content"]}]}
                for n, each in enumerate(messages)
            ],
        }
        request = self._request(session, self._options.send, timeout, idempotent=False, values=values)
        answer, seconds, first_token = await self._ask(session, request)
        self._reader.check_message(answer, message_id, self._server.redactor)
        reply = self._reader.reply(
            answer,
            seconds,
            self._server.redactor,
            thread=session.thread,
            first_token_seconds=first_token,
            keep_raw=self._settings.debug,
        )
        session.thread.take(reply.agent, self._reader.messages(answer))
        session.history += [message, {"role": "assistant", "content": reply.agent}]
        return reply

    async def _ask(
        self, session: _HttpSession, request: AgentRequest
    ) -> tuple[JsonValue, float, float | None]:
        """Return an answer, the seconds it took and, if it was streamed, those until its first words."""
        if self._options.stream is None:
            return *await self._server.ask(session.client, request), None
        is_last = self._reader.is_last if self._options.until else None
        stream = await self._server.stream(session.client, request, self._options.stream, is_last)
        events: list[JsonValue] = [wire.event_of(event) for event in stream.events]
        return events, stream.seconds, self._reader.first_token(stream.events)

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
            await session.client.aclose()
            raise
        await self._server.end(session.client, self._reader.is_last if self._over_websocket else None)

    def _request(
        self,
        session: _HttpSession,
        template: HttpRequest,
        timeout: float,
        *,
        idempotent: bool,
        values: Mapping[str, JsonValue] | None = None,
    ) -> AgentRequest:
        lookup = placeholders.lookup_in({"uuid": str(uuid4()), **session.values, **(values or {})})
        path = placeholders.text(template.path, lookup, lambda value: quote(value, safe=""))
        query = {name: placeholders.text(value, lookup) for name, value in template.query.items()}
        body = placeholders.filled(template.body, lookup)
        try:
            url = self._server.at(path, query)
        except UsageError as error:  # because of a long message, for example
            raise AgentError(str(error)) from None
        headers = session.headers or self._session_headers(session)
        option = "open" if template is self._options.open else "send"
        keys = f"baseUrl and adapterOptions.{option}"
        return AgentRequest(
            template.method, url, timeout, idempotent, body, headers, template=template.path, keys=keys
        )

    def _session_headers(self, session: _HttpSession) -> dict[str, str]:
        """Return the headers that depend on the conversation; those with its id once it has one."""
        lookup = placeholders.lookup_in({**session.values, "key": (self._settings.api_key or "").strip()})
        try:
            return {
                name: addresses.header_value(placeholders.text(value, lookup), f"the agent's header {name!r}")
                for name, value in self._varying.items()
                if "session" in session.values or "session" not in placeholders.names(value)
            }
        except UsageError as error:
            raise AgentError(str(error)) from None
