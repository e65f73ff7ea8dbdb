"""Prices of models."""

import re
from collections.abc import Iterable
from datetime import date

from pydantic import Field

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.errors import UsageError

PER = 1_000_000
"""The number of tokens that prices are for."""

LOCAL = "local:"
"""Prefix of models that run on this machine. They cost nothing."""

_VENDOR = re.compile(r"^[^/]+/(?=[^/]+$)")
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")


class Price(Model):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(
        None, ge=0, description="Of input that the provider had kept; if it is missing, that of any input."
    )
    cache_write: float | None = Field(
        None, ge=0, description="Of input that the provider keeps; if it is missing, that of any input."
    )

    def cost(self, input_tokens: float, output_tokens: float, cached: float = 0, written: float = 0) -> float:
        """The cost of these tokens in US dollars, `cached` and `written` among those of the input."""
        kept = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        plain = max(0.0, input_tokens - cached - written)
        return (plain * self.input + cached * kept + written * write + output_tokens * self.output) / PER


class PriceTable(Model):
    """Prices by the name of the model."""

    as_of: date | None = Field(None, description="The day on which these were the prices.")
    models: dict[NonBlank, Price]

    def price_of(self, model: str) -> Price | None:
        """The price of a model, or None if the table has none.

        A name that is not in the table is looked up without a vendor's name in front (`openai/gpt-6-luna`)
        and without a day at the end (`gpt-6-luna-2026-09-22`): a dated snapshot has its model's price.
        Nothing else is guessed. What runs on this machine is free.
        """
        if model.startswith(LOCAL):
            return Price(input=0, output=0)
        if known := self.models.get(model):
            return known
        bare = _VENDOR.sub("", model)
        names = (_SNAPSHOT.sub("", model), bare, _SNAPSHOT.sub("", bare))
        return next((self.models[name] for name in names if name in self.models), None)


NO_PRICES = PriceTable.model_construct(models={})  # needs no validator, which takes a while to build
"""An empty table."""


def unpriced(models: Iterable[str], prices: PriceTable) -> tuple[str, ...]:
    """The models without a price in the table, each once, sorted by name."""
    return tuple(sorted({model for model in models if prices.price_of(model) is None}))


def check_priced(models: Iterable[str], prices: PriceTable) -> None:
    """Refuses a budget that could not be counted, and so would guard nothing.

    Raises:
        UsageError: the table lacks one of the models.
    """
    if missing := unpriced(models, prices):
        raise UsageError(
            f"`max_cost=`: there is no price for {', '.join(missing)}; name a file with its price by "
            "`prices=`"
        )
