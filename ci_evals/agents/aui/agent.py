"""An agent behind AUI's task API. Its messages: `wire`."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport import addresses
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents import agent_server
from ci_evals.agents.agent_server import AgentRequest, AgentServer
from ci_evals.agents.aui import wire
from ci_evals.agents.aui.options import AuiOptions
from ci_evals.agents.server_agent import closed_on_error
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor

TRACE_TIMEOUT_SECONDS = 30.0
"""Maximum wait for a trace that takes its own request. The reply is there already."""


@dataclass
class _AuiSession:
    """One conversation, with the user's data that goes with every message."""

    client: AgentClient
    task_id: str
    variables: Mapping[str, JsonValue]
    fetches_traces: bool = True

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task_id


class AuiAgent:
    """The agent under test, spoken to by AUI's task API. Implements the port `Agent`."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
        open_timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent.

        Creating a task may take `open_timeout` seconds; a message has its turn's timeout.
        """
        self._settings, self._open_timeout = settings, open_timeout
        self._options = AuiOptions.model_validate(settings.options)
        url = wire.external_url(settings.base_url or "")
        headers = agent_server.checked_headers(settings.headers)
        if key := addresses.header_value(settings.api_key or "", "the agent's key"):
            headers |= agent_server.checked_headers({self._options.key_header: key})
        self._server = AgentServer(settings, url, headers, redactor, limiter)
        # Made once: reading an address takes a noticeable share of a call's processor time.
        self._tasks = self._server.at(wire.TASKS_PATH)
        self._messages = self._server.at(wire.MESSAGE_PATH, wire.MESSAGE_FLAGS)

    async def open_session(self, test: Test) -> _AuiSession:
        """Create a task for a new user."""
        body = wire.task_body(f"ci-evals-{uuid4().hex}", self._settings.agent_id, self._options)
        # A second, unused task does no harm: creating one counts as idempotent.
        request = AgentRequest("POST", self._tasks, self._open_timeout, idempotent=True, body=body)
        async with closed_on_error(self._server.new_client()) as client:
            task, _ = await self._server.ask(client, request)
            return _AuiSession(client, wire.task_id_of(task, self._server.redactor), test.user_info)

    async def send_message(self, session: _AuiSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and request the trace if the reply lacks it."""
        request = AgentRequest(
            "POST",
            self._messages,
            timeout,
            idempotent=False,
            body=wire.message_body(session.task_id, text, session.variables),
        )
        answer, seconds = await self._server.ask(session.client, request)
        wire.check_task(answer, session.task_id, self._server.redactor)
        trace = None
        if wire.trace_of(answer) is None and session.fetches_traces:
            trace = await self._fetch_trace(session, wire.message_id_of(answer), timeout)
        return wire.read_reply(
            answer, seconds, self._server.redactor, fetched_trace=trace, keep_raw=self._settings.debug
        )

    async def close(self, session: _AuiSession) -> None:
        """Close the connections; the API cannot end a task."""
        await self._server.end(session.client)

    async def _fetch_trace(self, session: _AuiSession, message_id: str | None, longest: float) -> JsonValue:
        """Return the trace of a reply that came without; None if there is none, which is no error."""
        if message_id is None:
            return None
        request = AgentRequest(
            "GET",
            self._server.at(wire.trace_path(session.task_id, message_id), wire.TRACE_FLAGS),
            min(longest, TRACE_TIMEOUT_SECONDS),
            idempotent=True,
        )
        try:
            answer, _ = await self._server.ask(session.client, request)
        except (agent_server.NoSuchPathError, AgentAccessError):
            session.fetches_traces = False
            return None
        except AgentError:
            return None
        return wire.fetched_trace_of(answer, message_id)
