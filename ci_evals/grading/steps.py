"""What an agent did, as a judge is shown it."""

import json
from collections.abc import Sequence
from typing import Any

from ci_evals.domain.actions import AgentAction, LogicKind, actions_of
from ci_evals.domain.transcript import Reply


def did(reply: Reply) -> dict[str, Any] | None:
    """The actions that a reply reports, in our words; None if it reports none.

    What is not known is left out, so that it does not look as if nothing had happened.
    """
    actions = actions_of(reply)
    parameters, calls = actions[LogicKind.PARAMETER] or (), actions[LogicKind.INTEGRATION]
    values = {action.name: action.value for action in parameters if action.value_reported}
    steps = {
        "workflows": _names(actions[LogicKind.WORKFLOW]),
        "parameters": None if reply.params is None else values,
        "parameters_without_value": _names([one for one in parameters if not one.value_reported] or None),
        "rules": _names(actions[LogicKind.RULE]),
        "integrations": None
        if calls is None
        else [action.call.model_dump(exclude_none=True) for action in calls if action.call],
    }
    return {name: value for name, value in steps.items() if value is not None} or None


def _names(actions: Sequence[AgentAction] | None) -> list[str] | None:
    return None if actions is None else [action.name for action in actions]


def texts(told: dict[str, Any] | None) -> tuple[str, ...]:
    """All forms in which a judge may quote it: as it stands in the prompt, and on one line."""
    if told is None:
        return ()
    return tuple(json.dumps(told, ensure_ascii=False, indent=indent) for indent in (1, None))
