"""Scores of trials, tests and suites, and what a run used: tokens, dollars and times."""

from datetime import date

import builders as build
import pytest
from each_row import each_row
from plans import TEST_A, TEST_B, gate_decision, make_plan, scorecard, trial

from ci_evals.domain.prices import NO_PRICES, PriceTable, unpriced
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import latency_of, summed, usage_of


def test_trial_score_is_the_passed_share_of_decided_weight():
    """Nothing decided, no score."""
    for outcomes, points in (
        *[(["passed", "failed"], 50), (["passed*3", "failed"], 75)],
        *[(["passed*0.1", "passed*0.2", "failed*0.7"], 30), (["passed", "no_evidence"], 100)],
        *[(["failed", "judge_error"], 0), (["no_evidence", "judge_error"], None)],
        *[(["passed*0", "failed*0", "no_evidence"], None), ([], None)],
    ):
        assert trial(*outcomes).score == points


def test_score_is_the_mean_over_tests_whatever_their_number_of_trials():
    """A test with more trials does not weigh more; neither does a suite with more tests than its tests."""
    passed = [trial("passed", index=index) for index in (1, 2, 3)]
    result = scorecard(make_plan(TEST_A | {"loops": 3}, TEST_B), *passed, trial("failed"))
    assert (result.score, result.suites[0].score) == (50, 50)
    assert [test.score for test in result.suites[0].tests] == [100, 0]


def test_decided_share_is_by_weight_and_leaves_out_excluded_trials():
    """Trials that broke off decide nothing, but count."""
    half = scorecard(make_plan(TEST_A), trial("passed*3", "judge_error*3"))
    assert (half.score, half.decided_share) == (100, 0.5)
    broken = scorecard(make_plan(TEST_A, TEST_B), trial("passed"), trial("passed", status="failed"))
    assert (broken.score, broken.decided_share) == (100, 0.5)
    left_out = scorecard(make_plan(TEST_A, TEST_B), trial("passed"), trial("passed", status="invalid_user"))
    assert left_out.decided_share == 1
    offline = scorecard(make_plan(TEST_A), trial("no_judge", "passed"), offline=True)
    assert offline.suites[0].decided_share == 0.5


def test_errored_trials_are_counted_and_not_scored():
    for status in ("agent_error", "failed", "interrupted"):
        result = scorecard(make_plan(TEST_A, TEST_B), trial("passed", status=status), trial("passed"))
        (first, _) = result.suites[0].tests
        assert (result.counts.errors, result.counts.scored_trials, first.score) == (1, 1, None), status
        assert (result.score, first.outcome) == (100, "error")


def test_agent_errors_unjudged_criteria_and_unrun_trials_are_counted_separately():
    broken_off = trial("failed", "passed", status="failed")
    result = scorecard(make_plan(TEST_A, TEST_B), trial("failed", status="agent_error"), broken_off)
    assert [test.outcome for test in result.suites[0].tests] == ["failed", "error"]
    assert (result.counts.failed, result.counts.errors) == (1, 2)
    # If the test has an `escalated_due_to_error` evaluation.
    expected = trial("passed", status="agent_error", strict="escalated_due_to_error")
    result = scorecard(make_plan(TEST_A), expected)
    (test,) = result.suites[0].tests
    assert (result.counts.errors, test.passed, test.outcome, test.score) == (0, True, "passed", 100)
    assert (result.counts.scored_trials, test.pass_rate, test.statistics.mean) == (1, 1, 100)
    offline = scorecard(make_plan(TEST_A), trial("passed", "no_judge"), offline=True)
    online = scorecard(make_plan(TEST_A), trial("passed", "no_judge"))
    for counts, expected in ((offline.counts, (1, 0, 0)), (online.counts, (0, 1, 1))):
        assert (counts.passed, counts.errors, counts.undecided) == expected
    result = scorecard(make_plan(TEST_A, TEST_B, loops=2), trial("passed"), None, None, None)
    assert [(t.outcome, t.not_run) for t in result.suites[0].tests] == [("error", 1), ("not_run", 2)]
    assert (result.counts.not_run, result.counts.trials) == (3, 1)


WANTS_ERROR = {"strict": "escalated_due_to_error"}
RIGHT = trial("passed", "passed", "passed", status="agent_error", **WANTS_ERROR)
WRONG = trial("failed", "failed", "passed", **WANTS_ERROR)


@each_row("wrong", range(6))
def test_test_that_expects_an_error_is_scored_by_all_its_trials(wrong):
    """A worse run has a lower score, and passes no floor that a better one misses."""
    trials, plan = [*[WRONG] * wrong, *[RIGHT] * (5 - wrong)], make_plan(TEST_A, loops=5)
    result = scorecard(plan, *trials)
    assert result.score == pytest.approx(100 - wrong * 200 / 3 / 5)
    assert result.suites[0].tests[0].pass_rate == (5 - wrong) / 5
    assert gate_decision(plan, *trials, min_score=80).exit_code == (0 if result.score >= 80 else 1)


def test_test_outcome_and_flakiness_follow_from_its_trials():
    """It passes if all trials pass everything; it is flaky if one passes and another fails."""
    for trials, rate, passed, outcome, flaky in (
        ([["passed"], ["passed"]], 1, True, "passed", False),
        ([["passed"], ["failed"]], 0.5, False, "failed", True),
        ([["failed"], ["failed"]], 0, False, "failed", False),
        ([["passed"], ["passed", "judge_error"]], 0.5, False, "undecided", False),
        ([["no_evidence"], ["no_evidence"]], None, False, "undecided", False),
    ):
        plan = make_plan(TEST_A, loops=2)
        (test,) = scorecard(plan, *(trial(*t, index=i) for i, t in enumerate(trials, 1))).suites[0].tests
        assert (test.pass_rate, test.passed, test.outcome, test.flaky) == (rate, passed, outcome, flaky)


def test_group_score_is_mean_score_of_its_tests():
    """Categories and logic select findings, tags and difficulties tests."""
    plan = make_plan(TEST_A | {"tags": ["x", "y"], "difficulty": "easy"}, TEST_B | {"tags": ["y"]})
    tone = build.finding(category="tone", aui_logic=("R1", "R2"))
    unfriendly = build.finding("failed", category="tone", weight=3, aui_logic=("R1",))
    first = build.trial_result(findings=(tone, unfriendly, build.finding(category="safety")))
    (suite,) = scorecard(plan, first, trial("failed", category="safety")).suites
    shown = {
        kind: [(g.name, g.score, g.tests, g.passed, g.failed) for g in getattr(suite, kind)]
        for kind in ("categories", "aui_logic", "tags", "difficulties")
    }
    assert shown == {
        "categories": [("tone", 25, 1, 1, 1), ("safety", 50, 2, 1, 1)],
        "aui_logic": [("R1", 25, 1, 1, 1), ("R2", 100, 1, 1, 0)],
        "tags": [("x", 40, 1, 2, 1), ("y", 20, 2, 2, 2)],
        "difficulties": [("easy", 40, 1, 2, 1)],
    }


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
    second = using(("user", "small", 3, 6_000, 500), ("judge", "small", 1, 1_000, 100))
    usage = usage_of([first, second], PRICES)
    expected = [("judge", "large", 2), ("judge", "small", 1), ("user", "small", 8)]
    assert [(u.role, u.model, u.calls) for u in usage.by_role] == expected
    assert (costs(usage), usage.cost_usd) == (pytest.approx([0.010, 0.00015, 0.0015]), pytest.approx(0.01165))
    assert (usage.calls, usage.tokens.input, usage.tokens.output) == (11, 14_000, 1_500)
    assert (usage.prices_as_of, usage.unpriced) == (date(2026, 11, 22), ())
    # The provider knows best, with a table or without; calls that failed have no cost.
    judge = [(1, 10, 1, 0.25), (2, 0, 0), (1, 10, 1, 0.5)]
    trials = [using(("judge", "alias", *one)) for one in judge]
    usage = usage_of([*trials, using(("user", "large", 1, 1_000, 10, 0.125))], PRICES)
    expected = [("alias", 4, 0.75), ("large", 1, 0.125)]
    assert [(u.model, u.calls, u.cost_usd) for u in usage.by_role] == expected
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


def test_latency_has_median_p95_and_slowest_over_the_replies_of_all_trials():
    """The nearest rank of the replies is a time that occurred."""
    assert latency_of([]) == latency_of([answering()]) == Latency()
    four = latency_of([answering(3.0), answering(1.0, 2.0), answering(10.0)])
    assert four == Latency(replies=4, median=2.5, p95=10.0, slowest=10.0)
    twenty = [float(n) for n in range(20, 0, -1)]
    assert (latency_of([answering(*twenty)]).p95, latency_of([answering(*twenty, 21.0)]).p95) == (19, 20)


def test_scorecard_has_usage_and_latency_of_the_trials_that_were_played():
    """Without a table nothing has a price."""
    plan, facts = make_plan(TEST_A, TEST_B), [SuiteFacts("S/x")]
    played = [using(("user", "small", 1, 1_000, 0)), None]
    card = score(plan, played, facts, ScoreRule(offline=False), prices=PRICES)
    assert card.usage.cost_usd == pytest.approx(0.0001)
    assert card.latency == Latency(replies=1, median=1.25, p95=1.25, slowest=1.25)
    bare = score(plan, [trial("passed"), None], facts, ScoreRule(offline=False))
    assert (bare.usage.cost_usd, bare.usage.prices_as_of) == (0, None)


def test_huge_token_counts_and_costs_are_capped():
    """Servers and files may lie: the sum stops at what results may hold, and costs are no less."""
    most = ("judge", "large", 10**15, 10**15, 10**15)
    turn = build.turn(input_tokens=10**15)
    usage = usage_of([using(most, turns=(turn,))] * 2, PRICES)
    assert [one.input_tokens for one in usage.by_role] == [10**15, 10**15]
    assert (usage.calls, usage.cost_usd) == (10**15, 1.2e10)
    dear = usage_of([using((*most, 1e12))] * 2, PRICES)
    assert summed([usage, dear, dear]).cost_usd == 1e12


def test_tokens_of_the_agent_are_summed_but_not_priced():
    """Nobody knows here how much it pays for them."""
    turn = build.turn(input_tokens=900, output_tokens=40)
    made = build.trial_result(turns=(turn, build.turn(2), build.turn(3, output_tokens=2)))
    usage = usage_of([made, made], PRICES)
    (agent,) = usage.by_role
    assert (agent.role, agent.model, agent.calls) == ("agent", None, 4)
    assert (agent.input_tokens, agent.output_tokens, agent.cost_usd) == (1800, 84, None)
    assert (usage.calls, usage.tokens.input, usage.cost_usd, usage.unpriced) == (0, 0, 0, ())
