"""How far votes agree: the truth of judges whose errors are known is found again."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import builders as build
import pytest
from each_row import each_row

from ci_evals.domain.results.judge import Estimate, VoteAgreement
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.verdict import Cause, DimensionGrade, Finding, Grade, Outcome, Vote
from ci_evals.grading.voting import Majority
from ci_evals.scoring.agreement.beyond_chance import Split, alpha, ordinal_alpha
from ci_evals.scoring.agreement.votes import effective_votes, vote_agreement

ERROR, PASSING = 0.1, 0.75
"""How often a vote says the opposite of the truth, and how often the truth is a pass."""
SPLIT = 2 * ERROR * (1 - ERROR)
PASSES = PASSING * (1 - ERROR) + (1 - PASSING) * ERROR
SHARE, ALPHA = 1 - SPLIT, 1 - SPLIT / (2 * PASSES * (1 - PASSES))
"""What two independent votes come to."""


def vote(outcome: Outcome | str, cause: Cause | None = None) -> Vote:
    return Vote(model="m", outcome=Outcome(outcome), cause=cause, reason="r")


def finding_by_votes(rng: random.Random, most: int) -> Finding:
    """A finding by votes that err at random, as many as are asked for."""
    true = rng.random() < PASSING
    votes: list[Vote] = []
    while more := Majority().more(votes, most):
        votes += [vote("passed" if true ^ (rng.random() < ERROR) else "failed") for _ in range(more)]
    outcome = Majority().verdict(votes, most).outcome
    return Finding(criterion="c", kind="judged", reason="r", outcome=outcome, votes=tuple(votes))


def suite_of_votes(seed: int, *, tests: int = 40, criteria: int = 3, most: int = 3) -> SuiteResult:
    rng = random.Random(seed)

    def trial() -> list[Finding]:
        return [replace(finding_by_votes(rng, most), criterion=f"c{c}") for c in range(criteria)]

    return suite_of([[trial()] for _ in range(tests)], most)


def suite_of(findings: list[list[list[Finding]]], most: int = 3, name: str = "s") -> SuiteResult:
    """A suite of tests, each with the findings of its trials."""
    tests = []
    for t, trials in enumerate(findings):
        made = [build.trial_result(i, findings=tuple(result)) for i, result in enumerate(trials, 1)]
        tests.append(build.test_result(f"t{t}", trials=tuple(made)))
    return build.suite_result(name, *tests, judge_model="m", judge_votes=most)


def agreement_of(*suites: SuiteResult) -> VoteAgreement:
    result = vote_agreement(suites)
    assert result
    return result


def contains(estimate: Estimate | None, truth: float) -> bool:
    return estimate is not None and estimate.low <= truth <= estimate.high


@pytest.mark.slow  # it computes
def test_agreement_intervals_contain_the_truth_as_often_as_stated():
    """95 in a hundred, in spite of votes that were asked for only since the first ones had disagreed."""
    whole = agreement_of(suite_of_votes(1)).whole
    assert contains(whole.share, SHARE)
    assert contains(whole.alpha, ALPHA)
    assert whole.verdicts == 120
    suites = (suite_of_votes(seed, tests=15, criteria=2, most=3 + 2 * (seed % 2)) for seed in range(60))
    runs = [*map(agreement_of, suites)]
    assert sum(contains(run.whole.share, SHARE) for run in runs) >= 55
    assert sum(contains(run.whole.alpha, ALPHA) for run in runs) >= 54
    true = {votes: votes / (1 + (votes - 1) * ALPHA) for votes in (3, 5)}
    assert sum(contains(run.effective_votes, true[run.votes]) for run in runs) >= 54


@pytest.mark.parametrize(("shared", "votes"), [(0.0, 9), (0.3, 9), (0.8, 5)])
def test_variance_of_mean_vote_matches_number_of_effective_votes(shared, votes):
    """Votes that repeat one answer with probability `shared`, else are tossed: alpha is its square."""
    rng = random.Random(7)
    means = []
    for _ in range(10_000):
        answer = rng.random() < 0.5
        cast = [answer if rng.random() < shared else rng.random() < 0.5 for _ in range(votes)]
        means.append(sum(cast) / votes)
    varies = sum((mean - 0.5) ** 2 for mean in means) / len(means)
    alpha = Estimate(value=shared**2, low=shared**2, high=shared**2, count=1)
    assert effective_votes(votes, alpha).value == pytest.approx(0.25 / varies, rel=0.05)


@pytest.mark.parametrize("repeated", [0.0, 0.5, 0.9])
def test_effective_votes_never_exceed_value_from_mistake_correlation(repeated):
    """Which only those see who know the truth."""
    rng = random.Random(11)
    passes, mistakes, pairs = [], [], []
    for _ in range(10_000):
        true, common = rng.random() < PASSING, rng.random() < ERROR
        errs = [common if rng.random() < repeated else rng.random() < ERROR for _ in range(2)]
        mistakes.append(errs)
        pairs.append(Split(sum(true ^ err for err in errs), sum(not (true ^ err) for err in errs)))
        passes += [true ^ err for err in errs]
    rate = sum(map(sum, mistakes)) / (2 * len(mistakes))
    both = sum(all(errs) for errs in mistakes) / len(mistakes)
    correlation = (both - rate**2) / (rate * (1 - rate))
    known = float(alpha(((pair, Fraction(1)) for pair in pairs), values=len(passes)))
    estimate = Estimate(value=known, low=known, high=known, count=1)
    assert effective_votes(9, estimate).value <= 9 / (1 + 8 * correlation)


def test_effective_votes_are_unknown_without_disagreement_or_equal_votes():
    """Votes that disagree more than by chance are worth no more than they are."""
    assert agreement_of(suite_of_votes(1, tests=9)).effective_votes is None
    alike = [build.finding("passed", kind="judged", votes=(vote("passed"),) * 2)]
    assert agreement_of(suite_of([[alike] for _ in range(40)])).effective_votes is None
    assert effective_votes(3, Estimate(value=1.0, count=40)) is None
    assert effective_votes(3, Estimate(value=-0.2, low=-0.5, high=0.0, count=40)).high == 3
    # Suites without several votes do not count.
    three, five = suite_of_votes(1), suite_of_votes(2, most=5)
    agreement = agreement_of(three, five)
    assert (agreement.votes, agreement.effective_votes) == (5, None)
    assert agreement_of(three, suite_of_votes(2)).effective_votes
    with_single_votes = agreement_of(three, suite_of_votes(2, most=1))
    assert with_single_votes.effective_votes == agreement_of(three).effective_votes


def test_counting_third_votes_would_underestimate_agreement():
    """A third vote comes only where two disagree: counted too, it makes agreement look worse."""
    trials = [trial for seed in range(20) for test in suite_of_votes(seed).tests for trial in test.trials]
    votes = [finding.votes for trial in trials for finding in trial.findings]

    def share(votes: list[list[Vote]]) -> float:
        pairs = [pair for cast in votes for pair in combinations([vote.outcome for vote in cast], 2)]
        return sum(one is other for one, other in pairs) / len(pairs)

    assert share([cast[:2] for cast in votes]) == pytest.approx(SHARE, abs=0.02)
    assert share(votes) < SHARE - 0.06


def test_alpha_counts_the_first_deciding_votes_and_skips_missing_ones():
    """Void votes and `cannot tell` are missing answers."""
    passed, failed = vote("passed"), vote("failed")
    void, unsure = vote("undecided", Cause.JUDGE_ERROR), vote("undecided", Cause.CANNOT_TELL)
    units = [
        (passed, passed, passed),
        (passed, failed, passed, passed),  # the fourth was asked for since the others disagree
        (failed, void, failed),
        (unsure, passed, unsure),
        (failed, failed, failed),
    ]
    finding = partial(build.finding, "passed", kind="judged")
    suite = suite_of([[[finding(votes=unit, criterion=str(i))]] for i, unit in enumerate(units)], most=5)
    whole = agreement_of(suite).whole
    expected = alpha([(Split(*split), Fraction(1)) for split in ((3, 0), (2, 1), (0, 2), (0, 3))], values=11)
    assert (whole.verdicts, Fraction(whole.share.value).limit_denominator(100)) == (4, Fraction(8, 10))
    assert whole.alpha.value == pytest.approx(float(expected))
    assert whole.alpha.low is None  # of so few tests nothing is known
    assert not whole.low


def test_criteria_are_listed_with_the_worst_agreement_first():
    """Each with its test; where all votes are alike there is no alpha."""
    good = [vote("passed"), vote("passed")]
    split = [vote("passed"), vote("failed"), vote("passed")]
    finding = partial(build.finding, "passed", kind="judged")
    fine = finding(criterion="fine", category="tone", votes=good)
    poor = finding(criterion="poor", category="facts", votes=split)
    other = finding(criterion="other", votes=good)
    result = agreement_of(suite_of([[[fine, poor], [fine, poor]], [[other]]]))
    assert (result.votes, result.models) == (3, ("m",))
    expected = [("poor", "t0", True, 2), ("fine", "t0", False, 2), ("other", "t1", False, 1)]
    assert [(part.name, part.test, part.low, part.verdicts) for part in result.criteria] == expected
    assert [part.share.value for part in result.criteria] == [0, 1, 1]
    assert [part.alpha and part.alpha.value for part in result.criteria] == [-0.5, None, None]
    assert [(part.name, part.low) for part in result.categories] == [("facts", True), ("tone", False)]
    assert not result.whole.low  # 2 of 5 say too little


@each_row(("verdicts", "differ"), [(2, 2), (3, 2), (4, 3), (5, 3), (7, 3), (8, 4), (10, 4), (20, 7)])
def test_agreement_is_low_from_documented_number_of_disagreements(verdicts, differ):
    """docs/judge-statistics.md says so."""

    def low(many: int) -> bool:
        votes = [[vote("passed"), vote("failed" if i < many else "passed")] for i in range(verdicts)]
        trials = [[build.finding("passed", kind="judged", votes=both)] for both in votes]
        (criterion,) = agreement_of(suite_of([trials])).criteria
        return criterion.low

    assert [low(many) for many in range(verdicts + 1)] == [many >= differ for many in range(verdicts + 1)]


def test_agreement_is_never_low_on_one_verdict_and_unknown_without_votes():
    """Two votes that differ once tell of no criterion, nor do three of which one differs."""
    votes = [vote("passed"), vote("failed"), vote("failed")]
    for most in (3, 5):
        result = agreement_of(suite_of([[[build.finding("failed", kind="judged", votes=votes)]]], most))
        assert (result.whole.low, result.criteria[0].low) == (False, False)
    assert vote_agreement([build.suite_result()]) is None
    nothing = agreement_of(suite_of([[[build.finding()]]])).whole
    assert (nothing.share, nothing.alpha, nothing.verdicts, nothing.low) == (None, None, 0, False)


def test_agreement_is_the_same_in_any_order_of_suites():
    """Shards are merged in any order."""
    one, other = suite_of_votes(1, tests=12), replace(suite_of_votes(2, tests=12), name="other")
    assert agreement_of(one, other) == agreement_of(other, one)


def test_criteria_of_a_good_judge_are_rarely_marked_low():
    """And most of those on which a judge tosses a coin."""
    rng = random.Random(3)

    def marked(error: float) -> float:
        def trial() -> list[Finding]:
            votes = [vote("passed" if rng.random() < error else "failed") for _ in range(2)]
            return [build.finding("failed", kind="judged", votes=votes)]

        result = agreement_of(suite_of([[trial() for _ in range(9)] for _ in range(100)])).criteria
        return sum(part.low for part in result) / len(result)

    assert marked(ERROR) < 0.2
    assert marked(0.5) > 0.6


LEVELS, SLIP = (0.0, 0.25, 0.5, 0.75, 1.0), 0.2
"""What levels are worth, and how often a vote names one too low, and one too high."""


def level_chances(true: int) -> dict[int, float]:
    """How often a vote names each level, of one that is truly this."""
    places = {true: 1 - 2 * SLIP}
    for place in (max(true - 1, 0), min(true + 1, 4)):
        places[place] = places.get(place, 0) + SLIP
    return places


def graded_finding(rng: random.Random) -> Finding:
    true = rng.randrange(5)
    votes = []
    for _ in range(2):
        (place,) = rng.choices(*zip(*level_chances(true).items(), strict=True))
        dimension = DimensionGrade(name="clarity", level=str(place), score=LEVELS[place], reason="r")
        grade = Grade(score=LEVELS[place], pass_at=0.7, dimensions=(dimension,))
        outcome = Outcome.PASSED if LEVELS[place] >= grade.pass_at else Outcome.FAILED
        votes.append(replace(vote(outcome), grade=grade))
    return Finding(criterion="c", kind="judged", reason="r", outcome=Outcome.PASSED, votes=tuple(votes))


def true_alpha_of_levels() -> float:
    """The alpha of endlessly many verdicts by two votes each."""
    beside = {}
    for true in range(5):
        for one, p in level_chances(true).items():
            for other, q in level_chances(true).items():
                pair = (LEVELS[one], LEVELS[other])
                beside[pair] = beside.get(pair, 0) + Fraction(round(p * q * 1_000_000))
    return float(ordinal_alpha(beside))


@pytest.mark.parametrize("seed", range(3))
def test_interval_of_rubric_agreement_contains_the_true_alpha(seed):
    rng = random.Random(seed)
    result = vote_agreement([suite_of([[[graded_finding(rng), graded_finding(rng)]] for _ in range(40)])])
    assert result.levels.low < true_alpha_of_levels() < result.levels.high
    assert result.levels.count == 80
    assert result.levels.value > result.whole.alpha.value
    assert vote_agreement([suite_of_votes(1)]).levels is None
