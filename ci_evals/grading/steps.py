"""What an agent did, as a judge is shown it."""

import json
from typing import Any

from ci_evals.domain.transcript import Reply


def did(reply: Reply) -> dict[str, Any] | None:
    """What the trace of a reply says that the agent did, in our words; None where it says nothing of that.

    What is not known is left out, so that it does not look as if nothing had happened.
    """
    told = {
        "workflows": _list(reply.workflows),
        "parameters": reply.params,
        "parameters_without_value": _list(reply.named_params or None),
        "rules": _list(reply.rules),
        "integrations": None
        if reply.integrations is None
        else [one.model_dump(exclude_none=True) for one in reply.integrations],
    }
    return {name: value for name, value in told.items() if value is not None} or None


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else [*names]


def texts(told: dict[str, Any] | None) -> tuple[str, ...]:
    """All forms in which a judge may quote it: as it stands in the prompt, and on one line."""
    if told is None:
        return ()
    return tuple(json.dumps(told, ensure_ascii=False, indent=indent) for indent in (1, None))
