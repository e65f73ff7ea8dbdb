"""An agent behind an endpoint of chat completions. Its messages: `chat_wire`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.adapters.hand_over import hands_over
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.agents.agent_server import CHECK_SECONDS, AgentRequest
from ci_evals.agents.server_agent import ServerAgent, Session, SessionT, Turn
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extensions.openai_api import chat_wire as wire
from ci_evals.extensions.openai_api.options import ChatOptions

_MODELS_PATH = "/models"


@dataclass
class _ChatSession(Session):
    messages: list[wire.Message]
    user_info: Mapping[str, JsonValue]


class EndpointAgent(ServerAgent[ChatOptions, SessionT]):
    """A model behind an endpoint that is compatible with one of OpenAI's."""

    form = ChatOptions
    path: str
    """The path of the API."""

    def _prepare(self) -> None:
        self._model = self._settings.model or self._settings.agent_id or ""
        self._url = self._server.at(self.path, self._options.query)

    async def check(self) -> None:
        """Check the key at no cost, before a simulated user is paid for its first message.

        Lists the models; if that is refused, sends a request without messages too, since some servers refuse
        the list to every key. Raise `AgentAccessError` if the key is invalid or has no credit left.
        """
        listed = self._server.at(_MODELS_PATH, self._options.query)
        await self._server.check(
            AgentRequest("GET", listed, CHECK_SECONDS, idempotent=True),
            AgentRequest("POST", self._url, CHECK_SECONDS, idempotent=True, body={"model": self._model}),
        )

    def _base_url(self, url: str) -> str:
        return url.removesuffix(self.path)

    def _wants_results(self, text: str, waiting: Sequence[ToolCall] | None, called: Iterable[str]) -> bool:
        """Return whether the agent waits for results of tools. One that has handed over gets none.

        An agent that says something beside calls of unknown tools has run them itself.
        """
        options = self._options
        ours = not text.strip() or bool(options.tool_results) or wire.offers_tools(options)
        return bool(waiting) and ours and not hands_over(called, options.escalation_tools)


class ChatAgent(EndpointAgent[_ChatSession]):
    """The agent under test as a model of a chat-completions endpoint. Implements the port `Agent`."""

    path = wire.PATH

    async def _open(self, client: AgentClient, test: Test) -> _ChatSession:
        """Begin a conversation, of which the endpoint learns with the first message."""
        messages = [*wire.opening(test, self._options), *test.history]
        return _ChatSession(client, messages, test.user_info)

    async def _send(self, session: _ChatSession, text: str, turn: Turn) -> Reply:
        """Send a message, and results of tools as often as the endpoint asks for them."""
        options, redactor = self._options, self._server.redactor
        messages = [*session.messages, {"role": "user", "content": text}]
        rounds: list[wire.ChatAnswer] = []
        while True:
            body = wire.request(self._model, messages, session.user_info, options)
            request = self._request(turn, self._url, body, keys="baseUrl and model")
            last = wire.read(await self._ask(session, turn, request), redactor)
            rounds.append(last)
            waiting = last.calls if last.waits else None
            if not self._wants_results(last.text, waiting, wire.called(rounds)):
                break
            turn.begin_round("called tools")
            messages += wire.results(last, options.tool_results, redactor)
        reply = wire.reply(rounds, turn.seconds, options)
        session.messages = [*messages, {"role": "assistant", "content": last.text}]
        return reply
