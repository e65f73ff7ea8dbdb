"""Usage of a run: calls, tokens and cost of its models, and the agent's time."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from ci_evals.domain.base import Amount, Dollars, ResultPart, Seconds

Role = Literal["user", "judge", "auditor", "embedder", "agent"]
"""The users of tokens: the two jobs of the LLM (simulated user, judge), the model that compares meanings, and
an agent that tells of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleUsage(ResultPart):
    """Calls and tokens of one role with one model."""

    role: Role
    model: str | None = None
    calls: Amount = 0
    cached: Amount = 0
    """The calls that were answered from the cache."""
    input_tokens: Amount = 0
    output_tokens: Amount = 0
    cached_input_tokens: Amount = 0
    """Of the input tokens, those that the provider had kept from an earlier prompt."""
    cache_write_tokens: Amount = 0
    """Of the input tokens, those that the provider charged for keeping."""
    uncounted: Amount = 0
    """Of the calls, those with an answer of which no usable count of tokens is known."""
    cost_usd: Dollars | None = None
    """Of the run; of a trial only if the provider reports the cost of a call. Null if it is
    unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens(ResultPart):
    """Tokens of judge, simulated user and embedding model together."""

    input: Amount = 0
    output: Amount = 0
    cached_input: Amount = 0
    """Of the input, what the providers had kept from earlier prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(ResultPart):
    """Usage of a run."""

    calls: Amount = 0
    tokens: Tokens = Tokens()
    cost_usd: Dollars | None = None
    """US dollars; null if a model's price or an answer's tokens are not known."""
    by_role: tuple[RoleUsage, ...] = ()
    prices_as_of: date | None = None
    """The date of the price table."""
    unpriced: tuple[str, ...] = ()
    """Models that were used and have no price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency(ResultPart):
    """The agent's time to answer, in seconds, over all replies of the run."""

    replies: Amount = 0
    median: Seconds | None = None
    p95: Seconds | None = None
    """The shortest time within which 95 % of the replies came."""
    slowest: Seconds | None = None
    first_token_median: Seconds | None = None
    """Time until the first words came, over all replies that were streamed."""
    first_token_p95: Seconds | None = None
