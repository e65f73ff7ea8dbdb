"""An agent behind an endpoint of chat completions. Its messages: `wire`."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import CHECK_SECONDS, AgentRequest, AgentServer
from ci_evals.agents.chat import wire
from ci_evals.agents.chat.options import ADDRESS, ChatOptions
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor

_MODELS_PATH = "/models"


@dataclass
class _ChatSession:
    client: AgentClient
    messages: list[wire.Message]
    user_info: Mapping[str, JsonValue]


class ChatAgent:
    """The agent under test as a model of a chat-completions endpoint. Implements the port `Agent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, ChatOptions.model_validate(settings.options)
        self._model = settings.model or settings.agent_id or ""
        url = agent_server.base_url(settings.base_url or ADDRESS)
        headers = agent_server.headers_with_key(self._options.headers, settings)
        self._server = AgentServer(settings, url.removesuffix(wire.PATH), headers, redactor, limiter)
        self._address = self._server.at(wire.PATH, self._options.query)

    async def check(self) -> None:
        """Check the key at no cost, before a simulated user is paid for its first message.

        Lists the models; if that is refused, sends a request without messages too, since some servers refuse
        the list to every key. Raise `AgentAccessError` if the key is invalid or has no credit left.
        """
        listed = self._server.at(_MODELS_PATH, self._options.query)
        await self._server.check(
            AgentRequest("GET", listed, CHECK_SECONDS, idempotent=True),
            AgentRequest("POST", self._address, CHECK_SECONDS, idempotent=True, body={"model": self._model}),
        )

    async def open_session(self, test: Test) -> _ChatSession:
        """Begin a conversation, of which the endpoint learns with the first message."""
        messages = [*wire.opening(test, self._options), *test.history]
        return _ChatSession(self._server.new_client(), messages, test.user_info)

    async def send_message(self, session: _ChatSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and results of tools as often as the endpoint asks for them."""
        messages = [*session.messages, {"role": "user", "content": text}]
        rounds: list[wire.ChatAnswer] = []
        seconds = 0.0
        while True:
            if seconds >= timeout:
                raise AgentError(f"the agent did not answer within {timeout:g} s")
            body = wire.request(self._model, messages, session.user_info, self._options)
            # Not idempotent: an endpoint with tools of its own may have used them.
            request = AgentRequest(
                "POST",
                self._address,
                timeout - seconds,
                idempotent=False,
                body=body,
                turn_timeout=timeout,
                keys="baseUrl and model",
            )
            answer, duration = await self._server.ask(session.client, request)
            seconds += duration
            rounds.append(wire.read(answer, self._server.redactor))
            if not self._wants_results(rounds):
                break
            if len(rounds) > wire.MAX_ROUNDS:
                raise AgentError(f"the agent called tools more than {wire.MAX_ROUNDS} times in a row")
            messages += wire.results(rounds[-1], self._options.tool_results, self._server.redactor)
        reply = wire.reply(rounds, seconds, self._options, keep_raw=self._settings.debug)
        session.messages = [*messages, {"role": "assistant", "content": rounds[-1].text}]
        return reply

    async def close(self, session: _ChatSession) -> None:
        """Close the connections."""
        await self._server.end(session.client)

    def _wants_results(self, rounds: list[wire.ChatAnswer]) -> bool:
        """Return whether the agent waits for results of tools. One that has handed over gets none.

        An agent that says something beside calls of unknown tools has run them itself.
        """
        options, last = self._options, rounds[-1]
        ours = not last.text.strip() or bool(options.tool_results) or wire.offers_tools(options)
        return last.waits and ours and not wire.hands_over(rounds, options)
