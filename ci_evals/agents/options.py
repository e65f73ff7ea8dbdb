"""What options of several kinds of agents have in common."""

from collections.abc import Collection
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from ci_evals.domain.base import Model, NonBlank
from ci_evals.support import placeholders

T = TypeVar("T")

OF_A_TEST = ("userInfo", "agentId", "model", "systemPrompt")
"""Placeholders for a suite's settings of the agent and its user; `userInfo.plan.name` is a part of it."""


def check_names(value: T, allowed: Collection[str]) -> T:
    """Return `value`, every `{{name}}` in which is one of `allowed`.

    Raises:
        ValueError: one is not; a clause to go after the value.
    """
    for name in placeholders.names(value):
        if name in allowed or (name.startswith("userInfo.") and "userInfo" in allowed):
            continue
        hint = f"available: {', '.join(allowed)}"
        if name == "key":
            hint = "the key goes in headers only"
        raise ValueError(f"holds {{{{{name}}}}}, which is unknown; {hint}")
    return value


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    return check_names(headers, ("key",))


Headers = Annotated[dict[str, str], AfterValidator(_check_headers)]


def headers_field(sent_as: str) -> Any:
    """Return the field of headers; the key is sent as this if none of them names it."""
    return Field(
        default_factory=dict,
        description="More headers. `{{key}}` stands for the agent's key; if no header names it, the "
        f"key is sent as {sent_as}.",
    )


class ServerOptions(Model):
    """Options of most agents behind a server."""

    headers: Headers = headers_field("`Authorization: Bearer`")
    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")
