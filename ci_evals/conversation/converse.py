"""Plays one trial: planned turns in, a transcript out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ci_evals.conversation.simulated_user import STOP_MARKER, SimulatedUser
from ci_evals.domain.actions import with_calls
from ci_evals.domain.checks.strict.state import StateCheck
from ci_evals.domain.errors import AgentError, LLMError, WorldError
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import (
    EndState,
    FailureCause,
    ProbeResult,
    Reply,
    Transcript,
    Turn,
    UserSource,
)
from ci_evals.domain.world import AGENT_STATE, STEP_SECONDS, probe_result
from ci_evals.ports import Agent, id_of, read_state
from ci_evals.support.json_text import written
from ci_evals.support.text import is_blank

_CAUSES = {
    AgentError: FailureCause.AGENT_FAILED,
    LLMError: FailureCause.MODEL_FAILED,
    WorldError: FailureCause.SETUP_FAILED,
}


@dataclass(frozen=True)
class ConversationEnd:
    """The end of a conversation: its state, and the error if it failed."""

    status: EndState
    failure: AgentError | LLMError | WorldError | None = None
    closing_remark: str | None = None


class ConversationPlayer:
    """Plays one conversation. The turns so far are there even if it is cut off."""

    def __init__(
        self,
        agent: Agent,
        user: SimulatedUser,
        listen: Callable[[int], None],
        canaries: Mapping[str, str] | None = None,
    ) -> None:
        self.canaries = dict(canaries or {})
        """The values that the test's canaries have in this conversation."""
        self._agent = agent
        self._user = user
        self._listen = listen
        self.turns: list[Turn] = []
        self.unanswered: int | None = None
        """The turn whose message was sent and is not answered yet."""
        self.session_id: str | None = None
        """The id of the agent's session, if it has one."""
        self.probes: dict[str, ProbeResult] = {}
        """The state of the world afterwards."""
        self.probes_before: dict[str, ProbeResult] = {}
        """The state of the world before the first message."""

    async def play(self, test: Test, planned_turns: Sequence[PlannedTurn]) -> ConversationEnd:
        """Play the turns in a fresh session until one of the reasons to end occurs."""
        try:
            session = await self._agent.open_session(test)
            self.session_id = id_of(session)
            try:
                end = await self._play_turns(session, test, planned_turns)
                if _wants_state(test):
                    self.probes = {AGENT_STATE: await self._state(session)}
            except BaseException:
                with suppress(AgentError):
                    await self._agent.close(session)
                raise
            await self._agent.close(session)
        except (AgentError, LLMError) as error:
            return ConversationEnd(EndState.FAILED, failure=error)
        return end

    def transcript(self, end: ConversationEnd) -> Transcript:
        """Return the turns so far, with this end."""
        return Transcript(
            turns=tuple(self.turns),
            status=end.status,
            error=str(end.failure) if end.failure else None,
            cause=next((cause for kind, cause in _CAUSES.items() if isinstance(end.failure, kind)), None),
            unanswered=self.unanswered,
            closing_remark=end.closing_remark,
            probes=self.probes,
            probes_before=self.probes_before,
            canaries=self.canaries,
        )

    async def _play_turns(
        self, session: Any, test: Test, planned_turns: Sequence[PlannedTurn]
    ) -> ConversationEnd:
        for planned in planned_turns:
            text = await self._user.next_message(test, tuple(self.turns)) if planned.auto else planned.user
            if planned.auto and STOP_MARKER in text:
                remark = text.replace(STOP_MARKER, "").strip()
                return ConversationEnd(EndState.STOPPED, closing_remark=None if is_blank(remark) else remark)
            turn = await self._play_turn(session, planned, text)
            # Check for an error first: an agent that fails while forwarding has failed.
            if turn.error_response:
                return ConversationEnd(EndState.AGENT_ERROR)
            if turn.escalated:
                return ConversationEnd(EndState.ESCALATED)
        return ConversationEnd(EndState.COMPLETED)

    async def _state(self, session: Any) -> ProbeResult:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                return probe_result(await read_state(self._agent, session))
        except TimeoutError:
            return ProbeResult(error=f"it did not end within {STEP_SECONDS:g} s")
        except AgentError as error:
            return ProbeResult(error=str(error))

    async def _play_turn(self, session: Any, planned: PlannedTurn, text: str) -> Turn:
        self.unanswered = len(self.turns) + 1
        reply = with_calls(bounded(await self._agent.send_message(session, text, timeout=planned.timeout)))
        self.session_id = id_of(session)  # some agents name it with their first answer
        # Traces and raw bodies are large, and were validated when the reply was created.
        small = reply.copy_with(trace=None, raw=None)
        turn = Turn(
            **vars(small),
            index=len(self.turns) + 1,
            user=text,
            user_source=UserSource.AUTO if planned.auto else UserSource.FIXED,
        ).copy_with(trace=reply.trace, raw=reply.raw)
        self.turns.append(turn)
        self.unanswered = None
        self._listen(turn.index)
        return turn


def _wants_state(test: Test) -> bool:
    return any(isinstance(one, StateCheck) and one.probe == AGENT_STATE for one in test.evaluations)


MAX_CHARACTERS = 1_000_000
"""Limit of a reply's text, of its evidence, and of its trace. No judge or person could read more, and all of
it is searched for secrets, sent and written again and again."""


def bounded(reply: Reply) -> Reply:
    """Return the reply, with a note instead of a trace or raw body that is too long: no verdict needs these.

    Raises:
        AgentError: its text is invisible, or its text or evidence is too long.
    """
    if reply.agent.strip() and is_blank(reply.agent):
        raise AgentError("the agent's reply has no visible character")
    if len(reply.agent) > MAX_CHARACTERS:
        raise AgentError(f"the agent's reply is longer than {MAX_CHARACTERS:,} characters")
    names = [reply.workflows, reply.params, reply.named_params, reply.rules, reply.error_detail]
    actions = [reply.integrations, reply.tool_calls, names]
    if _json_length(actions) > MAX_CHARACTERS:
        raise AgentError(
            f"what the agent says it did for one reply is longer than {MAX_CHARACTERS:,} characters"
        )
    if _json_length(reply.trace) > MAX_CHARACTERS:
        reply = reply.copy_with(trace=TOO_LONG)
    if _json_length(reply.raw) > MAX_CHARACTERS:
        reply = reply.copy_with(raw=TOO_LONG)
    return reply


TOO_LONG = f"(not kept: longer than {MAX_CHARACTERS:,} characters)"


def _json_length(value: object) -> int:
    return 0 if value is None else len(written(value))
