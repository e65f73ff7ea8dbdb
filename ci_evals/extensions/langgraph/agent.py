"""An agent on a LangGraph Server. Its messages: `wire`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

from pydantic import JsonValue
from yarl import URL

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest
from ci_evals.agents.server_agent import ServerAgent, Session, Turn
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.langgraph import wire
from ci_evals.extensions.langgraph.options import LangGraphOptions
from ci_evals.extensions.langgraph.wire import NEW_THREAD, Object, ThreadState
from ci_evals.support import placeholders

_KEY_HEADER = {"x-api-key": "{{key}}"}
_THREADS = "/threads"


@dataclass
class _Thread(Session):
    """One conversation."""

    id: str
    values: Mapping[str, JsonValue]
    """The values of placeholders."""
    history: Sequence[Object] = ()
    """Messages before the first run."""
    state: ThreadState = field(default=NEW_THREAD)


class LangGraphAgent(ServerAgent[LangGraphOptions, _Thread]):
    """The agent under test as an assistant of a LangGraph Server. Implements the port `StatefulAgent`."""

    form = LangGraphOptions
    wrong_server = "is it a LangGraph Server, and the base URL right?"

    def _headers(self) -> Mapping[str, str]:
        headers = self._options.headers
        if self._settings.api_key and "key" not in placeholders.names(headers):
            headers = _KEY_HEADER | headers
        return agent_server.headers_with_key(headers, self._settings)

    async def _open(self, client: AgentClient, test: Test) -> _Thread:
        """Begin a conversation: a thread."""
        # A second, unused thread does no harm: creating one counts as idempotent.
        request = AgentRequest(
            "POST", self._server.at(_THREADS), DEFAULT_TIMEOUT_SECONDS, idempotent=True, body={}
        )
        answer, _ = await self._server.ask(client, request)
        name = wire.thread_id(answer, self._server.redactor)
        values = self._settings.placeholder_values(test) | {"session": name}
        history = [{**message, "id": uuid4().hex} for message in test.history]
        return _Thread(client, name, values, history)

    async def _send(self, session: _Thread, text: str, turn: Turn) -> Reply:
        """Run the graph on a message, and look up the thread's state when the run has ended."""
        messages = [*session.history, wire.user_message(text)]
        session.history = ()
        lookup = placeholders.lookup_in({**session.values, "message": text})
        body = wire.run_request(messages, session.state, self._options, lookup)
        request = self._request(turn, self._at(session, "/runs/stream"), body)
        stream = await self._stream(session, turn, request)
        error = wire.error_of(stream.events, self._server.redactor)
        after = session.state if error else await self._state(session)
        if error := error or after.error:
            reply = wire.failed(stream, session.state, self._options, messages, error)
        else:
            reply = wire.reply(stream, session.state, after, self._options, messages)
        session.state = after
        return reply

    async def read_state(self, session: _Thread) -> JsonValue:
        """Return the values of the thread's state, without the messages."""
        return wire.own_state(await self._state(session), self._options)

    async def _state(self, session: _Thread) -> ThreadState:
        url = self._at(session, "/state")
        request = AgentRequest("GET", url, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        answer, _ = await self._server.ask(session.client, request)
        return wire.thread_state(answer, self._options, self._server.redactor)

    def _at(self, session: _Thread, path: str) -> URL:
        return self._server.at(f"{_THREADS}/{quote(session.id, safe='')}{path}")
