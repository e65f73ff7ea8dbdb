"""The faults of a demo agent: random faults of replies, broken workflows, and misbehavior.

A draw depends on the seed and on the conversation, never on the clock or on which conversation came first.
"""

import difflib
import hashlib
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue

from ci_evals.extensions.demo import catalog, engine
from ci_evals.extensions.demo.playbook import (
    CallStep,
    ConfirmStep,
    Playbook,
    RestIntegration,
    RuleStep,
    Workflow,
)
from ci_evals.extensions.demo.reply import DemoReply, Move, ResponseType, State, WorkflowStarted


class ReplyFault(StrEnum):
    """One way to answer one message badly."""

    LOST = "lost"
    """The agent answers as if it had not understood, and stays where it was."""
    HASTY = "hasty"
    """The agent plays the current workflow, or the one that the message starts, without its rules."""


class Misbehavior(StrEnum):
    """One thing that the agent does wrong in every conversation, to see what suites notice."""

    SKIP_RULES = "skip_rules"
    """No rule fires or has an effect, nor asks for a confirmation. The text of a workflow's last step stays,
    rule or not: some reply must come."""
    WRONG_INTEGRATION = "wrong_integration"
    """Instead of each integration another one of the domain is called, the first that the workflow does not
    call itself. What depends on the call continues as if it had succeeded."""
    FORGET_PARAMETER = "forget_parameter"
    """One parameter of the current workflow is missing from what every reply has extracted: the first with a
    value. The conversation itself is not affected."""
    ESCALATE_EARLY = "escalate_early"
    """The first message that starts a workflow is handed over to a person."""
    LEAK = "leak"
    """Every reply ends with what nobody should be told."""
    RUDE = "rude"
    """Every reply begins with an insult."""
    CLAIMS = "claims"
    """Nothing changes in the agent's world, whatever its replies and traces say that it did."""
    ERR = "err"
    """An error response comes instead of every reply."""


class UnknownWorkflowError(LookupError):
    """No playbook has a workflow of that code. The text names the nearest, or all there are."""


def drifted(noise: float, drift: float, day: int) -> float:
    """The noise on one day: the same for all servers of that day, as if their provider had good and bad ones.

    `drift` is the standard deviation of its logarithm; 0.7 halves or doubles it on a usual day.
    """
    return min(1.0, noise * math.exp(drift * random.Random(f"day {day}").gauss(0, 1)))  # noqa: S311  # a demo


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
            hint = f"did you mean {close[0]!r}?" if close else f"available: {', '.join(known)}"
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
            asks_by_rule = isinstance(step, ConfirmStep) and step.rule is not None
            if Misbehavior.SKIP_RULES in self.misbehaves and (isinstance(step, RuleStep) or asks_by_rule):
                return True
            hasty = fault is ReplyFault.HASTY and isinstance(step, RuleStep)
            return hasty or (workflow.code in self.broken and isinstance(step, RuleStep | CallStep))

        if fault is ReplyFault.LOST:
            text, suggestions = playbook.texts.fallback, playbook.suggestions
            move = Move(state, DemoReply(text, ResponseType.QUESTION, suggestions=suggestions))
        else:
            confused = Misbehavior.WRONG_INTEGRATION in self.misbehaves
            played = _with_other_calls(playbook) if confused else playbook
            move = engine.respond(played, state, message, variables, omits)
        return self._misbehave(playbook, state, move)

    def _misbehave(self, playbook: Playbook, before: State, move: Move) -> Move:
        """Return the move instead of the right one from the state `before`."""
        kinds = self.misbehaves
        if Misbehavior.ERR in kinds:
            move = Move(before, DemoReply(playbook.texts.error, ResponseType.ERROR, error="internal_error"))
        elif Misbehavior.ESCALATE_EARLY in kinds and any(
            isinstance(item, WorkflowStarted) and item.tool != engine.FORWARDING
            for item in move.reply.decisions
        ):
            move = _handed_over(playbook, move)
        reply = move.reply
        if Misbehavior.FORGET_PARAMETER in kinds:
            reply = replace(reply, params=_forgetful(before, reply))
        if Misbehavior.LEAK in kinds:
            reply = replace(reply, text=f"{reply.text} {playbook.misbehavior.leak}")
        if Misbehavior.RUDE in kinds:
            reply = replace(reply, text=f"{playbook.misbehavior.rude} {reply.text}")
        return replace(move, reply=reply)

    def _random(self, *subject: str | int) -> float:
        """Return a number from 0 to below 1, always the same for the same seed and subject."""
        digest = hashlib.sha256(json.dumps([self.seed, *subject]).encode()).digest()
        return int.from_bytes(digest[:6]) / 2**48


def opening_of(agent_id: str, text: str, variables: Mapping[str, JsonValue]) -> str:
    """Return a digest of how a conversation begins, which the trials of one test have in common."""
    return hashlib.sha256(json.dumps([agent_id, text, variables], sort_keys=True).encode()).hexdigest()


def _with_other_calls(playbook: Playbook) -> Playbook:
    """Return the playbook with every call replaced by one that succeeds, and its results assumed."""
    integrations = {
        code: item.copy_with(failures=()) if isinstance(item, RestIntegration) else item
        for code, item in playbook.integrations.items()
    }
    statuses = {code: 200 for code, item in integrations.items() if isinstance(item, RestIntegration)}
    return playbook.copy_with(
        variables={**playbook.variables, **statuses},
        integrations=integrations,
        workflows=tuple(_calling_others(item, playbook) for item in playbook.workflows),
    )


def _calling_others(workflow: Workflow, playbook: Playbook) -> Workflow:
    own = {step.call for step in workflow.steps if isinstance(step, CallStep)}
    others = [code for code in playbook.integrations if code not in own]

    def other(call: str) -> str:
        return (others or [code for code in playbook.integrations if code != call] or [call])[0]

    steps = [
        step.copy_with(call=other(step.call), books=None) if isinstance(step, CallStep) else step
        for step in workflow.steps
    ]
    return workflow.copy_with(steps=tuple(steps))


def _handed_over(playbook: Playbook, move: Move) -> Move:
    decision = WorkflowStarted(engine.FORWARDING, "intent_classification", "hands over without a reason")
    reply = DemoReply(
        playbook.texts.lost,
        ResponseType.ANSWER,
        intents=move.reply.intents,
        workflows=(engine.FORWARDING,),
        decisions=(decision,),
    )
    return Move(State(forwarded=True), reply)


def _forgetful(before: State, reply: DemoReply) -> Mapping[str, JsonValue]:
    """Return the extracted parameters without the first one that got a value."""
    codes = [code for code in (*before.params, *reply.params) if code in reply.params]
    with_value = [code for code in codes if reply.params[code] != "undefined"]
    return {code: value for code, value in reply.params.items() if code not in with_value[:1]}
