"""An agent behind the A2A protocol. Its messages: `wire`."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.a2a import wire
from ci_evals.agents.a2a.card import Interface, interface_of
from ci_evals.agents.a2a.options import A2aOptions
from ci_evals.agents.a2a.wire import UNFINISHED, Answer, Call, Conversation
from ci_evals.agents.agent_server import AgentRequest, AgentServer, NoSuchPathError
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support import placeholders
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

POLL_SECONDS = 0.5
"""Between two looks at a task that was not waited for by the server."""


class _Times(NamedTuple):
    """Seconds from a message on."""

    whole: float
    first_token: float | None = None
    """If the answer was streamed."""


@dataclass
class _Session:
    """One conversation: a context of the agent's."""

    client: AgentClient
    interface: Interface
    values: Mapping[str, JsonValue]
    """The values of placeholders."""
    known: Conversation = field(default=Conversation())

    timeout: float = 0.0
    """The seconds that the turn may take."""

    @property
    def id(self) -> str | None:
        """The id of the context, once the agent has named it."""
        return self.known.context_id


class A2aAgent:
    """The agent under test behind A2A 1.0 or 0.3, as its card says. Implements the port `Agent`."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, A2aOptions.model_validate(settings.options)
        self._poll_seconds = poll_seconds
        base_url = agent_server.base_url(settings.base_url or "")
        parts = urlsplit(base_url)
        self._base_url, self._card_path = base_url, f"{parts.path}{self._options.card}"
        headers = agent_server.headers_with_key(self._options.headers, settings)
        self._server = AgentServer(settings, f"{parts.scheme}://{parts.netloc}", headers, redactor, limiter)
        calls = self._options.tool_calls
        self._calls = JsonPath(calls) if calls else None
        self._interface: Interface | None = None

    async def open_session(self, test: Test) -> _Session:
        """Begin a conversation, of which the agent learns with the first message."""
        client = self._server.new_client()
        try:
            interface = self._interface = self._interface or await self._read_card(client)
        except BaseException:
            await client.aclose()
            raise
        values: dict[str, JsonValue] = {
            "userInfo": dict(test.user_info),
            "agentId": self._settings.agent_id,
            "model": self._settings.model,
            "systemPrompt": test.system_prompt,
        }
        return _Session(client, interface, values)

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and wait until the task is done or asks something."""
        session.timeout, deadline = timeout, time.monotonic() + timeout
        streams = session.interface.streams if self._options.stream is None else self._options.stream
        metadata = placeholders.filled(self._options.metadata, _lookup({**session.values, "message": text}))
        call = wire.send(session.interface, session.known, text, uuid4().hex, metadata, stream=streams)
        answer = Answer(context_id=session.known.context_id)
        ask = self._stream if streams else self._ask
        times, raw = await ask(session, call, answer, timeout)
        while answer.task_id and not answer.error and answer.state in UNFINISHED:
            await asyncio.sleep(self._poll_seconds)
            left = deadline - time.monotonic()
            if left <= 0:
                raise AgentError(f"the agent did not answer within {timeout:g} s: its task is {answer.state}")
            call = wire.get_task(session.interface, answer.task_id)
            answer = Answer(context_id=answer.context_id)
            await self._ask(session, call, answer, left)
            times = _Times(timeout - (deadline - time.monotonic()))
        reply = wire.reply(answer, session.known.seen, times.whole, self._calls, self._server.redactor)
        session.known = answer.next(session.known)
        update: dict[str, JsonValue] = {"first_token_seconds": times.first_token}
        if self._options.escalation_tools and reply.tool_calls is not None:
            named = {call.name for call in reply.tool_calls}
            update["handed_over"] = not named.isdisjoint(self._options.escalation_tools)
        if self._settings.debug:
            update["raw"] = raw
        return reply.model_copy(update=update)

    async def close(self, session: _Session) -> None:
        """Close the connections."""
        await self._server.end(session.client)

    async def _read_card(self, client: AgentClient) -> Interface:
        request = AgentRequest(
            "GET", self._server.at(self._card_path), DEFAULT_TIMEOUT_SECONDS, idempotent=True
        )
        try:
            card, _ = await self._server.ask(client, request)
        except NoSuchPathError as error:
            raise AgentError(f"{error} (no agent card there: see adapterOptions.card)") from error
        return interface_of(card, self._base_url, self._server.redactor)

    async def _ask(
        self, session: _Session, call: Call, answer: Answer, seconds: float
    ) -> tuple[_Times, JsonValue]:
        body, duration = await self._server.ask(session.client, self._request(session, call, seconds))
        self._add(body, session.interface, answer)
        if not (answer.message or answer.state or answer.error):
            raise AgentError("the agent's answer is neither a message nor a task")
        return _Times(duration), body

    async def _stream(
        self, session: _Session, call: Call, answer: Answer, seconds: float
    ) -> tuple[_Times, JsonValue]:
        interface = session.interface
        request = self._request(session, call, seconds)
        stream = await self._server.stream(
            session.client, request, "sse", lambda event: wire.ends(event.value, interface)
        )
        for event in stream.events:
            self._add(event.value, interface, answer)
        spoken = (event.seconds for event in stream.events if wire.has_words(event.value, interface))
        return _Times(stream.seconds, next(spoken, None)), [event.value for event in stream.events]

    def _add(self, body: JsonValue, interface: Interface, answer: Answer) -> None:
        """Add an update, which may be the agent's error."""
        error = wire.error_of(body, interface, self._server.redactor)
        if error is not None:
            answer.error = error
        else:
            answer.add(wire.result_of(body, interface))

    def _request(self, session: _Session, call: Call, seconds: float) -> AgentRequest:
        return AgentRequest(
            call.method,
            self._server.at(call.path),
            seconds,
            idempotent=call.idempotent,
            turn_timeout=session.timeout,
            body=call.body,
            headers=session.interface.headers,
        )


def _lookup(values: Mapping[str, JsonValue]) -> placeholders.Lookup:
    return lambda name: values[name] if name in values else placeholders.member(dict(values), name)
