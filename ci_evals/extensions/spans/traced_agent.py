"""An agent whose spans are received: its replies carry the tool calls that they show."""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.hand_over import with_tools
from ci_evals.adapters.trace_context import TraceContext, carried
from ci_evals.domain.actions import views_of
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.extension_support.span_reading.evidence import Progress, TurnEvidence
from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.extensions.spans.trial_trace import Exporter, TrialTrace
from ci_evals.ports import Agent, id_of, read_state
from ci_evals.support.documentation import see

PATIENCE_SECONDS = 10.0
"""The longest wait for spans after a reply. Batch exporters send every 5 s unless told otherwise."""
QUIET_SECONDS = 1.0
"""Silence after which a turn's spans are all there, if none is known to be missing."""
_NOTHING_CAME = (
    "no span arrived; let the agent export to {endpoint}/v1/traces, continue the trace in the header "
    f"traceparent, and set OTEL_BSP_SCHEDULE_DELAY=200 ({see('traces')})"
)


@dataclass(frozen=True)
class _Session:
    inner: Any
    trace: TrialTrace

    @property
    def id(self) -> str | None:
        """The agent's id of the conversation."""
        return id_of(self.inner)

    @property
    def own_id(self) -> str | None:
        """The id that its adapter made, by which spans without our context are recognized.

        An id that the agent made could be guessed: then spans of anybody would be evidence.
        """
        found = getattr(self.inner, "own_id", None)
        return found if isinstance(found, str) else None


class TracedAgent:
    """Sends messages with a trace context, waits for the spans of each reply, and reads them as evidence.

    Once a turn has been waited for in vain, later ones get the time of silence only, until a span comes: an
    agent that is not traced would cost every turn the whole wait. They stay without evidence all the same.
    """

    def __init__(
        self,
        agent: Agent,
        receiver: Receiver,
        exporter: Exporter | None = None,
        *,
        escalation_tools: Collection[str] = (),
        patience: float = PATIENCE_SECONDS,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        """Read spans of `agent`. Calls of `escalation_tools` in them hand over to a person."""
        self._escalation_tools = escalation_tools
        self._agent, self._receiver, self._patience, self._quiet = agent, receiver, patience, quiet
        self._exporter = exporter or Exporter()

    async def open_session(self, test: Test) -> Any:
        """Begin a conversation with a trace of its own."""
        trace = self._receiver.begin_trial(self._exporter)
        try:
            with carried(trace.begin_turn(ignored=True)):
                session = _Session(await self._agent.open_session(test), trace)
        except BaseException:
            self._receiver.end_trial(trace)
            raise
        self._name(session)
        return session

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send `text`; the reply comes when its spans have, or will not.

        An agent that reports its tool calls itself is not waited for; its spans may contradict it later.
        """
        context = session.trace.begin_turn()
        with carried(context):
            reply = await self._agent.send_message(session.inner, text, timeout=timeout)
        turn = context.headers["traceparent"]
        if reply.tool_calls is not None or reply.workflows is not None:
            session.trace.report_turn(reply)
            return reply.copy_with(traceparent=turn)
        self._name(session)
        await self._wait(session.trace, context)
        return self._with(reply, session.trace.settle(), turn)

    async def read_state(self, session: _Session) -> JsonValue:
        """Return the agent's state."""
        with carried(session.trace.begin_turn(ignored=True)):
            return await read_state(self._agent, session.inner)

    async def close(self, session: _Session) -> None:
        """End the conversation; spans that still come leave its evidence incomplete."""
        self._receiver.end_trial(session.trace)
        with carried(session.trace.begin_turn(ignored=True)):
            await self._agent.close(session.inner)

    def _name(self, session: _Session) -> None:
        if session.own_id:
            self._receiver.name_conversation(session.trace, session.own_id)

    async def _wait(self, trace: TrialTrace, context: TraceContext) -> None:
        """Wait until a turn's spans are there, or nothing more comes, or patience ends."""
        began = time.monotonic()
        while True:
            trace.arrived.clear()
            progress = trace.progress(context.requests)
            until = began + (self._quiet if self._exporter.is_silent else self._patience)
            if progress == Progress.WHOLE:
                until = min(until, max(began, trace.last_arrival) + self._quiet)
            now = time.monotonic()
            if progress == Progress.ANSWERED or now >= until:
                self._exporter.was_awaited |= progress == Progress.NOTHING
                return
            alarm = asyncio.get_running_loop().call_later(until - now, trace.arrived.set)
            try:
                await trace.arrived.wait()
            finally:
                alarm.cancel()

    def _with(self, reply: Reply, evidence: TurnEvidence | None, turn: str) -> Reply:
        """Return the reply with the evidence; what the agent itself reports stays."""
        if evidence is None:
            reason = _NOTHING_CAME.format(endpoint=self._receiver.endpoint)
            return reply.copy_with(trace_missing=reason, traceparent=turn)
        views = views_of(evidence.calls)
        traced = reply.copy_with(
            traceparent=turn,
            trace=evidence.spans if reply.trace is None else reply.trace,
            tool_calls=views["tool_calls"],
            workflows=views["workflows"],
            params=views["params"] if reply.params is None else reply.params,
            # A tool may hand over to a person, whatever its name: tools are no evidence that none did.
            handed_over_apart=True,
            models=reply.models or evidence.models,
        )
        if evidence.missing:
            traced = traced.copy_with(tool_calls_partial=True, trace_missing=evidence.missing)
        if reply.input_tokens is None and reply.output_tokens is None:
            traced = traced.copy_with(
                input_tokens=evidence.input_tokens, output_tokens=evidence.output_tokens
            )
        return with_tools(traced, self._escalation_tools, reported=reply.handed_over is not None)
