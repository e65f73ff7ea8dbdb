"""Ways to misbehave in every conversation, one at a time, so that users see what their suites notice.

Pure. Some change the playbook before it is played, the others the resulting move.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from pydantic import JsonValue

from ci_evals.demo_agent.engine import FORWARDING
from ci_evals.demo_agent.playbook import CallStep, ConfirmStep, Playbook, RestIntegration, RuleStep, Workflow
from ci_evals.demo_agent.reply import DemoReply, Move, ResponseType, State, WorkflowStarted


class Misbehavior(StrEnum):
    """One thing that the agent does wrong in every conversation."""

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
    ERR = "err"
    """An error response comes in place of every reply."""


Misbehaviors = Collection[Misbehavior]


def omits(kinds: Misbehaviors, step: RuleStep | CallStep | ConfirmStep) -> bool:
    """Return whether an agent of these kinds omits that step."""
    if Misbehavior.SKIP_RULES not in kinds:
        return False
    return isinstance(step, RuleStep) or (isinstance(step, ConfirmStep) and step.rule is not None)


def mistaken(kinds: Misbehaviors, playbook: Playbook) -> Playbook:
    """Return the playbook as an agent of these kinds misunderstands it."""
    return _with_other_calls(playbook) if Misbehavior.WRONG_INTEGRATION in kinds else playbook


def spoil(kinds: Misbehaviors, playbook: Playbook, before: State, move: Move) -> Move:
    """Return the move in place of the right one from the state `before`."""
    if Misbehavior.ERR in kinds:
        move = Move(before, DemoReply(playbook.texts.error, ResponseType.ERROR, error="internal_error"))
    elif Misbehavior.ESCALATE_EARLY in kinds and _starts_workflow(move):
        move = _handed_over(playbook, move)
    reply = move.reply
    if Misbehavior.FORGET_PARAMETER in kinds:
        reply = replace(reply, params=_forgetful(before, reply))
    if Misbehavior.LEAK in kinds:
        reply = replace(reply, text=f"{reply.text} {playbook.misbehavior.leak}")
    if Misbehavior.RUDE in kinds:
        reply = replace(reply, text=f"{playbook.misbehavior.rude} {reply.text}")
    return replace(move, reply=reply)


def _with_other_calls(playbook: Playbook) -> Playbook:
    """Return the playbook with every call replaced by one that succeeds, and its results assumed."""
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
    own = {step.call for step in workflow.steps if isinstance(step, CallStep)}
    others = [code for code in playbook.integrations if code not in own]

    def other(call: str) -> str:
        return (others or [code for code in playbook.integrations if code != call] or [call])[0]

    steps = [
        step.model_copy(update={"call": other(step.call)}) if isinstance(step, CallStep) else step
        for step in workflow.steps
    ]
    return workflow.model_copy(update={"steps": tuple(steps)})


def _starts_workflow(move: Move) -> bool:
    return any(isinstance(item, WorkflowStarted) and item.tool != FORWARDING for item in move.reply.decisions)


def _handed_over(playbook: Playbook, move: Move) -> Move:
    decision = WorkflowStarted(FORWARDING, "intent_classification", "hands over without a reason")
    reply = DemoReply(
        playbook.texts.lost,
        ResponseType.ANSWER,
        intents=move.reply.intents,
        workflows=(FORWARDING,),
        decisions=(decision,),
    )
    return Move(State(forwarded=True), reply)


def _forgetful(before: State, reply: DemoReply) -> Mapping[str, JsonValue]:
    """Return the extracted parameters without the first one that got a value."""
    codes = [code for code in (*before.params, *reply.params) if code in reply.params]
    with_value = [code for code in codes if reply.params[code] != "undefined"]
    return {code: value for code, value in reply.params.items() if code not in with_value[:1]}
