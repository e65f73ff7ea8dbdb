"""An agent that speaks AG-UI. Its messages: `wire`."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.hand_over import hand_over, hands_over
from ci_evals.adapters.transport.agent_client import AgentClient
from ci_evals.agents.server_agent import ServerAgent, Session, Turn
from ci_evals.domain.actions import views_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply, ToolCall
from ci_evals.extensions.ag_ui import wire
from ci_evals.extensions.ag_ui.options import AgUiOptions
from ci_evals.extensions.ag_ui.run import AgentState, Message, Run
from ci_evals.support import payload
from ci_evals.support.json_text import written


@dataclass
class _AgUiSession(Session):
    """One conversation, which the client keeps."""

    id: str
    messages: list[Message]
    state: AgentState
    context: list[JsonValue]
    props: JsonValue

    @property
    def own_id(self) -> str:
        """The id, which was made here."""
        return self.id


class AgUiAgent(ServerAgent[AgUiOptions, _AgUiSession]):
    """The agent under test, spoken to by AG-UI. Implements the port `StatefulAgent`."""

    form = AgUiOptions

    def _prepare(self) -> None:
        self._url = self._server.at("")

    async def _open(self, client: AgentClient, test: Test) -> _AgUiSession:
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
        return _AgUiSession(client, uuid4().hex, messages, AgentState(state), context, props)

    async def _send(self, session: _AgUiSession, text: str, turn: Turn) -> Reply:
        """Send a message, then results of tools and answers to interrupts while the agent asks for them."""
        session.messages.append({"id": uuid4().hex, "role": "user", "content": text})
        runs, resume = list[Run](), list[JsonValue]()
        while True:
            run = await self._run(session, turn, resume)
            runs.append(run)
            if run.error or hands_over(_called(runs), self._options.escalation_tools):
                break
            resume = self._resume(run)
            pending = self._pending(run)
            if not (resume or pending):
                break
            turn.begin_round("asked for results of tools")
            session.messages += [
                wire.tool_message(call, self._options.tool_results[call.name], uuid4().hex)
                for call in pending
            ]
        return self._reply(runs, turn)

    async def read_state(self, session: _AgUiSession) -> JsonValue:
        """Return the state that the agent sent last."""
        if session.state.problem:
            raise AgentError(session.state.problem)
        return session.state.value

    async def _run(self, session: _AgUiSession, turn: Turn, resume: list[JsonValue]) -> Run:
        body: dict[str, JsonValue] = {
            "threadId": session.id,
            "runId": uuid4().hex,
            "state": session.state.value,
            "messages": [*session.messages],
            "tools": [*self._options.tools],
            "context": session.context,
            "forwardedProps": session.props,
        }
        if resume:
            body["resume"] = resume
        request = self._request(turn, self._url, body)
        stream = await self._stream(session, turn, request, wire.is_last)
        run = wire.read(stream.events, session.messages, session.state, self._server.redactor)
        turn.note_first_token(run.first_token_seconds)
        session.messages = run.messages
        return run

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

    def _reply(self, runs: Sequence[Run], turn: Turn) -> Reply:
        """Join the runs for one message to a reply; raise `AgentError` if it is empty."""
        text = "\n\n".join(words for run in runs for words in run.texts)
        partial = any(run.partial for run in runs)
        calls = None
        if all(run.calls is not None for run in runs):
            calls = self._calls(runs)
        known = calls is not None and not partial
        handed_over = hand_over(_called(runs), self._options.escalation_tools, all_known=known)
        error = runs[-1].error
        if not text and not handed_over and not error:
            raise AgentError("the agent gave an empty reply")
        return Reply(
            agent=text,
            latency_seconds=turn.seconds,
            first_token_seconds=turn.first_token_seconds,
            **views_of(calls),
            tool_calls_partial=partial,
            handed_over=handed_over,
            handed_over_apart=True,
            error_response=error is not None,
            error_detail=error,
            input_tokens=wire.total(run.input_tokens for run in runs),
            output_tokens=wire.total(run.output_tokens for run in runs),
        )

    def _calls(self, runs: Sequence[Run]) -> tuple[ToolCall, ...]:
        """Return all calls, also with results that they were given here or by a later run."""
        later = {key: result for run in runs for key, result in run.results.items()}
        calls: list[ToolCall] = []
        for run in runs:
            waiting = {call.id for call in run.waiting}
            given = {
                call.id: self._options.tool_results[call.name]
                for call in run.waiting
                if call.name in self._options.tool_results
            }
            for call in run.calls or ():
                result = given.get(call.id, later.get(call.id or "")) if call.id in waiting else call.result
                calls.append(call.copy_with(result=result))
        return tuple(calls)


def _called(runs: Iterable[Run]) -> Iterator[str]:
    """Yield the names of all calls that could be read."""
    for run in runs:
        yield from (call.name for call in run.calls or ())


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else written(value)
