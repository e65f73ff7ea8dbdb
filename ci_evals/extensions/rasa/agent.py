"""An agent on a Rasa server. Its messages: `wire`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, NoSuchPathError
from ci_evals.agents.server_agent import ServerAgent, Session, Turn
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.rasa import wire
from ci_evals.extensions.rasa.options import RasaOptions
from ci_evals.extensions.rasa.wire import Tracker
from ci_evals.support import placeholders


@dataclass
class _Conversation(Session):
    """One conversation."""

    id: str
    """The sender of its messages."""
    metadata: JsonValue
    tracker: Tracker | None = None

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


class RasaAgent(ServerAgent[RasaOptions, _Conversation]):
    """The agent under test behind Rasa's REST channel. Implements the port `StatefulAgent`."""

    form = RasaOptions

    async def _open(self, client: AgentClient, test: Test) -> _Conversation:
        """Begin a conversation: a sender of its own, with the slots that the options set."""
        lookup = placeholders.lookup_in(self._settings.placeholder_values(test))
        metadata = placeholders.filled(self._options.metadata, lookup)
        session = _Conversation(client, uuid4().hex, metadata)
        if self._options.tracker:  # first, since this begins Rasa's session
            session.tracker = await self._tracker(session)
        if self._options.slots:
            slots: list[JsonValue] = [
                {"event": "slot", "name": name, "value": placeholders.filled(value, lookup)}
                for name, value in self._options.slots.items()
            ]
            # Setting them twice does no harm: it counts as idempotent.
            await self._conversation(session, "/tracker/events", slots)
            session.tracker = await self._tracker(session) if session.tracker else None
        return session

    async def _send(self, session: _Conversation, text: str, turn: Turn) -> Reply:
        """Send a message, and look up what the assistant did."""
        body: dict[str, JsonValue] = {"sender": session.id, "message": text}
        body |= {"metadata": session.metadata} if session.metadata else {}
        url = self._server.at(f"/webhooks/{self._options.channel}/webhook", self._query)
        answer = await self._ask(session, turn, self._request(turn, url, body))
        words = wire.words(answer, session.id, self._server.redactor)
        before = session.tracker
        session.tracker = await self._tracker(session) if before else None
        return wire.reply(words, turn.seconds, before, session.tracker, self._options)

    async def read_state(self, session: _Conversation) -> JsonValue:
        """Return the slots."""
        return dict((await self._tracker(session)).slots or {})

    @property
    def _names_key(self) -> bool:
        """True if a header carries the key."""
        return "key" in placeholders.names(self._options.headers)

    @property
    def _query(self) -> Mapping[str, str]:
        """The parameters of every request."""
        key = self._settings.api_key
        return {"token": key} if key and not self._names_key else {}

    def _headers(self) -> Mapping[str, str]:
        settings = self._settings if self._names_key else replace(self._settings, api_key=None)
        return agent_server.headers_with_key(self._options.headers, settings)

    async def _tracker(self, session: _Conversation) -> Tracker:
        answer = await self._conversation(session, "/tracker")
        return wire.tracker(answer, self._server.redactor)

    async def _conversation(self, session: _Conversation, path: str, body: JsonValue = None) -> JsonValue:
        """Ask for the conversation, or add events to it."""
        query = {**self._query}
        if not body:
            query["include_events"] = "ALL"
        url = self._server.at(f"/conversations/{session.id}{path}", query)
        method = "POST" if body else "GET"
        try:
            answer, _ = await self._server.ask(
                session.client, AgentRequest(method, url, DEFAULT_TIMEOUT_SECONDS, idempotent=True, body=body)
            )
        except NoSuchPathError as error:
            raise AgentError(
                f"{error}; start Rasa with --enable-api, or set adapterOptions.tracker to false"
            ) from error
        return answer
