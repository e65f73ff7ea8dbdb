"""What a run used: tokens become dollars only where both are known, and times are told by rank."""

from datetime import date

import builders as build
import pytest
from each_row import each_row
from plans import TEST_A, TEST_B, make_plan, trial

from ci_evals.domain.prices import NO_PRICES, PriceTable, unpriced
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import latency_of, summed, usage_of

PRICES = PriceTable.model_validate(
    {
        "asOf": "2026-11-22",
        "models": {
            "small": {"input": 0.1, "output": 0.5},
            "large": {"input": 2, "output": 10},
            "own": {"input": 0, "output": 0},
            "large-2026-01-01": {"input": 3, "output": 15},
        },
    }
)


def using(*usage, **fields):
    """A trial that used these: role, model, calls, tokens in and out."""
    names = ("role", "model", "calls", "input_tokens", "output_tokens", "cost_usd")
    return build.trial_result(
        usage=tuple(RoleUsage(**dict(zip(names, one, strict=False))) for one in usage), **fields
    )


def answering(*seconds):
    """A trial whose replies took so long."""
    return build.trial_result(turns=tuple(build.turn(i, latency_seconds=s) for i, s in enumerate(seconds, 1)))


def test_cost_by_role_and_model():
    """Each role and model is summed over all trials, then priced; the cost of the run is their sum."""
    usage = usage_of(
        [
            using(("user", "small", 5, 4_000, 500), ("judge", "large", 2, 3_000, 400)),
            using(("user", "small", 3, 6_000, 500), ("judge", "small", 1, 1_000, 100)),
        ],
        PRICES,
    )
    assert [(u.role, u.model, u.calls, u.cost_usd) for u in usage.by_role] == [
        ("judge", "large", 2, pytest.approx(0.010)),
        ("judge", "small", 1, pytest.approx(0.00015)),
        ("user", "small", 8, pytest.approx(0.0015)),
    ]
    assert usage.cost_usd == pytest.approx(0.01165)
    assert (usage.calls, usage.tokens.input, usage.tokens.output) == (11, 14_000, 1_500)
    assert (usage.prices_as_of, usage.unpriced) == (date(2026, 11, 22), ())


def test_a_model_without_a_price_leaves_the_cost_open():
    """A sum without it would look like the whole. What has a price is told all the same."""
    usage = usage_of([using(("user", "small", 1, 1_000, 0), ("judge", "other", 1, 1_000, 10))], PRICES)
    assert usage.cost_usd is None
    assert [u.cost_usd for u in usage.by_role] == [None, pytest.approx(0.0001)]
    assert usage.unpriced == ("other",)


def test_a_provider_may_tell_the_cost_itself():
    """It knows best, with a table or without; calls that failed have none."""
    texts = [
        ("judge", "alias", 1, 10, 1, 0.25),
        ("judge", "alias", 2, 0, 0),
        ("judge", "alias", 1, 10, 1, 0.5),
    ]
    usage = usage_of([*map(using, texts), using(("user", "large", 1, 1_000, 10, 0.125))], PRICES)
    assert [(u.model, u.calls, u.cost_usd) for u in usage.by_role] == [
        ("alias", 4, 0.75),
        ("large", 1, 0.125),
    ]
    assert (usage.cost_usd, usage.unpriced) == (0.875, ())


def test_a_provider_that_tells_some_costs_tells_none():
    """What it tells would look like the whole; the table counts, where it knows the model."""
    some = [using(("judge", name, 1, 1_000, 0, cost)) for name in ("alias", "large") for cost in (9.5, None)]
    usage = usage_of(some, PRICES)
    assert [u.cost_usd for u in usage.by_role] == [None, pytest.approx(0.004)]
    assert (usage.cost_usd, usage.unpriced) == (None, ("alias",))


def test_tokens_of_a_model_that_is_not_named():
    """An agent that tells of its own tokens may not say whose they are: the role stands for the name."""
    usage = usage_of([using(("agent", None, 1, 1_000, 10))], PRICES)
    assert (usage.cost_usd, usage.unpriced) == (None, ("agent",))


def test_calls_without_token_counts_have_unknown_cost():
    """They were not free; the price is known, so the model is not among the unpriced."""
    usage = usage_of([using(("user", "small", 4, 0, 0), ("judge", "large", 1, 10, 10))], PRICES)
    assert usage.cost_usd is None
    assert [u.cost_usd for u in usage.by_role] == [pytest.approx(0.00012), None]
    assert usage.unpriced == ()


def test_calls_of_a_free_model_cost_nothing():
    """Told or not: a model of one's own that is priced at 0."""
    assert usage_of([using(("user", "own", 4, 0, 0), ("judge", "own", 4, 9, 9))], PRICES).cost_usd == 0


def test_no_call_costs_nothing():
    """As with `--provider=offline`; whatever prices are known."""
    for prices in (PRICES, NO_PRICES):
        usage = usage_of([using(), using(("user", "other", 0, 0, 0))], prices)
        assert (usage.cost_usd, usage.unpriced, usage.by_role) == (0, (), ())
    assert usage_of([], NO_PRICES).cost_usd == 0


@each_row(
    ("name", "dollars"),
    [
        ("large", 2),
        ("large-2026-08-01", 2),
        ("large-20260801", 2),
        ("vendor/large", 2),
        ("vendor/large-2026-08-01", 2),
        ("large-2026-01-01", 3),
        ("vendor/large-2026-01-01", 3),
        ("Large", None),
        ("large-latest", None),
        ("large-2026-08", None),
        ("large:free", None),
        ("reseller/vendor/large", None),
        ("large-mini", None),
        ("", None),
    ],
)
def test_the_price_of_a_name(name, dollars):
    """Snapshots have the price of their model, unless they have one of their own; nothing else is guessed."""
    price = PRICES.price_of(name)
    assert (price.cost(1_000_000, 0) if price else None) == dollars
    assert unpriced([name, "small", name], PRICES) == ((name,) if dollars is None else ())


def test_latency_over_all_replies():
    """The usual median; the 95th percentile by nearest rank, so that it is a time that occurred."""
    assert latency_of([]) == latency_of([answering()]) == Latency()
    assert latency_of([answering(3.0), answering(1.0, 2.0), answering(10.0)]) == Latency(
        replies=4, median=2.5, p95=10.0, slowest=10.0
    )
    twenty = [float(n) for n in range(20, 0, -1)]
    assert latency_of([answering(*twenty)]).p95 == 19
    assert latency_of([answering(*twenty, 21.0)]).p95 == 20


def test_a_scorecard_has_usage_and_latency():
    """Of the trials that were played; without a table nothing has a price."""
    plan, facts = make_plan(TEST_A, TEST_B), [SuiteFacts("S/x")]
    played = [using(("user", "small", 1, 1_000, 0)), None]
    card = score(plan, played, facts, ScoreRule(offline=False), prices=PRICES)
    assert card.usage.cost_usd == pytest.approx(0.0001)
    assert card.latency == Latency(replies=1, median=1.25, p95=1.25, slowest=1.25)
    bare = score(plan, [trial("passed"), None], facts, ScoreRule(offline=False))
    assert (bare.usage.cost_usd, bare.usage.prices_as_of) == (0, None)


def test_reported_counts_fit_into_results():
    """Of servers and files that lie: the sum stops at what results may hold, and costs are no less."""
    most = ("judge", "large", 10**15, 10**15, 10**15)
    turn = build.turn(input_tokens=10**15)
    usage = usage_of([using(most, turns=(turn,))] * 2, PRICES)
    assert [one.input_tokens for one in usage.by_role] == [10**15, 10**15]
    assert (usage.calls, usage.cost_usd) == (10**15, 1.2e10)
    dear = usage_of([using((*most, 1e12))] * 2, PRICES)
    assert summed([usage, dear, dear]).cost_usd == 1e12


def test_reported_tokens_of_an_agent_are_shown_with_those_of_models():
    """In no total and no cost: what it pays is not known here."""
    turn = build.turn(input_tokens=900, output_tokens=40)
    made = build.trial_result(turns=(turn, build.turn(2), build.turn(3, output_tokens=2)))
    usage = usage_of([made, made], PRICES)
    (agent,) = usage.by_role
    assert (agent.role, agent.model, agent.calls) == ("agent", None, 4)
    assert (agent.input_tokens, agent.output_tokens, agent.cost_usd) == (1800, 84, None)
    assert (usage.calls, usage.tokens.input, usage.cost_usd, usage.unpriced) == (0, 0, 0, ())
