"""An agent on a LangGraph Server. Its messages: `wire`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

from pydantic import JsonValue
from yarl import URL

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, AgentServer, NoSuchPathError
from ci_evals.agents.langgraph import wire
from ci_evals.agents.langgraph.options import ADDRESS, LangGraphOptions
from ci_evals.agents.langgraph.wire import NEW_THREAD, Object, ThreadState
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support import placeholders
from ci_evals.support.redaction import Redactor

_KEY_HEADER = {"x-api-key": "{{key}}"}
_THREADS = "/threads"


@dataclass
class _Thread:
    """One conversation."""

    client: AgentClient
    id: str
    values: Mapping[str, JsonValue]
    """The values of placeholders."""
    history: Sequence[Object] = ()
    """Messages before the first run."""
    state: ThreadState = field(default=NEW_THREAD)


class LangGraphAgent:
    """The agent under test as an assistant of a LangGraph Server. Implements the port `StatefulAgent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings = settings
        self._options = options = LangGraphOptions.model_validate(settings.options)
        names_key = "key" in placeholders.names(options.headers)
        fixed = options.headers if names_key or not settings.api_key else _KEY_HEADER | options.headers
        url = agent_server.base_url(settings.base_url or ADDRESS)
        headers = agent_server.headers_with_key(fixed, settings)
        self._server = AgentServer(settings, url, headers, redactor, limiter)

    async def open_session(self, test: Test) -> _Thread:
        """Begin a conversation: a thread."""
        client = self._server.new_client()
        try:
            # A second, unused thread does no harm: creating one counts as idempotent.
            request = AgentRequest(
                "POST", self._server.at(_THREADS), DEFAULT_TIMEOUT_SECONDS, idempotent=True, body={}
            )
            answer, _ = await self._server.ask(client, request)
            name = wire.thread_id(answer, self._server.redactor)
        except NoSuchPathError as error:
            await client.aclose()
            raise AgentError(f"{error} (is it a LangGraph Server, and the base URL right?)") from error
        except BaseException:
            await client.aclose()
            raise
        values: dict[str, JsonValue] = {
            "userInfo": dict(test.user_info),
            "agentId": self._settings.agent_id,
            "model": self._settings.model,
            "systemPrompt": test.system_prompt,
            "session": name,
        }
        history = [{**message, "id": uuid4().hex} for message in test.history]
        return _Thread(client, name, values, history)

    async def send_message(self, session: _Thread, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Run the graph on a message, and look up the thread's state when the run has ended."""
        redactor = self._server.redactor
        messages = [*session.history, wire.user_message(text)]
        session.history = ()
        lookup = _lookup({**session.values, "message": text})
        body = wire.run_request(messages, session.state, self._options, lookup)
        # Not idempotent: the tools of a run that broke off may have been used.
        request = AgentRequest(
            "POST", self._at(session, "/runs/stream"), timeout, idempotent=False, body=body
        )
        stream = await self._server.stream(session.client, request, "sse")
        error = wire.error_of(stream.events, redactor)
        after = session.state if error else await self._state(session)
        if error := error or after.error:
            reply = wire.failed(stream, session.state, self._options, messages, error)
        else:
            reply = wire.reply(stream, session.state, after, self._options, messages)
        session.state = after
        raw: JsonValue = [event.value for event in stream.events]
        return reply.model_copy(update={"raw": raw}) if self._settings.debug else reply

    async def read_state(self, session: _Thread) -> JsonValue:
        """Return the values of the thread's state, without the messages."""
        return wire.own_state(await self._state(session), self._options)

    async def close(self, session: _Thread) -> None:
        """Close the connections. The thread stays, so that probes and people can look at it."""
        await self._server.end(session.client)

    async def _state(self, session: _Thread) -> ThreadState:
        url = self._at(session, "/state")
        request = AgentRequest("GET", url, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        answer, _ = await self._server.ask(session.client, request)
        return wire.thread_state(answer, self._options, self._server.redactor)

    def _at(self, session: _Thread, path: str) -> URL:
        return self._server.at(f"{_THREADS}/{quote(session.id, safe='')}{path}")


def _lookup(values: Mapping[str, JsonValue]) -> placeholders.Lookup:
    return lambda name: values[name] if name in values else placeholders.member(dict(values), name)
