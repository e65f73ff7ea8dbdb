"""An agent behind any JSON endpoint: when and how it is asked. What its answers mean: `http_wire`."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.endpoints import agent_http, http_wire
from ci_evals.adapters.endpoints.agent_http import AgentServer, Call
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
"""The longest to wait for the end of a conversation: a run that is stopped has few seconds left."""


@dataclass(frozen=True)
class HttpConfig:
    """Which agent, where, and how it is asked."""

    base_url: str
    options: HttpOptions
    key: str = field(default="", repr=False)
    agent_id: str | None = None
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers, over those of the options. Their values are taken for secrets."""
    debug: bool = False
    """Whether replies keep their raw body."""
    open_timeout: float = DEFAULT_TIMEOUT_SECONDS
    """Seconds that opening a conversation may take; a message has its turn's timeout."""


@dataclass
class _Session:
    """One conversation: its own client, and what stands for the names in its requests."""

    client: httpx2.AsyncClient
    facts: dict[str, JsonValue]
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
        """Opens nothing yet.

        Args:
            config: Which agent and where.
            redactor: Knows the run's secrets, for what is told of errors; the config's own are added.
            limiter: Shared by all calls to this server with this key; by default for this object alone.
            clock: Seconds, for latencies.
            new_id: A fresh id for each message, and for a conversation that the agent gives none.

        Raises:
            UsageError: the address is no http(s) address, or a header cannot be sent.
        """
        self._config = config
        self._options = options = config.options
        fixed, self._varying = _headers(config)
        self._server = AgentServer(
            address.base(config.base_url),
            agent_http.headers_with_key(
                fixed, config.headers, config.key, placed="key" in placeholders.names(self._varying)
            ),
            agent_http.knowing(redactor, (config.key, *config.headers.values())),
            limiter=limiter,
            clock=clock,
        )
        self._session_path = JsonPath(options.open.session) if options.open else None
        self._reader = http_wire.Reader(options.reply)
        self._new_id = new_id

    async def open_session(self, test: Test) -> _Session:
        """Begins a conversation, where the agent wants that; else on our side alone."""
        facts: dict[str, JsonValue] = {
            "userInfo": dict(test.user_info),
            "agentId": self._config.agent_id,
            "model": self._config.model,
            "systemPrompt": test.system_prompt,
        }
        session = _Session(self._server.new_client(), facts, {})
        try:
            await self._open(session)
        except BaseException:
            await agent_http.close(session.client)
            raise
        return session

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Says `text`."""
        said: JsonValue = {"role": "user", "content": text}
        message_id = self._new_id()
        words: dict[str, JsonValue] = {
            "message": text,
            "messageId": message_id,
            "history": [*session.history],
            "messages": [*session.history, said],
        }
        call = self._call(session, self._options.send, timeout, idempotent=False, words=words)
        answer, seconds = await self._server.ask(session.client, call)
        self._reader.check_message(answer, message_id, self._server.redactor)
        reply = self._reader.reply(answer, seconds, self._server.redactor, keep_raw=self._config.debug)
        session.history += [said, {"role": "assistant", "content": reply.agent}]
        return reply

    async def close(self, session: _Session) -> None:
        """Ends the conversation, where the agent wants to know; what it says to that is not looked at."""
        ending, session.is_open, was_open = self._options.close, False, session.is_open
        try:
            if ending and was_open:
                call = self._call(session, ending, CLOSE_SECONDS, idempotent=False)
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._server.send(session.client, call)
        except (AgentError, TimeoutError):
            pass  # it is of no use to the conversation any more
        except BaseException:
            await agent_http.close(session.client)
            raise
        await self._server.end(session.client)

    async def _open(self, session: _Session) -> None:
        opening = self._options.open
        if opening is None or self._session_path is None:
            session.facts["session"] = self._new_id()
        else:
            # A second conversation that nobody speaks in does no harm: opening one counts as idempotent.
            call = self._call(session, opening, self._config.open_timeout, idempotent=True)
            answer, _ = await self._server.ask(session.client, call)
            session.facts["session"] = http_wire.session_of(answer, self._session_path, self._server.redactor)
        session.headers = self._own_headers(session)

    def _call(
        self,
        session: _Session,
        request: HttpRequest,
        timeout: float,
        *,
        idempotent: bool,
        words: Mapping[str, JsonValue] | None = None,
    ) -> Call:
        lookup = _lookup({**session.facts, **(words or {})})
        path = placeholders.text(request.path, lookup, lambda value: quote(value, safe=""))
        query = {name: placeholders.text(value, lookup) for name, value in request.query.items()}
        body = placeholders.filled(request.body, lookup)
        try:
            url = self._server.at(path, query)
        except UsageError as error:  # too long, say: it depends on what was said
            raise AgentError(str(error)) from None
        headers = session.headers or self._own_headers(session)
        return Call(request.method, url, timeout, idempotent, body, headers, template=request.path)

    def _own_headers(self, session: _Session) -> dict[str, str]:
        """The headers that hang on the conversation; without those of its id until it has one."""
        lookup = _lookup({**session.facts, "key": self._config.key.strip()})
        known = {
            name: placeholders.text(value, lookup)
            for name, value in self._varying.items()
            if "session" in session.facts or "session" not in placeholders.names(value)
        }
        try:
            return {
                name: connections.header_value(value, f"the agent's header {name!r}")
                for name, value in known.items()
            }
        except UsageError as error:
            raise AgentError(str(error)) from None


def _headers(config: HttpConfig) -> tuple[dict[str, str], dict[str, str]]:
    """The options' headers: those that are known now, and those that hang on the conversation."""
    headers = config.options.headers
    agent_http.checked_headers(dict.fromkeys(headers, ""))
    overridden = {name.strip().lower() for name in config.headers}
    varying = {
        name: value
        for name, value in headers.items()
        if any(found != "key" for found in placeholders.names(value)) and name.lower() not in overridden
    }
    return {name: value for name, value in headers.items() if name not in varying}, varying


def _lookup(facts: Mapping[str, JsonValue]) -> placeholders.Lookup:
    return lambda name: facts[name] if name in facts else placeholders.member(dict(facts), name)
