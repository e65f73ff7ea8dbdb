"""An agent behind a server of Google's Agent Development Kit. Its events: `wire`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport import payload
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.adapters.transport.streams import Event, Stream
from ci_evals.agents import agent_server
from ci_evals.agents.adk import wire
from ci_evals.agents.adk.options import ADDRESS, AdkOptions
from ci_evals.agents.adk.wire import Message, Run
from ci_evals.agents.agent_server import AgentRequest, AgentServer, NoSuchPathError
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.support.redaction import Redactor


@dataclass
class _AdkSession:
    """One conversation."""

    client: AgentClient
    id: str
    user: str

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


@dataclass
class _Turn:
    """The runs for one message: more than one if the agent asks for confirmations."""

    runs: list[Run] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    seconds: float = 0.0
    first_token_seconds: float | None = None

    def add(self, run: Run, stream: Stream) -> None:
        if self.first_token_seconds is None and run.first_token_seconds is not None:
            self.first_token_seconds = self.seconds + run.first_token_seconds
        self.runs.append(run)
        self.events += stream.events
        self.seconds += stream.seconds


class AdkAgent:
    """The agent under test as an app of an ADK server. Implements the port `StatefulAgent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, AdkOptions.model_validate(settings.options)
        url = agent_server.base_url(settings.base_url or ADDRESS)
        headers = agent_server.headers_with_key(self._options.headers, settings)
        self._server = AgentServer(settings, url, headers, redactor, limiter)

    async def open_session(self, test: Test) -> _AdkSession:
        """Begin a conversation: a session, with the user's data as its first state."""
        # State of users is shared by their sessions, so each conversation has a user of its own.
        name = uuid4().hex
        user = self._options.user_id or f"ci-evals-{name}"
        session = _AdkSession(self._server.new_client(), name, user)
        path, body = self._path(session), {**self._options.state, **test.user_info}
        try:
            if test.history:
                path, _, _ = path.rpartition("/")
                events = wire.history(test.history, await self._root_agent(session))
                body = {"session_id": name, "state": body, "events": events}
            # Not idempotent: a session that is there already is refused.
            request = AgentRequest(
                "POST", self._server.at(path), DEFAULT_TIMEOUT_SECONDS, idempotent=False, body=body
            )
            await self._server.ask(session.client, request)
        except NoSuchPathError as error:
            await session.client.aclose()
            raise AgentError(f"{error} (is it an ADK server, and the base URL right?)") from error
        except BaseException:
            await session.client.aclose()
            raise
        return session

    async def send_message(self, session: _AdkSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, and answers to confirmations as often as the agent asks for them."""
        message, turn = wire.text_message(text), _Turn()
        while True:
            if turn.seconds >= timeout:
                raise AgentError(f"the agent did not answer within {timeout:g} s")
            stream = await self._run(session, message, timeout - turn.seconds, timeout)
            turn.add(wire.read(stream.events, self._server.redactor), stream)
            last = turn.runs[-1]
            if last.error or not last.asked or self._hands_over(turn):
                return self._reply(turn)
            if len(turn.runs) > wire.MAX_ROUNDS:
                most = wire.MAX_ROUNDS
                raise AgentError(f"the agent asked for a confirmation more than {most} times in a row")
            message = wire.confirmations(turn.runs[-1], self._options.confirmation, self._server.redactor)

    async def read_state(self, session: _AdkSession) -> JsonValue:
        """Return the state of the session."""
        url = self._server.at(self._path(session))
        request = AgentRequest("GET", url, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        answer, _ = await self._server.ask(session.client, request)
        return wire.state_of(answer, self._server.redactor)

    async def close(self, session: _AdkSession) -> None:
        """Close the connections. The session stays, so that probes and people can look at it."""
        await self._server.end(session.client)

    async def _root_agent(self, session: _AdkSession) -> str:
        """Return the name of the app's first agent, or of the app if the server does not tell it."""
        app = self._settings.agent_id or ""
        url = self._server.at(f"/apps/{quote(app, safe='')}/app-info")
        request = AgentRequest("GET", url, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        try:
            answer, _ = await self._server.ask(session.client, request)
        except AgentAccessError:
            raise
        except AgentError:  # it has no such path, or the agent has no model
            return app
        return payload.name(payload.member(answer, "rootAgentName")) or app

    def _path(self, session: _AdkSession) -> str:
        app, user = (quote(part, safe="") for part in (self._settings.agent_id or "", session.user))
        return f"/apps/{app}/users/{user}/sessions/{session.id}"

    async def _run(
        self, session: _AdkSession, message: Message, seconds_left: float, turn_timeout: float
    ) -> Stream:
        body: Message = {
            "appName": self._settings.agent_id,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": message,
        }
        streams = self._options.stream != "none"
        if streams:
            body["streaming"] = self._options.stream == "tokens"
        url = self._server.at("/run_sse" if streams else "/run")
        # Not idempotent: the tools of a run that broke off may have been used.
        request = AgentRequest(
            "POST", url, seconds_left, idempotent=False, body=body, turn_timeout=turn_timeout
        )
        if streams:
            return await self._server.stream(session.client, request, "sse")
        answer, seconds = await self._server.ask(session.client, request)
        events = answer if isinstance(answer, list) else [answer]
        return Stream(tuple(Event(event) for event in events), seconds)

    def _hands_over(self, turn: _Turn) -> bool:
        names = {made.name for run in turn.runs for made in run.made.values()}
        return not names.isdisjoint(self._options.escalation_tools)

    def _reply(self, turn: _Turn) -> Reply:
        """Join the runs for one message to a reply; raise `AgentError` if it is empty."""
        text = "\n\n".join(words for run in turn.runs for words in run.texts)
        problem, error = turn.runs[-1].problem, turn.runs[-1].error
        handed_over = self._hands_over(turn) if self._options.escalation_tools else None
        calls = wire.calls_of(turn.runs)
        if not (text or problem or error or handed_over):
            waits = [one.name for one in turn.runs[-1].made.values() if one.long_running and not one.answered]
            names = payload.shorten(self._server.redactor.text(", ".join(waits)))
            raise AgentError(
                f"the agent waits for the long-running tool {names}, which its client has to answer"
                if waits
                else "the agent gave an empty reply"
            )
        return Reply(
            agent=text,
            latency_seconds=turn.seconds,
            first_token_seconds=turn.first_token_seconds if self._options.stream != "none" else None,
            **views_of(calls),
            tool_calls_partial=error is not None and calls is not None,
            handed_over=handed_over,
            handed_over_apart=True,
            error_response=_is_error(text, problem, error),
            error_detail=error or problem,
            input_tokens=_known(run.input_tokens for run in turn.runs),
            output_tokens=_known(run.output_tokens for run in turn.runs),
            raw=[event.value for event in turn.events] if self._settings.debug else None,
        )


def _is_error(text: str, problem: str | None, error: str | None) -> bool | None:
    """Return whether a reply is an error; None if the model had a problem and the agent said something."""
    if error is not None:
        return True
    if problem is None:
        return False
    return None if text else True


def _known(counts: Iterable[int | None]) -> int | None:
    """Return the sum of what is known: the run of a confirmation may need no model."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
