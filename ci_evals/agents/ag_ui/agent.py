"""An agent that speaks AG-UI. Its messages: `wire`."""

from copy import deepcopy
from dataclasses import dataclass, field
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.transport import payload
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.adapters.transport.streams import Stream
from ci_evals.agents import agent_server
from ci_evals.agents.ag_ui import wire
from ci_evals.agents.ag_ui.options import AgUiOptions
from ci_evals.agents.ag_ui.run import AgentState, Message, Run
from ci_evals.agents.agent_server import AgentRequest, AgentServer
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.support.json_text import written
from ci_evals.support.redaction import Redactor


@dataclass
class _AgUiSession:
    """One conversation, which the client keeps."""

    client: AgentClient
    id: str
    messages: list[Message]
    state: AgentState
    context: list[JsonValue]
    props: JsonValue

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


@dataclass
class _Turn:
    """The runs for one message: more than one if the agent asks for results of tools."""

    runs: list[Run] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    seconds: float = 0.0
    first_token_seconds: float | None = None

    def add(self, run: Run, stream: Stream) -> None:
        if self.first_token_seconds is None and run.first_token_seconds is not None:
            self.first_token_seconds = self.seconds + run.first_token_seconds
        self.runs.append(run)
        self.streams.append(stream)
        self.seconds += stream.seconds


class AgUiAgent:
    """The agent under test, spoken to by AG-UI. Implements the port `StatefulAgent`."""

    def __init__(
        self, settings: AgentSettings, *, redactor: Redactor | None = None, limiter: RateLimiter | None = None
    ) -> None:
        """Prepare requests without opening connections, or raise `UsageError` for what cannot be sent."""
        self._settings, self._options = settings, AgUiOptions.model_validate(settings.options)
        url = agent_server.base_url(settings.base_url or "")
        headers = agent_server.headers_with_key(self._options.headers, settings)
        self._server = AgentServer(settings, url, headers, redactor, limiter)
        self._address = self._server.at("")

    async def open_session(self, test: Test) -> _AgUiSession:
        """Begin a conversation, of which the agent learns with the first message."""
        options, info = self._options, dict(test.user_info)
        messages: list[Message] = []
        if test.system_prompt:
            messages.append({"id": uuid4().hex, "role": "system", "content": test.system_prompt})
        messages += [{"id": uuid4().hex, **message} for message in test.history]
        state, props, context = deepcopy(options.state), deepcopy(options.forwarded_props), list[JsonValue]()
        match options.user_info:
            case "context":
                context = [{"description": key, "value": _as_text(value)} for key, value in info.items()]
            case "state":
                state |= info
            case "forwardedProps":
                props |= info
        client = self._server.new_client()
        return _AgUiSession(client, uuid4().hex, messages, AgentState(state), context, props)

    async def send_message(self, session: _AgUiSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message, then results of tools and answers to interrupts while the agent asks for them."""
        session.messages.append({"id": uuid4().hex, "role": "user", "content": text})
        turn, resume = _Turn(), list[JsonValue]()
        while True:
            if turn.seconds >= timeout:
                raise AgentError(f"the agent did not answer within {timeout:g} s")
            stream = await self._run(session, resume, timeout - turn.seconds, timeout)
            run = wire.read(stream.events, session.messages, session.state, self._server.redactor)
            turn.add(run, stream)
            session.messages = run.messages
            if run.error or self._hands_over(turn):
                break
            resume = self._resume(run)
            pending = self._pending(run)
            if not (resume or pending):
                break
            if len(turn.runs) > wire.MAX_ROUNDS:
                most = wire.MAX_ROUNDS
                raise AgentError(f"the agent asked for results of tools more than {most} times in a row")
            session.messages += [
                wire.tool_message(call, self._options.tool_results[call.name], uuid4().hex)
                for call in pending
            ]
        return self._reply(turn)

    async def read_state(self, session: _AgUiSession) -> JsonValue:
        """Return the state that the agent sent last."""
        if session.state.problem:
            raise AgentError(session.state.problem)
        return session.state.value

    async def close(self, session: _AgUiSession) -> None:
        """Close the connections; the protocol cannot end a conversation."""
        await self._server.end(session.client)

    async def _run(
        self,
        session: _AgUiSession,
        resume: list[JsonValue],
        seconds_left: float,
        turn_timeout: float,
    ) -> Stream:
        body: dict[str, JsonValue] = {
            "threadId": session.id,
            "runId": uuid4().hex,
            "state": session.state.value,
            "messages": [*session.messages],
            "tools": [*self._options.tools],
            "context": session.context,
            "forwardedProps": session.props,
            **({"resume": resume} if resume else {}),
        }
        request = AgentRequest(
            "POST", self._address, seconds_left, idempotent=False, body=body, turn_timeout=turn_timeout
        )
        return await self._server.stream(session.client, request, "sse", wire.is_last)

    def _resume(self, run: Run) -> list[JsonValue]:
        """Return the answers to a run's interrupts."""
        if not run.interrupts:
            return []
        if self._options.resume is None:
            told = self._server.redactor.json(run.interrupts[0])
            parts = (payload.name(payload.member(told, key)) for key in ("reason", "message"))
            reason = payload.shorten(": ".join(part for part in parts if part)) or "no reason given"
            raise AgentError(
                f"the agent waits for a decision ({reason}); set the answer in adapterOptions.resume"
            )
        return [
            {"interruptId": one.get("id"), "status": "resolved", "payload": self._options.resume}
            for one in run.interrupts
        ]

    def _pending(self, run: Run) -> list[ToolCall]:
        """Return the calls whose results the agent waits for; of other calls it reports none."""
        if run.interrupts:
            return []
        offered = {payload.name(payload.member(tool, "name")) for tool in self._options.tools}
        for call in run.waiting:
            if call.name in offered and call.name not in self._options.tool_results:
                name = payload.shorten(self._server.redactor.text(call.name))
                raise AgentError(
                    f"the agent called the tool {name!r} and waits for its result; set its result in "
                    "adapterOptions.toolResults, or name the tool in escalationTools if its call hands over "
                    "to a person"
                )
        return [call for call in run.waiting if call.name in self._options.tool_results]

    def _hands_over(self, turn: _Turn) -> bool:
        names = {call.name for run in turn.runs for call in run.calls or ()}
        return not names.isdisjoint(self._options.escalation_tools)

    def _reply(self, turn: _Turn) -> Reply:
        """Join the runs for one message to a reply; raise `AgentError` if it is empty."""
        text = "\n\n".join(words for run in turn.runs for words in run.texts)
        known = all(run.calls is not None for run in turn.runs)
        calls = self._calls(turn) if known else None
        handed_over = self._hands_over(turn) if self._options.escalation_tools else None
        error = turn.runs[-1].error
        if not text and not handed_over and not error:
            raise AgentError("the agent gave an empty reply")
        return Reply(
            agent=text,
            latency_seconds=turn.seconds,
            first_token_seconds=turn.first_token_seconds,
            **views_of(calls),
            tool_calls_partial=any(run.partial for run in turn.runs),
            handed_over=handed_over,
            handed_over_apart=True,
            error_response=error is not None,
            error_detail=error,
            input_tokens=wire.total(run.input_tokens for run in turn.runs),
            output_tokens=wire.total(run.output_tokens for run in turn.runs),
            raw=[value for stream in turn.streams for value in stream.values]
            if self._settings.debug
            else None,
        )

    def _calls(self, turn: _Turn) -> tuple[ToolCall, ...]:
        """Return all calls, also with results that they were given here or by a later run."""
        later = {key: result for run in turn.runs for key, result in run.results.items()}
        calls: list[ToolCall] = []
        for run in turn.runs:
            waiting = {call.id for call in run.waiting}
            given = {
                call.id: self._options.tool_results[call.name]
                for call in run.waiting
                if call.name in self._options.tool_results
            }
            for call in run.calls or ():
                result = given.get(call.id, later.get(call.id or "")) if call.id in waiting else call.result
                calls.append(call.model_copy(update={"result": result}))
        return tuple(calls)


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else written(value)
