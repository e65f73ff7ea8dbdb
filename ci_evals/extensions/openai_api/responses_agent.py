"""An agent behind an endpoint of OpenAI's Responses API. Its messages: `responses_wire`."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.agents.server_agent import Session, Turn
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.openai_api import responses_wire as wire
from ci_evals.extensions.openai_api.chat_agent import EndpointAgent
from ci_evals.extensions.openai_api.chat_wire import Message
from ci_evals.extensions.openai_api.responses_wire import Answer


@dataclass
class _ResponsesSession(Session):
    """One conversation, which the endpoint keeps, or else the client."""

    base: Message
    """What all requests have in common."""
    previous: str | None = None
    """The id of the last response, if the endpoint keeps the conversation."""
    history: list[JsonValue] = field(default_factory=list)
    """Items before the first message that the endpoint has not seen."""
    items: list[JsonValue] = field(default_factory=list)
    """All items so far, if the client keeps it."""


class ResponsesAgent(EndpointAgent[_ResponsesSession]):
    """The agent under test as a model of a Responses endpoint. Implements the port `Agent`."""

    path = wire.PATH

    def _prepare(self) -> None:
        super()._prepare()
        self._endpoint_keeps = wire.keeps_conversations(self._options)

    async def _open(self, client: AgentClient, test: Test) -> _ResponsesSession:
        """Begin a conversation, of which the endpoint learns with the first message."""
        base = wire.base_request(self._model, test, self._options)
        return _ResponsesSession(client, base, history=[*test.history])

    async def _send(self, session: _ResponsesSession, text: str, turn: Turn) -> Reply:
        """Send a message, and results of tools as often as the endpoint asks for them."""
        new: list[JsonValue] = [*session.history, wire.user_message(text)]
        session.history = []
        rounds: list[Answer] = []
        while True:
            answer = await self._ask_with(session, turn, new)
            rounds.append(answer)
            waiting = answer.waiting if answer.error is None else None
            if not self._wants_results(answer.text, waiting, wire.called(rounds)):
                return wire.reply(rounds, turn.seconds, self._options)
            turn.begin_round("called tools")
            new = wire.results(answer, self._options.tool_results, self._server.redactor)

    async def _ask_with(self, session: _ResponsesSession, turn: Turn, new: list[JsonValue]) -> Answer:
        """Send new items after those before them."""
        if not self._endpoint_keeps:
            session.items += new
            new = session.items
        body: Message = {**session.base, "input": [*new]}
        if session.previous is not None:
            body["previous_response_id"] = session.previous
        request = self._request(turn, self._url, body)
        answer = wire.read(await self._ask(session, turn, request), self._server.redactor)
        if answer.error is not None:
            return answer
        if not self._endpoint_keeps:
            session.items += answer.items
        elif answer.id is None:
            raise AgentError(
                "the agent's answer has no id, by which the next message could continue the conversation; "
                "set store: false in adapterOptions.request"
            )
        else:
            session.previous = answer.id
        return answer
