"""Plays one trial: planned turns in, a transcript out."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ci_evals.conversation.simulated_user import STOP_MARKER, SimulatedUser
from ci_evals.domain.errors import AgentError, LLMError
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Reply, Transcript, Turn, UserSource
from ci_evals.ports import Agent
from ci_evals.support.json_text import written
from ci_evals.support.text import is_blank


@dataclass(frozen=True)
class Ended:
    """Why a conversation ended: its state, and the cause where it failed."""

    status: EndState
    failure: AgentError | LLMError | None = None
    closing_remark: str | None = None


class Conversation:
    """One conversation under way. What was said so far is there even if it is cut off."""

    def __init__(self, agent: Agent, user: SimulatedUser, listen: Callable[[int], None]) -> None:
        self._agent = agent
        self._user = user
        self._listen = listen
        self.turns: list[Turn] = []
        self.unanswered: int | None = None
        """The turn whose message is sent and not yet answered."""

    async def play(self, test: Test, planned_turns: Sequence[PlannedTurn]) -> Ended:
        """Plays the turns in a fresh session until one of the reasons to end occurs."""
        try:
            session = await self._agent.open_session(test)
            try:
                ended = await self._play_turns(session, test, planned_turns)
            except BaseException:
                with suppress(AgentError):
                    await self._agent.close(session)
                raise
            await self._agent.close(session)
        except (AgentError, LLMError) as error:
            return Ended(EndState.FAILED, failure=error)
        return ended

    def transcript(self, ended: Ended) -> Transcript:
        """What was said, and why it ended."""
        return Transcript(
            turns=tuple(self.turns),
            status=ended.status,
            error=str(ended.failure) if ended.failure else None,
            unanswered=self.unanswered,
            closing_remark=ended.closing_remark,
        )

    async def _play_turns(self, session: Any, test: Test, planned_turns: Sequence[PlannedTurn]) -> Ended:
        for planned in planned_turns:
            text = await self._user.next_message(test, tuple(self.turns)) if planned.auto else planned.user
            if planned.auto and STOP_MARKER in text:
                remark = text.replace(STOP_MARKER, "").strip()
                return Ended(EndState.STOPPED, closing_remark=None if is_blank(remark) else remark)
            turn = await self._play_turn(session, planned, text)
            # An error is looked at first: an agent that fails while forwarding has failed.
            if turn.error_response:
                return Ended(EndState.AGENT_ERROR)
            if turn.escalated:
                return Ended(EndState.ESCALATED)
        return Ended(EndState.COMPLETED)

    async def _play_turn(self, session: Any, planned: PlannedTurn, text: str) -> Turn:
        self.unanswered = len(self.turns) + 1
        reply = bounded(await self._agent.send_message(session, text, timeout=planned.timeout))
        # Traces and raw bodies are large, and were looked at when the reply was made.
        large = {"trace": reply.trace, "raw": reply.raw}
        turn = Turn(
            **dict(reply) | dict.fromkeys(large),
            index=len(self.turns) + 1,
            user=text,
            user_source=UserSource.AUTO if planned.auto else UserSource.FIXED,
        ).model_copy(update=large)
        self.turns.append(turn)
        self.unanswered = None
        self._listen(turn.index)
        return turn


MOST_CHARACTERS = 1_000_000
"""Of a reply's text, of its evidence, and of its trace. No judge could read more, and no person would; and
all of it is searched for secrets, sent and written again and again."""


def bounded(reply: Reply) -> Reply:
    """The reply, with a note in place of a trace or a raw body that is too long: no verdict needs these.

    Raises:
        AgentError: its text cannot be seen, or it or its evidence is too long.
    """
    if reply.agent.strip() and is_blank(reply.agent):
        raise AgentError("the agent's reply has no visible character")
    if len(reply.agent) > MOST_CHARACTERS:
        raise AgentError(f"the agent's reply is longer than {MOST_CHARACTERS:,} characters")
    told = [reply.workflows, reply.params, reply.named_params, reply.rules, reply.error_detail]
    calls = [[call.code, call.type, call.error] for call in reply.integrations or ()]
    if _length([told, calls]) > MOST_CHARACTERS:
        raise AgentError(
            f"what the agent says it did for one reply is longer than {MOST_CHARACTERS:,} characters"
        )
    long = [name for name in ("trace", "raw") if _length(getattr(reply, name)) > MOST_CHARACTERS]
    return reply.model_copy(update=dict.fromkeys(long, TOO_LONG)) if long else reply


TOO_LONG = f"(not kept: longer than {MOST_CHARACTERS:,} characters)"


def _length(value: object) -> int:
    """Of JSON, about as a file would have it."""
    return 0 if value is None else len(written(value))
