"""What an agent that is code is told of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue


@dataclass(frozen=True)
class About:
    """What a suite says of its agent, for code that can use it."""

    agent_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    model: str | None = None
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    """The suite's `adapterOptions`."""
    debug: bool = False
    """Whether replies keep what they were made of."""
