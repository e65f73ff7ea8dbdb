"""Usage of a run: calls, tokens and cost of its models, and the agent's time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from math import fsum
from statistics import median

from ci_evals.domain.base import MOST, MOST_DOLLARS
from ci_evals.domain.prices import PriceTable, unpriced
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Latency, Role, RoleUsage, Tokens, Usage


def usage_of(trials: Iterable[TrialResult], prices: PriceTable) -> Usage:
    """Calls, tokens and cost of all trials, by role and model.

    The totals are of judge, simulated user and embedding model. An agent that tells of its tokens stands
    beside them, without a cost: what it pays is not known here.

    Calls are counted when they are made, tokens when an answer tells of them. The cost is what the provider
    tells, else what the tokens come to, so that a call without an answer adds nothing to it. It is null where
    a model has neither, which is then among `unpriced`, and where the tokens of a single answer of a priced
    model are not known, unless the model is free. It is 0 where no model was called, or all answers
    were there from earlier calls.
    """
    trials = tuple(trials)
    models = usage_of_roles((usage for trial in trials for usage in trial.usage), prices)
    return replace(models, by_role=(*models.by_role, *_agents_own(trials)))


def agent_models(usage: Usage) -> tuple[str, ...]:
    """The models of the agent, as far as its answers or traces report them."""
    return tuple(sorted({own.model for own in usage.by_role if own.role == "agent" and own.model}))


def usage_of_roles(usages: Iterable[RoleUsage], prices: PriceTable) -> Usage:
    """Calls, tokens and cost of models, by role and model."""
    by_role = []
    for _, of_model in sorted(_by_model(usages).items(), key=lambda item: item[0]):
        if any(map(_is_used, of_model)):
            by_role.append(_priced(_total(of_model), _known_cost(of_model), prices))
    unknown = (usage.model or usage.role for usage in by_role if usage.cost_usd is None)
    return _whole(by_role, prices.as_of, unpriced(unknown, prices))


def _by_model(usages: Iterable[RoleUsage]) -> dict[tuple[str, str], list[RoleUsage]]:
    grouped: dict[tuple[str, str], list[RoleUsage]] = {}
    for usage in usages:
        grouped.setdefault((usage.role, usage.model or ""), []).append(usage)
    return grouped


def _total(usages: Sequence[RoleUsage], cost_usd: float | None = None) -> RoleUsage:
    return RoleUsage(
        role=usages[0].role,
        model=usages[0].model,
        calls=_sum(usage.calls for usage in usages),
        cached=_sum(usage.cached for usage in usages),
        input_tokens=_sum(usage.input_tokens for usage in usages),
        output_tokens=_sum(usage.output_tokens for usage in usages),
        cached_input_tokens=_sum(usage.cached_input_tokens for usage in usages),
        cache_write_tokens=_sum(usage.cache_write_tokens for usage in usages),
        uncounted=_sum(usage.uncounted for usage in usages),
        cost_usd=cost_usd,
    )


def _whole(by_role: Sequence[RoleUsage], prices_as_of: date | None, unpriced: tuple[str, ...]) -> Usage:
    return Usage(
        calls=_sum(usage.calls for usage in by_role),
        tokens=Tokens(
            input=_sum(usage.input_tokens for usage in by_role),
            output=_sum(usage.output_tokens for usage in by_role),
            cached_input=_sum(usage.cached_input_tokens for usage in by_role),
        ),
        cost_usd=_added(usage.cost_usd for usage in by_role),
        by_role=tuple(by_role),
        prices_as_of=prices_as_of,
        unpriced=unpriced,
    )


def _agents_own(trials: Iterable[TrialResult]) -> Iterator[RoleUsage]:
    """Yield the tokens that the agent reports, over the replies that report them."""
    reported = [tokens for trial in trials for tokens in trial.turns.tokens]
    if reported:
        yield RoleUsage(
            role="agent",
            calls=len(reported),
            input_tokens=_sum(read or 0 for read, _ in reported),
            output_tokens=_sum(written or 0 for _, written in reported),
        )


def _is_used(usage: RoleUsage) -> bool:
    return bool(usage.calls or usage.cached or _was_answered(usage))


def _all_cached(usage: RoleUsage) -> bool:
    return usage.cached == usage.calls > 0


def _was_answered(usage: RoleUsage) -> bool:
    return bool(usage.input_tokens or usage.output_tokens or usage.uncounted)


def _known_cost(usages: Iterable[RoleUsage]) -> float | None:
    """The cost that the provider reports, unless it is missing for an answer that was paid for."""
    paid = []
    for usage in usages:
        if _all_cached(usage):
            continue
        if _was_answered(usage) or usage.cost_usd is not None:
            paid.append(usage.cost_usd)
    return _added(paid) if paid else None


def _priced(usage: RoleUsage, known_cost: float | None, prices: PriceTable) -> RoleUsage:
    return replace(usage, cost_usd=_cost(usage, known_cost, prices))


def _cost(usage: RoleUsage, known_cost: float | None, prices: PriceTable) -> float | None:
    if known_cost is None and _all_cached(usage):
        known_cost = 0.0
    price = prices.price_of(usage.model) if usage.model and known_cost is None else None
    if price is None:
        return known_cost
    is_free = not (price.input or price.output)
    is_counted = (usage.input_tokens or usage.output_tokens) and not usage.uncounted
    if not (is_free or is_counted):
        return None
    cached, kept = usage.cached_input_tokens, usage.cache_write_tokens
    return _added([price.cost(usage.input_tokens, usage.output_tokens, cached, kept)])


def cost_of(usage: RoleUsage, prices: PriceTable) -> float | None:
    """The cost of so much of one model, in US dollars; None if that of an answer is not known."""
    cost = _cost(usage, usage.cost_usd, prices)
    return 0.0 if cost is None and not _was_answered(usage) else cost


def unmeasured(usage: RoleUsage, limit: float) -> str:
    """The reason why a budget ends where the cost of an answer is not known."""
    who = f"the {usage.role}'s model {usage.model}" if usage.model else f"the {usage.role}"
    return (
        f"an answer of {who} came without a usable count of tokens, so its cost is unknown and "
        f"max-cost={limit:g} cannot be kept"
    )


def cost_of_trial(usage: Usage, trials: int) -> float | None:
    """US dollars a trial, in the mean of so many; None of none, and where the cost is not known."""
    if usage.cost_usd is None or not trials:
        return None
    return usage.cost_usd / trials


def summed(parts: Sequence[Usage]) -> Usage:
    """The usage of runs together, which may have had different prices: their costs are added as they are.

    A model that one of them has no price of is unpriced in all. The date is that of the oldest prices.
    """
    grouped = _by_model(usage for part in parts for usage in part.by_role)
    ordered = [grouped[key] for key in sorted(grouped, key=lambda key: (key[0] == "agent", *key))]
    return Usage(
        calls=_sum(part.calls for part in parts),
        tokens=Tokens(
            input=_sum(part.tokens.input for part in parts),
            output=_sum(part.tokens.output for part in parts),
            cached_input=_sum(part.tokens.cached_input for part in parts),
        ),
        cost_usd=_added(part.cost_usd for part in parts if part.calls or part.cost_usd is not None),
        by_role=tuple(_total(same, _added(usage.cost_usd for usage in same)) for same in ordered),
        prices_as_of=min((part.prices_as_of for part in parts if part.prices_as_of), default=None),
        unpriced=tuple(sorted({model for part in parts for model in part.unpriced})),
    )


def with_other(whole: Usage, role: Role, other: Usage) -> Usage:
    """The usage with all that one role used replaced by `other`. Other costs stay."""
    kept = tuple(usage for usage in whole.by_role if usage.role != role)
    models = [usage for usage in kept if usage.role != "agent"]
    unknown = {usage.model or usage.role for usage in models if usage.cost_usd is None}
    unpriced = tuple(model for model in whole.unpriced if model in unknown)
    rest = _whole(models, whole.prices_as_of if models else None, unpriced)
    return summed([replace(rest, by_role=kept), other])


def _added(costs: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    costs = list(costs)
    known = [cost for cost in costs if cost is not None]
    return min(fsum(known), MOST_DOLLARS) if len(known) == len(costs) else None


def _sum(counts: Iterable[int]) -> int:
    """The sum, which stays a count that results may hold, whatever servers and files tell."""
    return min(sum(counts), MOST)


def latency_of(trials: Iterable[TrialResult]) -> Latency:
    """The agent's time to answer over all replies of the trials, in seconds.

    The 95th percentile is the nearest rank: a time that a reply took, never one between two.
    """
    turns = [trial.turns for trial in trials]
    seconds = sorted(seconds for some in turns for seconds in some.latencies)
    if not seconds:
        return Latency()
    first = sorted(seconds for some in turns for seconds in some.first_tokens)
    return Latency(
        replies=len(seconds),
        median=median(seconds),
        p95=_p95(seconds),
        slowest=seconds[-1],
        first_token_median=median(first) if first else None,
        first_token_p95=_p95(first) if first else None,
    )


def _p95(ordered: Sequence[float]) -> float:
    rank = -(-95 * len(ordered) // 100)  # rounded up, in whole numbers: 0.95 is none in binary
    return ordered[rank - 1]
