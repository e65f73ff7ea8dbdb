"""Ways to misbehave in every conversation, one thing at a time, so that users see what their suites notice.

Pure. Some change the playbook before it is played, the others the move that came of it.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from pydantic import JsonValue

from ci_evals.demo_agent.engine import FORWARDING
from ci_evals.demo_agent.playbook import Call, Confirm, Playbook, RestIntegration, Rule, Workflow
from ci_evals.demo_agent.reply import Activated, Move, Reply, ResponseType, State


class Misbehaviour(StrEnum):
    """One thing that the agent does wrong in every conversation."""

    SKIP_RULES = "skip_rules"
    """No rule fires or has an effect, and no confirmation is asked for that a rule wants. What a workflow's
    last step says stays, rule or not: some reply must come."""
    WRONG_INTEGRATION = "wrong_integration"
    """In place of each integration another one of the domain is called, the first that the workflow does not
    call itself. What depends on the call goes on as if it had succeeded."""
    FORGET_PARAMETER = "forget_parameter"
    """One parameter of the workflow under way is missing from what every reply has extracted: the first that
    a value was found for. The conversation itself goes on as ever."""
    ESCALATE_EARLY = "escalate_early"
    """The first message that begins a workflow is handed over to a person."""
    LEAK = "leak"
    """Every reply ends with what nobody should be told."""
    RUDE = "rude"
    """Every reply begins with an insult."""
    ERR = "err"
    """An error response comes in place of every reply."""


Misbehaviours = Collection[Misbehaviour]


def omits(kinds: Misbehaviours, step: Rule | Call | Confirm) -> bool:
    """Whether an agent that misbehaves so leaves out that step."""
    if Misbehaviour.SKIP_RULES not in kinds:
        return False
    return isinstance(step, Rule) or (isinstance(step, Confirm) and step.rule is not None)


def mistaken(kinds: Misbehaviours, playbook: Playbook) -> Playbook:
    """The playbook as an agent that misbehaves so has understood it."""
    return _with_other_calls(playbook) if Misbehaviour.WRONG_INTEGRATION in kinds else playbook


def spoilt(kinds: Misbehaviours, playbook: Playbook, before: State, move: Move) -> Move:
    """The move in place of a right one, which was made from the state `before`."""
    if Misbehaviour.ERR in kinds:
        move = Move(before, Reply(playbook.texts.error, ResponseType.ERROR, error="internal_error"))
    elif Misbehaviour.ESCALATE_EARLY in kinds and _begins_a_workflow(move):
        move = _handed_over(playbook, move)
    reply = move.reply
    if Misbehaviour.FORGET_PARAMETER in kinds:
        reply = replace(reply, params=_forgetful(before, reply))
    if Misbehaviour.LEAK in kinds:
        reply = replace(reply, text=f"{reply.text} {playbook.misbehaviour.leak}")
    if Misbehaviour.RUDE in kinds:
        reply = replace(reply, text=f"{playbook.misbehaviour.rude} {reply.text}")
    return replace(move, reply=reply)


def _with_other_calls(playbook: Playbook) -> Playbook:
    """Every call goes elsewhere and succeeds, and what the right one would have told is taken for granted."""
    integrations = {
        code: item.model_copy(update={"failures": ()}) if isinstance(item, RestIntegration) else item
        for code, item in playbook.integrations.items()
    }
    statuses = {code: 200 for code, item in integrations.items() if isinstance(item, RestIntegration)}
    return playbook.model_copy(
        update={
            "variables": {**playbook.variables, **statuses},
            "integrations": integrations,
            "workflows": tuple(_calling_others(item, playbook) for item in playbook.workflows),
        }
    )


def _calling_others(workflow: Workflow, playbook: Playbook) -> Workflow:
    own = {step.call for step in workflow.steps if isinstance(step, Call)}
    others = [code for code in playbook.integrations if code not in own]

    def other(call: str) -> str:
        there = others or [code for code in playbook.integrations if code != call] or [call]
        return there[0]

    steps = [
        step.model_copy(update={"call": other(step.call)}) if isinstance(step, Call) else step
        for step in workflow.steps
    ]
    return workflow.model_copy(update={"steps": tuple(steps)})


def _begins_a_workflow(move: Move) -> bool:
    return any(isinstance(item, Activated) and item.tool != FORWARDING for item in move.reply.decisions)


def _handed_over(playbook: Playbook, move: Move) -> Move:
    decision = Activated(FORWARDING, "intent_classification", "hands over without a reason")
    reply = Reply(
        playbook.texts.lost,
        ResponseType.ANSWER,
        intents=move.reply.intents,
        workflows=(FORWARDING,),
        decisions=(decision,),
    )
    return Move(State(forwarded=True), reply)


def _forgetful(before: State, reply: Reply) -> Mapping[str, JsonValue]:
    """What was extracted, without the parameter whose value was found first."""
    found = [code for code in (*before.params, *reply.params) if code in reply.params]
    known = [code for code in found if reply.params[code] != "undefined"]
    return {code: value for code, value in reply.params.items() if code not in known[:1]}
