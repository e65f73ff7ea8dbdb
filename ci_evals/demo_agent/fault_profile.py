"""The faults of a demo agent: random faults of replies, broken workflows, and misbehavior.

A draw depends on the seed and on the conversation, never on the clock or on which conversation came first.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from ci_evals.demo_agent import catalog, engine, misbehavior
from ci_evals.demo_agent.misbehavior import Misbehavior
from ci_evals.demo_agent.playbook import CallStep, ConfirmStep, Playbook, RuleStep, Workflow
from ci_evals.demo_agent.reply import DemoReply, Move, ResponseType, State


class ReplyFault(StrEnum):
    """One way to answer one message badly."""

    LOST = "lost"
    """The agent answers as if it had not understood, and stays where it was."""
    HASTY = "hasty"
    """The agent plays the current workflow, or the one that the message starts, without its rules."""


class UnknownWorkflowError(LookupError):
    """No playbook has a workflow of that code. The text names the nearest, or all there are."""


@dataclass(frozen=True)
class FaultProfile:
    """The faults of an agent, in all conversations.

    Args:
        noise: The share of messages, from 0 to 1, with a `ReplyFault`; both kinds are equally frequent.
        seed: The seed of these faults. Conversations that begin alike are numbered as they come, and draw
            their faults by that number: a new server with the same seed gives the trials of a test the same
            faults, however many are played at once.
        broken: Codes of workflows that run without their rules and call no integration, in every domain.
        misbehaves: What the agent does wrong in every conversation.

    Raises:
        ValueError: `noise` is out of range.
        UnknownWorkflowError: no playbook has a workflow of that code.
    """

    noise: float = 0
    seed: int = 0
    broken: frozenset[str] = frozenset()
    misbehaves: frozenset[Misbehavior] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise is a share from 0 to 1, not {self.noise}")
        known = catalog.known_workflows() if self.broken else ()
        for code in sorted(self.broken.difference(known)):
            close = difflib.get_close_matches(code.upper(), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise UnknownWorkflowError(f"no playbook has a workflow {code!r}; {hint}")

    def draw(self, conversation: str, number: int) -> ReplyFault | None:
        """Draw the fault of a conversation's message of that number, or none.

        More noise adds faults and removes none.
        """
        if self._random(conversation, number, "slips") >= self.noise:
            return None
        return ReplyFault.LOST if self._random(conversation, number, "kind") < 0.5 else ReplyFault.HASTY

    def respond(
        self,
        playbook: Playbook,
        state: State,
        message: str,
        variables: Mapping[str, JsonValue],
        fault: ReplyFault | None,
    ) -> Move:
        """Return the agent's move after `message`, with that fault. Pure, as `engine.respond` is."""

        def omits(workflow: Workflow, step: RuleStep | CallStep | ConfirmStep) -> bool:
            if misbehavior.omits(self.misbehaves, step):
                return True
            hasty = fault is ReplyFault.HASTY and isinstance(step, RuleStep)
            return hasty or (workflow.code in self.broken and isinstance(step, RuleStep | CallStep))

        if fault is ReplyFault.LOST:
            text, suggestions = playbook.texts.fallback, playbook.suggestions
            move = Move(state, DemoReply(text, ResponseType.QUESTION, suggestions=suggestions))
        else:
            mistaken = misbehavior.mistaken(self.misbehaves, playbook)
            move = engine.respond(mistaken, state, message, variables, omits)
        return misbehavior.spoil(self.misbehaves, playbook, state, move)

    def _random(self, *subject: str | int) -> float:
        """Return a number from 0 to below 1, always the same for the same seed and subject."""
        digest = hashlib.sha256(json.dumps([self.seed, *subject]).encode()).digest()
        return int.from_bytes(digest[:6]) / 2**48


def opening_of(agent_id: str, text: str, variables: Mapping[str, JsonValue]) -> str:
    """Return a digest of how a conversation begins, which the trials of one test have in common."""
    return hashlib.sha256(json.dumps([agent_id, text, variables], sort_keys=True).encode()).hexdigest()
