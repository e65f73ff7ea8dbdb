"""An agent on a Rasa server. Its messages: `wire`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, AgentServer, NoSuchPathError
from ci_evals.agents.rasa import wire
from ci_evals.agents.rasa.options import ADDRESS, RasaOptions
from ci_evals.agents.rasa.wire import Tracker
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support import placeholders
from ci_evals.support.redaction import Redactor


@dataclass
class _Session:
    """One conversation."""

    client: AgentClient
    id: str
    """The sender of its messages."""
    metadata: JsonValue
    tracker: Tracker | None

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


class RasaAgent:
    """The agent under test behind Rasa's REST channel. Implements the port `StatefulAgent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, RasaOptions.model_validate(settings.options)
        names_key = "key" in placeholders.names(self._options.headers)
        keyed = settings if names_key else replace(settings, api_key=None)
        self._query = {"token": settings.api_key} if settings.api_key and not names_key else {}
        headers = agent_server.headers_with_key(self._options.headers, keyed)
        url = agent_server.base_url(settings.base_url or ADDRESS)
        self._server = AgentServer(settings, url, headers, redactor, limiter)

    async def open_session(self, test: Test) -> _Session:
        """Begin a conversation: a sender of its own, with the slots that the options set."""
        values: dict[str, JsonValue] = {
            "userInfo": dict(test.user_info),
            "agentId": self._settings.agent_id,
            "model": self._settings.model,
            "systemPrompt": test.system_prompt,
        }
        lookup = _lookup(values)
        metadata = placeholders.filled(self._options.metadata, lookup)
        session = _Session(self._server.new_client(), uuid4().hex, metadata, None)
        try:
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
        except BaseException:
            await session.client.aclose()
            raise
        return session

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and look up what the assistant did."""
        body: dict[str, JsonValue] = {"sender": session.id, "message": text}
        body |= {"metadata": session.metadata} if session.metadata else {}
        url = self._server.at(f"/webhooks/{self._options.channel}/webhook", self._query)
        # Not idempotent: the assistant may have acted on the message.
        request = AgentRequest("POST", url, timeout, idempotent=False, body=body)
        answer, seconds = await self._server.ask(session.client, request)
        words = wire.words(answer, session.id, self._server.redactor)
        before = session.tracker
        session.tracker = await self._tracker(session) if before else None
        reply = wire.reply(words, seconds, before, session.tracker, self._options)
        return reply.model_copy(update={"raw": answer}) if self._settings.debug else reply

    async def read_state(self, session: _Session) -> JsonValue:
        """Return the slots."""
        return dict((await self._tracker(session)).slots or {})

    async def close(self, session: _Session) -> None:
        """Close the connections. The tracker stays, so that probes and people can look at it."""
        await self._server.end(session.client)

    async def _tracker(self, session: _Session) -> Tracker:
        answer = await self._conversation(session, "/tracker")
        return wire.tracker(answer, self._server.redactor)

    async def _conversation(self, session: _Session, path: str, body: JsonValue = None) -> JsonValue:
        """Ask for the conversation, or add events to it."""
        query = {**self._query, **({} if body else {"include_events": "ALL"})}
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


def _lookup(values: Mapping[str, JsonValue]) -> placeholders.Lookup:
    return lambda name: values[name] if name in values else placeholders.member(dict(values), name)
