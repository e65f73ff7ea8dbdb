"""What a run used: tokens become dollars only where both are known, and times are told by rank."""

from datetime import date

import builders as build
import pytest
from plans import TEST_A, TEST_B, make_plan, trial

from ci_evals.domain.prices import NO_PRICES, PriceTable, unpriced
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import latency_of, summed, usage_of

MODELS = {"small": (0.1, 0.5), "large": (2, 10), "own": (0, 0), "large-2026-01-01": (3, 15)}
MODELS = {name: {"input": read, "output": written} for name, (read, written) in MODELS.items()}
PRICES = PriceTable.model_validate({"asOf": "2026-11-22", "models": MODELS})


def using(*usage, **fields):
    """A trial that used these: role, model, calls, tokens in and out."""
    names = ("role", "model", "calls", "input_tokens", "output_tokens", "cost_usd")
    of_roles = tuple(RoleUsage(**dict(zip(names, one, strict=False))) for one in usage)
    return build.trial_result(usage=of_roles, **fields)


def costs(usage):
    return [one.cost_usd for one in usage.by_role]


def answering(*seconds):
    """A trial whose replies took so long."""
    return build.trial_result(turns=tuple(build.turn(i, latency_seconds=s) for i, s in enumerate(seconds, 1)))


def test_cost_is_the_sum_over_roles_and_models_or_what_the_provider_reports():
    """Each role and model is summed over all trials, then priced."""
    first = using(("user", "small", 5, 4_000, 500), ("judge", "large", 2, 3_000, 400))
    usage = usage_of(
        [first, using(("user", "small", 3, 6_000, 500), ("judge", "small", 1, 1_000, 100))], PRICES
    )
    expected = [("judge", "large", 2), ("judge", "small", 1), ("user", "small", 8)]
    assert [(u.role, u.model, u.calls) for u in usage.by_role] == expected
    assert (costs(usage), usage.cost_usd) == (pytest.approx([0.010, 0.00015, 0.0015]), pytest.approx(0.01165))
    assert (usage.calls, usage.tokens.input, usage.tokens.output) == (11, 14_000, 1_500)
    assert (usage.prices_as_of, usage.unpriced) == (date(2026, 11, 22), ())
    # The provider knows best, with a table or without; calls that failed have no cost.
    judge = [(1, 10, 1, 0.25), (2, 0, 0), (1, 10, 1, 0.5)]
    trials = [using(("judge", "alias", *one)) for one in judge]
    usage = usage_of([*trials, using(("user", "large", 1, 1_000, 10, 0.125))], PRICES)
    assert [(u.model, u.calls, u.cost_usd) for u in usage.by_role] == [
        ("alias", 4, 0.75),
        ("large", 1, 0.125),
    ]
    assert (usage.cost_usd, usage.unpriced) == (0.875, ())
    some = [using(("judge", name, 1, 1_000, 0, cost)) for name in ("alias", "large") for cost in (9.5, None)]
    usage = usage_of(some, PRICES)
    assert (costs(usage), usage.cost_usd, usage.unpriced) == ([None, pytest.approx(0.004)], None, ("alias",))


def test_unpriced_models_or_calls_without_tokens_leave_the_cost_unknown():
    usage = usage_of([using(("user", "small", 1, 1_000, 0), ("judge", "other", 1, 1_000, 10))], PRICES)
    assert (usage.cost_usd, usage.unpriced, costs(usage)) == (None, ("other",), [None, pytest.approx(0.0001)])
    # An agent that tells of its own tokens may not say whose they are: the role stands for the name.
    unnamed = usage_of([using(("agent", None, 1, 1_000, 10))], PRICES)
    assert (unnamed.cost_usd, unnamed.unpriced) == (None, ("agent",))
    # Calls without token counts were not free; their price is known, so the model is not among the unpriced.
    usage = usage_of([using(("user", "small", 4, 0, 0), ("judge", "large", 1, 10, 10))], PRICES)
    assert (costs(usage), usage.cost_usd, usage.unpriced) == ([pytest.approx(0.00012), None], None, ())
    assert usage_of([using(("user", "own", 4, 0, 0), ("judge", "own", 4, 9, 9))], PRICES).cost_usd == 0
    # As with `--provider=offline`; whatever prices are known.
    for prices in (PRICES, NO_PRICES):
        usage = usage_of([using(), using(("user", "other", 0, 0, 0))], prices)
        assert (usage.cost_usd, usage.unpriced, usage.by_role) == (0, (), ())
    assert usage_of([], NO_PRICES).cost_usd == 0


def test_dated_or_prefixed_model_has_the_price_of_its_model():
    """Snapshots do, unless they have a price of their own; nothing else is guessed."""
    two = ("large", "large-2026-08-01", "large-20260801", "vendor/large", "vendor/large-2026-08-01")
    three = ("large-2026-01-01", "vendor/large-2026-01-01")
    none = ("Large", "large-latest", "large-2026-08", "large:free", "reseller/vendor/large", "large-mini", "")
    prices = dict.fromkeys(two, 2) | dict.fromkeys(three, 3) | dict.fromkeys(none)
    for name, dollars in prices.items():
        price = PRICES.price_of(name)
        assert (price.cost(1_000_000, 0) if price else None) == dollars, name
        assert unpriced([name, "small", name], PRICES) == ((name,) if dollars is None else ())


def test_scorecard_contains_usage_and_latency_percentiles():
    """The nearest rank of the replies is a time that occurred."""
    assert latency_of([]) == latency_of([answering()]) == Latency()
    four = latency_of([answering(3.0), answering(1.0, 2.0), answering(10.0)])
    assert four == Latency(replies=4, median=2.5, p95=10.0, slowest=10.0)
    twenty = [float(n) for n in range(20, 0, -1)]
    assert (latency_of([answering(*twenty)]).p95, latency_of([answering(*twenty, 21.0)]).p95) == (19, 20)
    # Of the trials that were played; without a table nothing has a price.
    plan, facts = make_plan(TEST_A, TEST_B), [SuiteFacts("S/x")]
    played = [using(("user", "small", 1, 1_000, 0)), None]
    card = score(plan, played, facts, ScoreRule(offline=False), prices=PRICES)
    assert card.usage.cost_usd == pytest.approx(0.0001)
    assert card.latency == Latency(replies=1, median=1.25, p95=1.25, slowest=1.25)
    bare = score(plan, [trial("passed"), None], facts, ScoreRule(offline=False))
    assert (bare.usage.cost_usd, bare.usage.prices_as_of) == (0, None)


def test_huge_token_counts_are_capped_and_those_of_the_agent_not_priced():
    """Of servers and files that lie: the sum stops at what results may hold, and costs are no less."""
    most = ("judge", "large", 10**15, 10**15, 10**15)
    turn = build.turn(input_tokens=10**15)
    usage = usage_of([using(most, turns=(turn,))] * 2, PRICES)
    assert [one.input_tokens for one in usage.by_role] == [10**15, 10**15]
    assert (usage.calls, usage.cost_usd) == (10**15, 1.2e10)
    dear = usage_of([using((*most, 1e12))] * 2, PRICES)
    assert summed([usage, dear, dear]).cost_usd == 1e12
    # What the agent pays for its own tokens is not known here.
    turn = build.turn(input_tokens=900, output_tokens=40)
    made = build.trial_result(turns=(turn, build.turn(2), build.turn(3, output_tokens=2)))
    usage = usage_of([made, made], PRICES)
    (agent,) = usage.by_role
    assert (agent.role, agent.model, agent.calls) == ("agent", None, 4)
    assert (agent.input_tokens, agent.output_tokens, agent.cost_usd) == (1800, 84, None)
    assert (usage.calls, usage.tokens.input, usage.cost_usd, usage.unpriced) == (0, 0, 0, ())
