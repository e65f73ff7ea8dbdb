"""Where noise comes from is told from scores of which it is known."""

import random
from statistics import fmean

import pytest
from each_row import each_row

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.noise.budget_allocation import RunSize, TrialCosts, advice
from ci_evals.extensions.noise.result import NoiseShare
from ci_evals.extensions.noise.sources import NoiseSources, TestScores, sources_of

TRUTH = {"agent": 200.0, "user": 120.0, "judge": 80.0}
BETWEEN = 300.0


def simulated_scores(rng: random.Random, tests: int, plays: int, **truth: float) -> list[TestScores]:
    """Tests of known noise, in points that know no ceiling."""
    deviation = {source: (TRUTH | truth)[source] ** 0.5 for source in TRUTH}

    def some(middle: float, *sources: str) -> tuple[float, ...]:
        chosen = [deviation[source] for source in sources]
        return tuple(middle + sum(rng.gauss(0, one) for one in chosen) for _ in range(plays))

    def one() -> TestScores:
        own = rng.gauss(70, BETWEEN**0.5)
        user = own + rng.gauss(0, deviation["user"])
        conversation = user + rng.gauss(0, deviation["agent"])
        judged = some(conversation, "judge")
        return TestScores(some(own, "user", "agent", "judge"), some(user, "agent", "judge"), judged)

    return [one() for _ in range(tests)]


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


@pytest.mark.slow  # it computes
def test_noise_intervals_cover_known_variances_and_shares():
    rng = random.Random(8)
    result = [sources_of(simulated_scores(rng, tests=10, plays=4), seed=1, draws=99) for _ in range(250)]
    for index, (source, truth) in enumerate(TRUTH.items()):
        parts = [one.parts[index] for one in result]
        assert {part.source for part in parts} == {source}
        covered = fmean(covers(part.variance, truth) for part in parts)
        shares = fmean(covers(part.share, truth / sum(TRUTH.values())) for part in parts)
        assert 0.9 <= covered <= 0.99, source
        assert 0.9 <= shares <= 0.995, source
    assert 0.85 <= fmean(covers(one.between, BETWEEN) for one in result) <= 0.99


def test_interval_of_rarely_wrong_judge_covers_its_variance():
    rng, error = random.Random(2), 0.085

    def judged() -> tuple[float, ...]:
        return tuple(20.0 * sum(rng.random() >= error for _ in range(5)) for _ in range(3))

    def sources() -> NoiseSources:
        return sources_of([TestScores((50.0, 70.0), None, judged()) for _ in range(10)], seed=1, draws=50)

    estimates = [sources().parts[2].variance for _ in range(150)]
    truth = 5 * 20**2 * error * (1 - error)
    assert fmean(one.low is None or covers(one, truth) for one in estimates) >= 0.92


def test_variance_estimates_are_unbiased_and_shares_add_up_to_one():
    outcome = sources_of(simulated_scores(random.Random(5), tests=4000, plays=3), seed=0, draws=2)
    result = {part.source: part.variance.value for part in outcome.parts}
    assert result == pytest.approx(TRUTH, rel=0.15)
    assert outcome.between.value == pytest.approx(BETWEEN, rel=0.1)
    assert sum(part.share.value for part in outcome.parts) == pytest.approx(1)


def test_noise_intervals_depend_only_on_the_seed():
    samples = simulated_scores(random.Random(1), tests=6, plays=3)
    assert sources_of(samples, seed=4) == sources_of(samples, seed=4) != sources_of(samples, seed=5)


@each_row("alone", [*TRUTH])
def test_single_noise_source_gets_most_of_noise_share(alone):
    off = dict.fromkeys(TRUTH, 0.0) | {alone: 100.0}
    result = sources_of(simulated_scores(random.Random(3), tests=40, plays=4, **off), seed=0)
    shares = {part.source: part.share.value for part in result.parts}
    assert shares[alone] > 0.75
    assert sum(shares.values()) == pytest.approx(1)


def test_noise_share_is_zero_for_negative_variance_and_none_if_constant():
    calm, wild = (70.0, 72.0), (50.0, 90.0)
    result = sources_of([TestScores(calm, wild, calm), TestScores(wild, wild, calm)], seed=0)
    agent, user, judge = result.parts
    assert user.variance.value == user.variance.low == user.share.value == 0
    assert agent.share.value + judge.share.value == pytest.approx(1)
    assert user.variance.high > 0
    result = sources_of([TestScores((0.0, 100.0, 100.0)), TestScores((50.0, 50.0, 100.0))], seed=0)
    agent, user, judge = result.parts
    assert agent.share == Estimate(value=1, low=1, high=1, count=2)
    assert user.variance == judge.variance == Estimate(value=0, low=0, high=0, count=2)
    assert user.share == judge.share == Estimate(value=0, low=0, high=0, count=2)
    result = sources_of([TestScores((80.0,) * 3, (80.0,) * 3, (80.0,) * 3)] * 4, seed=0)
    assert [part.share for part in result.parts] == [None] * 3
    assert result.parts[0].variance == Estimate(value=0, count=4)
    suggestion = advice(result, RunSize(tests=4, loops=1, votes=1), TrialCosts(1, 1, "call"))
    assert (suggestion.best, suggestion.best_in_general, suggestion.standard_error) == (None, None, 0)


def noise_of(*, agent: float = 0, user: float = 0, judge: float = 0, between: float = 0) -> NoiseSources:
    values = {"agent": agent, "user": user, "judge": judge}
    whole = sum(values.values())

    def exactly(value: float) -> Estimate:
        return Estimate(value=value, count=10)

    parts = (
        NoiseShare(source=source, variance=exactly(value), share=exactly(value / whole) if whole else None)
        for source, value in values.items()
    )
    return NoiseSources(tuple(parts), exactly(between))


def variance_of(found: NoiseSources, tests: float, loops: float, votes: float, *, general: bool) -> float:
    trial = found.of("agent") + found.of("user") + found.of("judge") / votes
    return (general * found.between.value + trial / loops) / tests


def test_noise_advice_gain_is_variance_reduction_per_cost():
    result = noise_of(agent=90, user=30, judge=60, between=200)
    suggestion = advice(result, RunSize(8, 2, 3), TrialCosts(0.02, 0.003, "dollar"))
    for general, gains in ((False, suggestion.gains), (True, suggestion.in_general)):
        now = variance_of(result, 8, 2, 3, general=general)
        loops = now - variance_of(result, 8, 3, 3, general=general)
        votes = now - variance_of(result, 8, 2, 5, general=general)
        assert gains["loops"] == pytest.approx(loops / (8 * (0.02 + 3 * 0.003)))
        assert gains["votes"] == pytest.approx(votes / (8 * 2 * 2 * 0.003))
    tests = now - variance_of(result, 9, 2, 3, general=True)
    assert suggestion.in_general["tests"] == pytest.approx(tests / (2 * (0.02 + 3 * 0.003)))
    assert suggestion.gains["tests"] == 0
    assert suggestion.standard_error**2 == pytest.approx(variance_of(result, 8, 2, 3, general=False))


DOLLARS, CALLS = TrialCosts(0.05, 0.001, "dollar"), TrialCosts(0.001, 0.05, "call")
TO_JUDGE = TrialCosts(1, 5, "call")
TWO_THIRDS = "Two thirds of the noise is the judge's, and two more votes remove"
ALL = "All of the noise is the agent's, and two more votes would remove nothing. To know how"
NINETY = "90 % of the noise is the judge's, and one more loop removes 1.6 times as much of it per"
NEARLY = "Nearly all of the noise is the simulated user's"


@each_row(
    ("sources", "costs", "best", "why"),
    [
        (noise_of(agent=50, judge=100, between=10), DOLLARS, "votes", TWO_THIRDS),
        (noise_of(agent=100, between=10), DOLLARS, "loops", ALL),
        (noise_of(agent=10, judge=90), CALLS, "loops", NINETY),
        (noise_of(agent=43, judge=57), TO_JUDGE, "loops", "57 % of the noise is the judge's"),
        (noise_of(agent=19.1, judge=80.9), TO_JUDGE, "loops", "80 % of the noise is the judge's"),
        (noise_of(between=100), TrialCosts(1, 1, "call"), "tests", "Trials of one test do not vary"),
        (noise_of(), TrialCosts(1, 1, "call"), None, "Nothing varies"),
        (noise_of(user=97, judge=3), TrialCosts(5, 0, "call"), "loops", NEARLY),
    ],
)
def test_noise_advice_names_most_efficient_step_with_reason(sources, costs, best, why):
    suggestion = advice(sources, RunSize(tests=5, loops=1, votes=1), costs)
    assert suggestion.best == best
    assert suggestion.why.startswith(why)
