"""How far the demo agent keeps to its playbook: slips by chance, workflows that are broken, misbehaviour.

A draw rests on the seed and on what is said, never on the clock or on which conversation came first.
"""

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

from ci_evals.demo_agent import catalog, engine, misbehavior
from ci_evals.demo_agent.misbehavior import Misbehaviour
from ci_evals.demo_agent.playbook import Call, Confirm, Playbook, Rule, Workflow
from ci_evals.demo_agent.reply import Move, Reply, ResponseType, State


class Slip(StrEnum):
    """One way to answer one message badly."""

    LOST = "lost"
    """The agent answers as if it had not understood, and stays where it was."""
    HASTY = "hasty"
    """The agent plays the workflow under way, or the one that the message begins, without its rules."""


class UnknownWorkflowError(LookupError):
    """No playbook has a workflow of that code. Its text names the nearest, or all there are."""


@dataclass(frozen=True)
class Temper:
    """How the agent errs, in all conversations.

    Args:
        noise: The share of messages at which it slips, from 0 to 1.
        seed: What the slips are drawn from.
        broken: Codes of workflows that run without their rules and call no integration.
        misbehaves: What it does wrong in every conversation.

    Raises:
        ValueError: `noise` is no share.
        UnknownWorkflowError: no playbook has a workflow of that code.
    """

    noise: float = 0
    seed: int = 0
    broken: frozenset[str] = frozenset()
    misbehaves: frozenset[Misbehaviour] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise is a share from 0 to 1, not {self.noise}")
        known = catalog.known_workflows() if self.broken else ()
        for code in sorted(self.broken.difference(known)):
            close = difflib.get_close_matches(code.upper(), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise UnknownWorkflowError(f"no playbook has a workflow {code!r}; {hint}")

    def slip(self, conversation: str, number: int) -> Slip | None:
        """What goes wrong at a conversation's message of that number; null for nothing.

        More noise adds slips and takes none away.
        """
        if self._drawn(conversation, number, "slips") >= self.noise:
            return None
        return Slip.LOST if self._drawn(conversation, number, "kind") < 0.5 else Slip.HASTY

    def respond(
        self,
        playbook: Playbook,
        state: State,
        message: str,
        variables: Mapping[str, JsonValue],
        slip: Slip | None,
    ) -> Move:
        """The agent's move after `message`, with that slip. Pure, as `engine.respond` is."""
        move = self._move(misbehavior.mistaken(self.misbehaves, playbook), state, message, variables, slip)
        return misbehavior.spoilt(self.misbehaves, playbook, state, move)

    def _move(
        self,
        playbook: Playbook,
        state: State,
        message: str,
        variables: Mapping[str, JsonValue],
        slip: Slip | None,
    ) -> Move:
        if slip is Slip.LOST:
            text = playbook.texts.fallback
            return Move(state, Reply(text, ResponseType.QUESTION, suggestions=playbook.suggestions))

        def omits(workflow: Workflow, step: Rule | Call | Confirm) -> bool:
            if misbehavior.omits(self.misbehaves, step):
                return True
            hasty = slip is Slip.HASTY and isinstance(step, Rule)
            return hasty or (workflow.code in self.broken and isinstance(step, Rule | Call))

        return engine.respond(playbook, state, message, variables, omits)

    def _drawn(self, *subject: str | int) -> float:
        """A number from 0 to below 1, always the same for the same seed and subject."""
        drawn = hashlib.sha256(json.dumps([self.seed, *subject]).encode()).digest()
        return int.from_bytes(drawn[:6]) / 2**48


def opening_of(agent_id: str, text: str, variables: Mapping[str, JsonValue]) -> str:
    """A digest of how a conversation begins: trials of one test have it in common."""
    return hashlib.sha256(json.dumps([agent_id, text, variables], sort_keys=True).encode()).hexdigest()
