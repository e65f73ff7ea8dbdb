"""An agent behind a server of Google's Agent Development Kit. Its events: `wire`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.hand_over import hand_over, hands_over
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.streams import Event
from ci_evals.agents.agent_server import AgentRequest
from ci_evals.agents.server_agent import ServerAgent, Session, Turn
from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import DEFAULT_TIMEOUT_SECONDS, Test
from ci_evals.domain.transcript import Reply
from ci_evals.extensions.adk import wire
from ci_evals.extensions.adk.options import AdkOptions
from ci_evals.extensions.adk.wire import Message, Run
from ci_evals.support import payload


@dataclass
class _AdkSession(Session):
    """One conversation."""

    id: str
    user: str

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


class AdkAgent(ServerAgent[AdkOptions, _AdkSession]):
    """The agent under test as an app of an ADK server. Implements the port `StatefulAgent`."""

    form = AdkOptions
    wrong_server = "is it an ADK server, and the base URL right?"

    async def _open(self, client: AgentClient, test: Test) -> _AdkSession:
        """Begin a conversation: a session, with the user's data as its first state."""
        # State of users is shared by their sessions, so each conversation has a user of its own.
        name = uuid4().hex
        user = self._options.user_id or f"ci-evals-{name}"
        session = _AdkSession(client, name, user)
        path, body = self._path(session), {**self._options.state, **test.user_info}
        if test.history:
            path, _, _ = path.rpartition("/")
            events = wire.history(test.history, await self._root_agent(session))
            body = {"session_id": name, "state": body, "events": events}
        # Not idempotent: a session that is there already is refused.
        request = AgentRequest(
            "POST", self._server.at(path), DEFAULT_TIMEOUT_SECONDS, idempotent=False, body=body
        )
        await self._server.ask(client, request)
        return session

    async def _send(self, session: _AdkSession, text: str, turn: Turn) -> Reply:
        """Send a message, and answers to confirmations as often as the agent asks for them."""
        options, redactor = self._options, self._server.redactor
        message, runs = wire.text_message(text), list[Run]()
        while True:
            last = wire.read(await self._run(session, turn, message), redactor)
            turn.note_first_token(last.first_token_seconds)
            runs.append(last)
            if last.error or not last.asked or hands_over(_called(runs), options.escalation_tools):
                return self._reply(runs, turn)
            turn.begin_round("asked for a confirmation")
            message = wire.confirmations(last, options.confirmation, redactor)

    async def read_state(self, session: _AdkSession) -> JsonValue:
        """Return the state of the session."""
        url = self._server.at(self._path(session))
        request = AgentRequest("GET", url, DEFAULT_TIMEOUT_SECONDS, idempotent=True)
        answer, _ = await self._server.ask(session.client, request)
        return wire.state_of(answer, self._server.redactor)

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

    async def _run(self, session: _AdkSession, turn: Turn, message: Message) -> Sequence[Event]:
        body: Message = {
            "appName": self._settings.agent_id,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": message,
        }
        if self._options.stream != "none":
            body["streaming"] = self._options.stream == "tokens"
            request = self._request(turn, self._server.at("/run_sse"), body)
            return (await self._stream(session, turn, request)).events
        answer = await self._ask(session, turn, self._request(turn, self._server.at("/run"), body))
        return [Event(event) for event in (answer if isinstance(answer, list) else [answer])]

    def _reply(self, runs: Sequence[Run], turn: Turn) -> Reply:
        """Join the runs for one message to a reply; raise `AgentError` if it is empty."""
        text = "\n\n".join(words for run in runs for words in run.texts)
        problem, error = runs[-1].problem, runs[-1].error
        calls = wire.calls_of(runs)
        partial = error is not None and calls is not None
        known = calls is not None and not partial
        handed_over = hand_over(_called(runs), self._options.escalation_tools, all_known=known)
        if not (text or problem or error or handed_over):
            raise AgentError(self._why_empty(runs[-1]))
        return Reply(
            agent=text,
            latency_seconds=turn.seconds,
            first_token_seconds=turn.first_token_seconds if turn.is_streamed else None,
            **views_of(calls),
            tool_calls_partial=partial,
            handed_over=handed_over,
            handed_over_apart=True,
            error_response=_is_error(text, problem, error),
            error_detail=error or problem,
            input_tokens=_known(run.input_tokens for run in runs),
            output_tokens=_known(run.output_tokens for run in runs),
        )

    def _why_empty(self, run: Run) -> str:
        waits = [one.name for one in run.made.values() if one.long_running and not one.answered]
        if not waits:
            return "the agent gave an empty reply"
        names = payload.shorten(self._server.redactor.text(", ".join(waits)))
        return f"the agent waits for the long-running tool {names}, which its client has to answer"


def _called(runs: Iterable[Run]) -> Iterator[str]:
    """Yield the names of all calls."""
    for run in runs:
        yield from (made.name for made in run.made.values())


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
