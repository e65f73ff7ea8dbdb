"""An agent behind an endpoint of OpenAI's Responses API. Its messages: `wire`."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import CHECK_SECONDS, AgentRequest, AgentServer
from ci_evals.agents.chat import wire as chat_wire
from ci_evals.agents.chat.options import ADDRESS, ChatOptions
from ci_evals.agents.chat.wire import Message
from ci_evals.agents.responses import wire
from ci_evals.agents.responses.wire import Answer
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor


@dataclass
class _ResponsesSession:
    """One conversation, which the endpoint keeps, or else the client."""

    client: AgentClient
    base: Message
    """What all requests have in common."""
    previous: str | None = None
    """The id of the last response, if the endpoint keeps the conversation."""
    history: list[JsonValue] = field(default_factory=list)
    """Items before the first message that the endpoint has not seen."""
    items: list[JsonValue] = field(default_factory=list)
    """All items so far, if the client keeps it."""


class ResponsesAgent:
    """The agent under test as a model of a Responses endpoint. Implements the port `Agent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, ChatOptions.model_validate(settings.options)
        self._model = settings.model or settings.agent_id or ""
        url = agent_server.base_url(settings.base_url or ADDRESS)
        headers = agent_server.headers_with_key(self._options.headers, settings)
        url = url.removesuffix(wire.PATH)
        self._server = AgentServer(settings, url, headers, redactor, limiter)
        self._address = self._server.at(wire.PATH, self._options.query)
        self._endpoint_keeps = wire.keeps_conversations(self._options)

    async def check(self) -> None:
        """Check the key at no cost; raise `AgentAccessError` if it is invalid or has no credit left."""
        listed = self._server.at("/models", self._options.query)
        await self._server.check(
            AgentRequest("GET", listed, CHECK_SECONDS, idempotent=True),
            AgentRequest("POST", self._address, CHECK_SECONDS, idempotent=True, body={"model": self._model}),
        )

    async def open_session(self, test: Test) -> _ResponsesSession:
        """Begin a conversation, of which the endpoint learns with the first message."""
        base = wire.base_request(self._model, test, self._options)
        return _ResponsesSession(self._server.new_client(), base, history=[*test.history])

    async def send_message(self, session: _ResponsesSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and results of tools as often as the endpoint asks for them."""
        new: list[JsonValue] = [*session.history, wire.user_message(text)]
        session.history = []
        rounds: list[Answer] = []
        seconds = 0.0
        while True:
            if seconds >= timeout:
                raise AgentError(f"the agent did not answer within {timeout:g} s")
            answer, duration = await self._ask(session, new, timeout - seconds, timeout)
            seconds += duration
            rounds.append(answer)
            if not self._wants_results(rounds):
                return wire.reply(rounds, seconds, self._options, keep_raw=self._settings.debug)
            if len(rounds) > chat_wire.MAX_ROUNDS:
                raise AgentError(f"the agent called tools more than {chat_wire.MAX_ROUNDS} times in a row")
            new = wire.results(answer, self._options.tool_results, self._server.redactor)

    async def close(self, session: _ResponsesSession) -> None:
        """Close the connections."""
        await self._server.end(session.client)

    async def _ask(
        self, session: _ResponsesSession, new: list[JsonValue], seconds_left: float, turn_timeout: float
    ) -> tuple[Answer, float]:
        """Send new items after those before them."""
        session.items += [] if self._endpoint_keeps else new
        body: Message = {**session.base, "input": [*(new if self._endpoint_keeps else session.items)]}
        if session.previous is not None:
            body["previous_response_id"] = session.previous
        # Not idempotent: an endpoint with tools of its own may have used them.
        request = AgentRequest(
            "POST", self._address, seconds_left, idempotent=False, body=body, turn_timeout=turn_timeout
        )
        body_of_answer, duration = await self._server.ask(session.client, request)
        answer = wire.read(body_of_answer, self._server.redactor)
        if answer.error is not None:
            return answer, duration
        if not self._endpoint_keeps:
            session.items += answer.items
        elif answer.id is None:
            raise AgentError(
                "the agent's answer has no id, by which the next message could continue the conversation; "
                "set store: false in adapterOptions.request"
            )
        else:
            session.previous = answer.id
        return answer, duration

    def _wants_results(self, rounds: list[Answer]) -> bool:
        """Return whether the agent waits for results of tools. One that has handed over gets none.

        An agent that says something beside calls of unknown tools has run them itself.
        """
        options, last = self._options, rounds[-1]
        if last.error is not None:
            return False
        ours = not last.text.strip() or bool(options.tool_results) or chat_wire.offers_tools(options)
        return bool(last.waiting) and ours and not wire.hands_over(rounds, options)
