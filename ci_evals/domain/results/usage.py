"""Usage of a run: calls, tokens and cost of its models, and the agent's time."""

from datetime import date
from typing import Literal

from pydantic import Field

from ci_evals.domain.base import Amount, Dollars, Record, Seconds

Role = Literal["user", "judge", "auditor", "embedder", "agent"]
"""The users of tokens: the two jobs of the LLM (simulated user, judge), the model that compares meanings, and
an agent that tells of its own."""


class RoleUsage(Record):
    """Calls and tokens of one role with one model."""

    role: Role
    model: str | None = None
    calls: Amount = 0
    cached: Amount = Field(0, description="The calls that were answered from the cache.")
    input_tokens: Amount = 0
    output_tokens: Amount = 0
    cached_input_tokens: Amount = Field(
        0, description="Of the input tokens, those that the provider had kept from an earlier prompt."
    )
    cache_write_tokens: Amount = Field(
        0, description="Of the input tokens, those that the provider charged for keeping."
    )
    uncounted: Amount = Field(
        0, description="Of the calls, those with an answer of which no usable count of tokens is known."
    )
    cost_usd: Dollars | None = Field(
        None,
        description="Of the run; of a trial only if the provider reports the cost of a call. "
        "Null if it is unknown.",
    )


class Tokens(Record):
    """Tokens of judge, simulated user and embedding model together."""

    input: Amount = 0
    output: Amount = 0
    cached_input: Amount = Field(
        0, description="Of the input, what the providers had kept from earlier prompts."
    )


class Usage(Record):
    """Usage of a run."""

    calls: Amount = 0
    tokens: Tokens = Tokens()
    cost_usd: Dollars | None = Field(
        None, description="US dollars; null if a model's price or an answer's tokens are not known."
    )
    by_role: tuple[RoleUsage, ...] = ()
    prices_as_of: date | None = Field(None, description="The date of the price table.")
    unpriced: tuple[str, ...] = Field((), description="Models that were used and have no price.")


class Latency(Record):
    """The agent's time to answer, in seconds, over all replies of the run."""

    replies: Amount = 0
    median: Seconds | None = None
    p95: Seconds | None = Field(None, description="The shortest time within which 95 % of the replies came.")
    slowest: Seconds | None = None
    first_token_median: Seconds | None = Field(
        None, description="Time until the first words came, over all replies that were streamed."
    )
    first_token_p95: Seconds | None = None
