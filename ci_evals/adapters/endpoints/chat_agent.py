"""An agent behind an endpoint of chat completions: when it is asked. The wire is `chat_wire`."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.endpoints import agent_http, chat_wire
from ci_evals.adapters.endpoints.agent_http import CHECK_SECONDS, AgentServer, Call
from ci_evals.adapters.transport import address
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.domain.agents import ChatOptions
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor

_MODELS_PATH = "/models"


@dataclass(frozen=True)
class ChatConfig:
    """Which agent, where, and how it is asked."""

    model: str
    key: str = field(default="", repr=False)
    base_url: str = chat_wire.DEFAULT_BASE_URL
    options: ChatOptions = field(default_factory=ChatOptions)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers, over those of the options. Their values are taken for secrets."""
    debug: bool = False
    """Whether replies keep their raw bodies."""


@dataclass
class _Session:
    client: httpx2.AsyncClient
    messages: list[chat_wire.Message]
    user_info: Mapping[str, JsonValue]


class ChatAgent:
    """The agent under test as a model of a chat-completions endpoint. Implements the port `Agent`."""

    def __init__(
        self,
        config: ChatConfig,
        *,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Opens nothing yet.

        Args:
            config: Which agent and where.
            redactor: Knows the run's secrets, for what is told of errors; the config's own are added.
            limiter: Shared by all calls to this server with this key; by default for this object alone.
            clock: Seconds, for latencies.

        Raises:
            UsageError: the address is no http(s) address, or a header cannot be sent.
        """
        self._config = config
        url = address.base(config.base_url).removesuffix(chat_wire.PATH)
        self._server = AgentServer(
            url,
            agent_http.headers_with_key(config.options.headers, config.headers, config.key),
            agent_http.knowing(redactor, (config.key, *config.headers.values())),
            limiter=limiter,
            clock=clock,
        )
        self._address = self._server.at(chat_wire.PATH, config.options.query)

    async def check(self) -> None:
        """Asks which models there are, to learn for nothing whether the key is good.

        A simulated user may have to be asked, and paid, for its first words before the agent is. Where the
        list is refused, a request without messages is made too, for some servers refuse it to every key.

        Raises:
            AgentAccessError: it is not, or has no credit left. Any other answer, or none, says nothing.
        """
        listed = self._server.at(_MODELS_PATH, self._config.options.query)
        await self._server.check(
            Call("GET", listed, CHECK_SECONDS, idempotent=True),
            Call("POST", self._address, CHECK_SECONDS, idempotent=True, body={"model": self._config.model}),
        )

    async def open_session(self, test: Test) -> _Session:
        """Begins a conversation on our side; the endpoint learns of it with the first message."""
        messages = chat_wire.opening(test, self._config.options)
        return _Session(self._server.new_client(), messages, test.user_info)

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Says `text`, and tells what its tools returned as often as the endpoint asks."""
        options = self._config.options
        messages = [*session.messages, {"role": "user", "content": text}]
        rounds: list[chat_wire.Said] = []
        seconds = 0.0
        while True:
            answer, took = await self._ask(session, messages, timeout, seconds)
            seconds += took
            rounds.append(chat_wire.read(answer, self._server.redactor))
            if not self._is_asked_for_results(rounds):
                break
            if len(rounds) > chat_wire.MAX_ROUNDS:
                raise AgentError(f"the agent called tools more than {chat_wire.MAX_ROUNDS} times in a row")
            messages += chat_wire.results(rounds[-1], options.tool_results, self._server.redactor)
        reply = chat_wire.reply(rounds, seconds, options, keep_raw=self._config.debug)
        session.messages = [*messages, {"role": "assistant", "content": rounds[-1].text}]
        return reply

    async def close(self, session: _Session) -> None:
        """Close the connections."""
        await self._server.end(session.client)

    def _is_asked_for_results(self, rounds: list[chat_wire.Said]) -> bool:
        """Whether to go on. Nothing is said any more to an agent that has handed over.

        One that says something beside calls of tools which nobody here knows has run them itself.
        """
        options, last = self._config.options, rounds[-1]
        ours = not last.text.strip() or bool(options.tool_results) or chat_wire.offers_tools(options)
        return last.waits and ours and not chat_wire.hands_over(rounds, options)

    async def _ask(
        self, session: _Session, messages: list[chat_wire.Message], longest: float, spent: float
    ) -> tuple[JsonValue, float]:
        body = chat_wire.request(self._config.model, messages, session.user_info, self._config.options)
        if spent >= longest:
            raise AgentError(f"the agent did not answer within {longest:g} s")
        # Not idempotent: an endpoint with tools of its own may have used them.
        call = Call("POST", self._address, longest - spent, idempotent=False, body=body, of_seconds=longest)
        return await self._server.ask(session.client, call)
