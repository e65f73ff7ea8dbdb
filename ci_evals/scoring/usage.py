"""Usage of a run: calls, tokens and cost of its models, and the agent's time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    return models.model_copy(update={"by_role": (*models.by_role, *_agents_own(trials))})


def usage_of_roles(usages: Iterable[RoleUsage], prices: PriceTable) -> Usage:
    """Calls, tokens and cost of models, by role and model."""
    sums: dict[tuple[str, str | None], Counter[str]] = {}
    costs: dict[tuple[str, str | None], list[float | None]] = {}
    for usage in usages:
        key = (usage.role, usage.model)
        sums.setdefault(key, Counter()).update(
            calls=usage.calls,
            cached=usage.cached,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            uncounted=usage.uncounted,
        )
        if _all_cached(usage):
            continue  # it cost nothing, and says nothing of what others cost
        if _was_answered(usage) or usage.cost_usd is not None:
            costs.setdefault(key, []).append(usage.cost_usd)
    by_role = tuple(
        _priced(
            RoleUsage.model_validate(
                {"role": key[0], "model": key[1]} | {name: _sum([count]) for name, count in counts.items()}
            ),
            _added(costs[key]) if key in costs else None,
            prices,
        )
        for key, counts in sorted(sums.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        if counts.total()
    )
    return Usage(
        calls=_sum(usage.calls for usage in by_role),
        tokens=Tokens(
            input=_sum(usage.input_tokens for usage in by_role),
            output=_sum(usage.output_tokens for usage in by_role),
        ),
        cost_usd=_added(usage.cost_usd for usage in by_role),
        by_role=by_role,
        prices_as_of=prices.as_of,
        unpriced=unpriced((one.model or one.role for one in by_role if one.cost_usd is None), prices),
    )


def _agents_own(trials: Iterable[TrialResult]) -> Iterator[RoleUsage]:
    """Yield the tokens that the agent reports, over the replies that report them."""
    told = [tokens for trial in trials for tokens in trial.turns.tokens]
    if told:
        yield RoleUsage(
            role="agent",
            calls=len(told),
            input_tokens=_sum(read or 0 for read, _ in told),
            output_tokens=_sum(written or 0 for _, written in told),
        )


def _all_cached(usage: RoleUsage) -> bool:
    return usage.cached == usage.calls > 0


def _was_answered(usage: RoleUsage) -> bool:
    return bool(usage.input_tokens or usage.output_tokens or usage.uncounted)


def _priced(usage: RoleUsage, told_cost: float | None, prices: PriceTable) -> RoleUsage:
    if told_cost is None and _all_cached(usage):
        told_cost = 0.0
    if told_cost is not None:
        return usage.model_copy(update={"cost_usd": told_cost})
    price = prices.price_of(usage.model) if usage.model else None
    if price is None:
        return usage
    told = usage.input_tokens or usage.output_tokens
    free = not (price.input or price.output)
    known = free or (told and not usage.uncounted)
    cost = _added([price.cost(usage.input_tokens, usage.output_tokens)]) if known else None
    return usage.model_copy(update={"cost_usd": cost})


def cost_of(usage: RoleUsage, prices: PriceTable) -> float | None:
    """The cost of so much of one model, in US dollars; None if that of an answer is not known."""
    cost = _priced(usage, usage.cost_usd, prices).cost_usd
    return 0.0 if cost is None and not _was_answered(usage) else cost


def unmeasured(usage: RoleUsage, limit: float) -> str:
    """The reason why a budget ends where the cost of an answer is not known."""
    who = f"the {usage.role}'s model {usage.model}" if usage.model else f"the {usage.role}"
    return (
        f"an answer of {who} came without a usable count of tokens, so that its cost is unknown and "
        f"--max-cost={limit:g} cannot be kept"
    )


def cost_of_trial(usage: Usage, trials: int) -> float | None:
    """US dollars a trial, in the mean of so many; None of none, and where the cost is not known."""
    return None if usage.cost_usd is None or not trials else usage.cost_usd / trials


def summed(parts: Sequence[Usage]) -> Usage:
    """The usage of runs together, which may have had other prices each: costs are added as they were told.

    What one of them does not know the price of is unknown of all. The date is that of the oldest prices.
    """
    found: dict[tuple[str, str | None], list[RoleUsage]] = {}
    for one in (one for part in parts for one in part.by_role):
        found.setdefault((one.role, one.model), []).append(one)
    order = sorted(found, key=lambda key: (key[0] == "agent", key[0], key[1] or ""))
    return Usage(
        calls=_sum(part.calls for part in parts),
        tokens=Tokens(
            input=_sum(part.tokens.input for part in parts), output=_sum(part.tokens.output for part in parts)
        ),
        cost_usd=_added(part.cost_usd for part in parts if part.calls or part.cost_usd is not None),
        by_role=tuple(
            found[key][0].model_copy(
                update={
                    "calls": _sum(one.calls for one in found[key]),
                    "cached": _sum(one.cached for one in found[key]),
                    "input_tokens": _sum(one.input_tokens for one in found[key]),
                    "output_tokens": _sum(one.output_tokens for one in found[key]),
                    "uncounted": _sum(one.uncounted for one in found[key]),
                    "cost_usd": _added(one.cost_usd for one in found[key]),
                }
            )
            for key in order
        ),
        prices_as_of=min((part.prices_as_of for part in parts if part.prices_as_of), default=None),
        unpriced=tuple(sorted({model for part in parts for model in part.unpriced})),
    )


def with_other(whole: Usage, role: Role, other: Usage) -> Usage:
    """The usage with all that one role used replaced by `other`. Costs of the rest stay as they were told."""
    kept = tuple(one for one in whole.by_role if one.role != role)
    counted = [one for one in kept if one.role != "agent"]
    unknown = {one.model or one.role for one in counted if one.cost_usd is None}
    rest = Usage(
        calls=_sum(one.calls for one in counted),
        tokens=Tokens(
            input=_sum(one.input_tokens for one in counted), output=_sum(one.output_tokens for one in counted)
        ),
        cost_usd=_added(one.cost_usd for one in counted),
        by_role=kept,
        prices_as_of=whole.prices_as_of if counted else None,
        unpriced=tuple(model for model in whole.unpriced if model in unknown),
    )
    return summed([rest, other])


def _added(costs: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    told = list(costs)
    known = [cost for cost in told if cost is not None]
    return min(fsum(known), MOST_DOLLARS) if len(known) == len(told) else None


def _sum(counts: Iterable[int]) -> int:
    """The sum, which stays a count that results may hold, whatever servers and files tell."""
    return min(sum(counts), MOST)


def latency_of(trials: Iterable[TrialResult]) -> Latency:
    """The agent's time to answer over all replies of the trials, in seconds.

    The 95th percentile is the nearest rank: a time that a reply took, never one between two.
    """
    seconds = sorted(seconds for trial in trials for seconds in trial.turns.latencies)
    if not seconds:
        return Latency()
    rank = -(-95 * len(seconds) // 100)  # rounded up, in whole numbers: 0.95 is none in binary
    return Latency(replies=len(seconds), median=median(seconds), p95=seconds[rank - 1], slowest=seconds[-1])
