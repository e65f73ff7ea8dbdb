"""An agent behind the A2A protocol. Its messages: `wire`."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.hand_over import hand_over
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest
from ci_evals.agents.server_agent import ServerAgent, Session, Turn
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.a2a import wire
from ci_evals.extensions.a2a.card import Interface, interface_of
from ci_evals.extensions.a2a.options import A2aOptions
from ci_evals.extensions.a2a.wire import UNFINISHED, Answer, Call, Conversation
from ci_evals.support import placeholders
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

POLL_SECONDS = 0.5
"""Between two looks at a task that was not waited for by the server."""


@dataclass
class _Session(Session):
    """One conversation: a context of the agent's."""

    interface: Interface
    values: Mapping[str, JsonValue]
    """The values of placeholders."""
    known: Conversation = field(default=Conversation())

    @property
    def id(self) -> str | None:
        """The id of the context, once the agent has named it."""
        return self.known.context_id


class A2aAgent(ServerAgent[A2aOptions, _Session]):
    """The agent under test behind A2A 1.0 or 0.3, as its card says. Implements the port `Agent`."""

    form = A2aOptions
    wrong_server = "no agent card there: see adapterOptions.card"

    def __init__(
        self,
        settings: AgentSettings,
        *,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        super().__init__(settings, redactor=redactor, limiter=limiter)
        self._poll_seconds = poll_seconds

    def _prepare(self) -> None:
        self._card_url = agent_server.base_url(self._settings.base_url or "")
        calls = self._options.tool_calls
        self._calls = JsonPath(calls) if calls else None
        self._interface: Interface | None = None

    def _base_url(self, url: str) -> str:
        """Return the server's address: the card names the path of the agent."""
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}"

    async def _open(self, client: AgentClient, test: Test) -> _Session:
        """Begin a conversation, of which the agent learns with the first message."""
        if self._interface is None:
            self._interface = await self._read_card(client)
        return _Session(client, self._interface, self._settings.placeholder_values(test))

    async def _send(self, session: _Session, text: str, turn: Turn) -> Reply:
        """Send a message, and wait until the task is done or asks something."""
        interface, known = session.interface, session.known
        streams = interface.streams if self._options.stream is None else self._options.stream
        lookup = placeholders.lookup_in({**session.values, "message": text})
        metadata = placeholders.filled(self._options.metadata, lookup)
        call = wire.send(interface, known, text, uuid4().hex, metadata, stream=streams)
        answer, begun = Answer(context_id=known.context_id), time.monotonic()
        if streams:
            await self._stream_answer(session, turn, call, answer)
        else:
            await self._ask_answer(session, turn, call, answer)
        while answer.task_id and not answer.error and answer.state in UNFINISHED:
            await asyncio.sleep(self._poll_seconds)
            # The task goes on while a request waits for its turn: that time counts too.
            turn.seconds = time.monotonic() - begun
            turn.first_token_seconds = None
            answer = await self._poll(session, turn, answer)
            turn.seconds = time.monotonic() - begun
        reply = wire.reply(answer, known.seen, turn.seconds, self._calls, self._server.redactor)
        session.known = answer.next(known)
        handed_over = hand_over(
            (call.name for call in reply.tool_calls or ()),
            self._options.escalation_tools,
            all_known=reply.tool_calls is not None and not reply.tool_calls_partial,
        )
        return reply.copy_with(first_token_seconds=turn.first_token_seconds, handed_over=handed_over)

    async def _read_card(self, client: AgentClient) -> Interface:
        path = f"{urlsplit(self._card_url).path}{self._options.card}"
        request = AgentRequest("GET", self._server.at(path), DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        card, _ = await self._server.ask(client, request)
        return interface_of(card, self._card_url, self._server.redactor)

    async def _poll(self, session: _Session, turn: Turn, before: Answer) -> Answer:
        """Look at a task that has not ended; raise `AgentError` if the time is over."""
        if turn.seconds >= turn.timeout:
            raise AgentError(
                f"the agent did not answer within {turn.timeout:g} s: its task is {before.state}"
            )
        answer = Answer(context_id=before.context_id)
        call = wire.get_task(session.interface, before.task_id or "")
        await self._ask_answer(session, turn, call, answer)
        return answer

    async def _ask_answer(self, session: _Session, turn: Turn, call: Call, answer: Answer) -> None:
        body = await self._ask(session, turn, self._call_request(session, turn, call))
        self._add(body, session.interface, answer)
        if not (answer.message or answer.state or answer.error):
            raise AgentError("the agent's answer is neither a message nor a task")

    async def _stream_answer(self, session: _Session, turn: Turn, call: Call, answer: Answer) -> None:
        interface = session.interface
        request = self._call_request(session, turn, call)
        stream = await self._stream(session, turn, request, lambda event: wire.ends(event.value, interface))
        for event in stream.events:
            self._add(event.value, interface, answer)
        spoken = (event.seconds for event in stream.events if wire.has_words(event.value, interface))
        turn.note_first_token(next(spoken, None))

    def _add(self, body: JsonValue, interface: Interface, answer: Answer) -> None:
        """Add an update, which may be the agent's error."""
        error = wire.error_of(body, interface, self._server.redactor)
        if error is not None:
            answer.error = error
        else:
            answer.add(wire.result_of(body, interface))

    def _call_request(self, session: _Session, turn: Turn, call: Call) -> AgentRequest:
        return AgentRequest(
            call.method,
            self._server.at(call.path),
            turn.left(),
            idempotent=call.idempotent,
            turn_timeout=turn.timeout,
            body=call.body,
            headers=session.interface.headers,
        )
