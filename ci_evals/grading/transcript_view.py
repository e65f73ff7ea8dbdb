"""A conversation as a judge sees it: messages, expectations, agent actions, and why it ended."""

import json
from collections.abc import Sequence
from typing import Any

from ci_evals.domain.actions import AgentAction, LogicKind, actions_of
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import END_REASONS, Reply, Transcript


def conversation(
    planned_turns: Sequence[PlannedTurn], transcript: Transcript, *, actions: bool = False
) -> list[dict[str, Any]]:
    """Return the turns, with the agent's actions on request, and how they ended; secrets are still there."""
    turns: list[dict[str, Any]] = []
    for turn in transcript.turns:
        shown: dict[str, Any] = {"turn": turn.index, "user": turn.user, "agent": turn.agent}
        if expectation := planned_turns[turn.index - 1].expectation:
            shown["expected"] = expectation
        if actions and (did := agent_actions(turn)):
            shown["did"] = did
        turns.append(shown)
    end = {"end": END_REASONS[transcript.status]}
    if transcript.closing_remark:
        end["closing_remark_of_the_user"] = transcript.closing_remark
    return [*turns, end]


def texts_by_turn(shown: Sequence[dict[str, Any]]) -> dict[int, list[str]]:
    """Return the texts of each turn that a judge may quote; a closing remark counts to the last turn.

    Actions may be quoted as they stand in the prompt, or on one line.
    """
    *turns, end = shown
    texts = {turn["turn"]: [turn["user"], turn["agent"]] for turn in turns}
    for turn in turns:
        if did := turn.get("did"):
            texts[turn["turn"]] += (
                json.dumps(did, ensure_ascii=False, indent=indent) for indent in (1, None)
            )
    if texts and "closing_remark_of_the_user" in end:
        texts[max(texts)].append(end["closing_remark_of_the_user"])
    return texts


def agent_actions(reply: Reply) -> dict[str, Any] | None:
    """Return the actions that a reply reports, in the words of the prompt; None if it reports none.

    Unknown kinds of action are left out, so that it does not look as if nothing had happened.
    """
    actions = actions_of(reply)
    parameters, calls = actions[LogicKind.PARAMETER] or (), actions[LogicKind.INTEGRATION]
    reported = {
        "workflows": _names(actions[LogicKind.WORKFLOW]),
        "parameters": None
        if reply.params is None
        else {action.name: action.value for action in parameters if action.value_reported},
        "parameters_without_value": _names([a for a in parameters if not a.value_reported] or None),
        "rules": _names(actions[LogicKind.RULE]),
        "integrations": None
        if calls is None
        else [action.call.model_dump(exclude_none=True) for action in calls if action.call],
    }
    return {name: value for name, value in reported.items() if value is not None} or None


def _names(actions: Sequence[AgentAction] | None) -> list[str] | None:
    return None if actions is None else [action.name for action in actions]
