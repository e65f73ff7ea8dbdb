"""The base of agents behind a server: opening, the time of a turn, the raw reply, closing.

How a server is asked, and what its answers mean, is the business of each kind.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import JsonValue
from yarl import URL

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.adapters.transport.streams import IsLast, Stream
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, AgentServer, NoSuchPathError
from ci_evals.agents.options import ServerOptions
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor

MAX_ROUNDS = 10
"""Maximum number of requests in a row that answer what an agent asks its client for."""


@dataclass
class Session:
    """One conversation, with connections of its own."""

    client: AgentClient


@dataclass
class Turn:
    """One message of the user's, with all requests until the agent's reply is there."""

    timeout: float
    """The seconds that the turn may take."""
    seconds: float = 0.0
    """Those that its requests have taken."""
    first_token_seconds: float | None = None
    """Those until the first words came, if the answer was streamed."""
    answers: list[JsonValue] = field(default_factory=list)
    is_streamed: bool = False
    _rounds: int = 0
    _before: float = 0.0
    """The seconds before the last request."""

    def add(self, seconds: float, *answers: JsonValue) -> None:
        """Add a request that took these seconds, and its answer, or the events of it."""
        self._before = self.seconds
        self.seconds += seconds
        self.answers += answers

    def left(self) -> float:
        """Return the seconds that are left; raise `AgentError` if there are none."""
        if self.seconds >= self.timeout:
            raise AgentError(f"the agent did not answer within {self.timeout:g} s")
        return self.timeout - self.seconds

    def begin_round(self, what: str) -> None:
        """Count one more request that answers what the agent did; raise `AgentError` beyond the maximum."""
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise AgentError(f"the agent {what} more than {MAX_ROUNDS} times in a row")

    def note_first_token(self, seconds: float | None) -> None:
        """Take note of the time until the last answer's first words, if they are the turn's first."""
        if self.first_token_seconds is None and seconds is not None:
            self.first_token_seconds = self._before + seconds

    @property
    def raw(self) -> JsonValue:
        """The answers as the agent sent them: the only one, else a list. A stream is a list of events."""
        if len(self.answers) == 1 and not self.is_streamed:
            return self.answers[0]
        return [*self.answers]


OptionsT = TypeVar("OptionsT", bound=ServerOptions)
SessionT = TypeVar("SessionT", bound=Session)


class ServerAgent(ABC, Generic[OptionsT, SessionT]):
    """An agent under test behind a server. Implements the port `Agent`."""

    form: type[OptionsT]
    """The form of its options."""
    wrong_server = ""
    """What is likely wrong if the server does not know the first path."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, self.form.model_validate(settings.options)
        url = self._base_url(agent_server.base_url(settings.base_url or ""))
        self._server = AgentServer(settings, url, self._headers(), redactor, limiter)
        self._prepare()

    async def open_session(self, test: Test) -> SessionT:
        """Begin a conversation."""
        async with closed_on_error(self._server.new_client()) as client:
            try:
                return await self._open(client, test)
            except NoSuchPathError as error:
                if not self.wrong_server:
                    raise
                raise AgentError(f"{error} ({self.wrong_server})") from error

    async def send_message(self, session: SessionT, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and whatever the agent asks for until it replies."""
        turn = Turn(timeout)
        reply = await self._send(session, text, turn)
        return reply.copy_with(raw=turn.raw) if self._settings.debug else reply

    async def close(self, session: SessionT) -> None:
        """Close the connections. What the server keeps stays, so that probes and people can look at it."""
        await self._server.end(session.client)

    def _base_url(self, url: str) -> str:
        """Return the address before all paths."""
        return url

    def _headers(self) -> Mapping[str, str]:
        """Return the headers of every request."""
        return agent_server.headers_with_key(self._options.headers, self._settings)

    def _prepare(self) -> None:
        """Prepare what all conversations share; raise `UsageError` for what cannot be sent."""

    @abstractmethod
    async def _open(self, client: AgentClient, test: Test) -> SessionT:
        """Begin a conversation; raise `AgentError` if the agent cannot be reached or read."""

    @abstractmethod
    async def _send(self, session: SessionT, text: str, turn: Turn) -> Reply:
        """Return the reply to a message, without the raw answers; raise `AgentError` if there is none."""

    def _request(self, turn: Turn, url: URL, body: JsonValue, keys: str = "") -> AgentRequest:
        """Return a request of a turn. It is not idempotent: the agent may act on what it is sent."""
        return AgentRequest(
            "POST", url, turn.left(), idempotent=False, body=body, turn_timeout=turn.timeout, keys=keys
        )

    async def _ask(self, session: SessionT, turn: Turn, request: AgentRequest) -> JsonValue:
        """Return the answer to a request of a turn."""
        answer, seconds = await self._server.ask(session.client, request)
        turn.add(seconds, answer)
        return answer

    async def _stream(
        self, session: SessionT, turn: Turn, request: AgentRequest, is_last: IsLast | None = None
    ) -> Stream:
        """Return the answer to a request of a turn, streamed as server-sent events."""
        stream = await self._server.stream(session.client, request, "sse", is_last)
        turn.add(stream.seconds, *stream.values)
        turn.is_streamed = True
        return stream


@asynccontextmanager
async def closed_on_error(client: AgentClient) -> AsyncIterator[AgentClient]:
    """Close the connections of a conversation that could not be opened."""
    try:
        yield client
    except BaseException:
        await client.aclose()
        raise
