"""A judge held against people: numbers that find a seeded truth, and a verdict that can be explained."""

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from each_row import each_row
from simulated_labels import LabelingModel, sample_labels

from ci_evals.domain.results.judge import Estimate
from ci_evals.extensions.calibration.judge_accuracy import LabeledGroup, corrected, rater
from ci_evals.extensions.calibration.labeled_verdicts import LabeledVerdict
from ci_evals.extensions.calibration.result import Counted

WORLD = LabelingModel()
RATES = ("accuracy", "sensitivity", "specificity", "kappa")


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def group(
    table: dict[tuple[bool, tuple[bool | None, ...]], int], *, passes: int, fails: int, rate=None
) -> LabeledGroup:
    """So many verdicts of each kind, each of a conversation of its own."""
    texts = [key for key, times in table.items() for _ in range(times)]
    labeled = [LabeledVerdict(str(place), *key) for place, key in enumerate(texts)]
    return LabeledGroup("all", "all", labeled, passes, fails, rate)


def test_intervals_of_many_labels_hold_the_true_error_rates_of_the_judge():
    rng = random.Random(3)
    world = replace(WORLD, verdicts=3000, mistakes=(0.04, 0.04, 0.04))
    population = world.population(rng)
    result = rater(sample_labels(population, 900, rng))
    for name in RATES:
        assert holds(getattr(result, name), getattr(world, name)), name
        assert getattr(result, name).value == pytest.approx(getattr(world, name), abs=0.06)
    assert holds(result.people, world.people_alpha)
    assert holds(result.corrected, sum(good for good, _ in population) / len(population))
    assert result.corrected.value == pytest.approx(0.85, abs=0.02)
    assert result.pass_rate == pytest.approx(0.81, abs=0.02)


def test_sensitivity_is_corrected_for_oversampled_fails():
    rng = random.Random(5)
    sample = sample_labels(replace(WORLD, verdicts=20_000).population(rng), 4000, rng)
    seen = Counter((one.passed, one.by_people) for one in sample.labeled)
    naive = seen[True, True] / (seen[True, True] + seen[False, True])
    result = rater(sample, draws=400)
    assert holds(result.sensitivity, WORLD.sensitivity)
    assert not holds(result.sensitivity, naive)
    assert naive < WORLD.sensitivity - 0.1


@pytest.mark.parametrize("labels", [40, 100])
def test_intervals_hold_the_true_rates_in_95_of_100_samples(labels):
    rng, held, times = random.Random(labels), Counter(), 100
    for seed in range(times):
        population = WORLD.population(rng)
        result = rater(sample_labels(population, labels, rng), seed=seed, draws=120)
        held.update(name for name in RATES if holds(getattr(result, name), getattr(WORLD, name)))
        held["corrected"] += holds(result.corrected, sum(good for good, _ in population) / len(population))
    for name in (*RATES, "corrected"):
        assert held[name] / times == pytest.approx(0.955, abs=0.045), name


def test_labels_of_one_conversation_widen_the_interval():
    world = replace(WORLD, verdicts=1200, of_one=4)
    rng, held, times = random.Random(11), 0, 50
    for seed in range(times):
        population = world.population(rng)
        conversations = {one.conversation for _, one in population}
        chosen = set(rng.sample(sorted(conversations), 40))
        labeled = [one for _, one in population if one.conversation in chosen]
        passes = sum(one.passed for _, one in population)
        result = rater(LabeledGroup("all", "all", labeled, passes, 1200 - passes, None), seed=seed, draws=120)
        held += holds(result.accuracy, world.accuracy)
        assert result.counted.design == 1 or 2 < result.counted.design < 9
    assert held / times >= 0.9


def test_judge_rates_and_corrected_pass_rate_match_a_calculation_by_hand():
    table = {(True, (True,)): 54, (True, (False,)): 6, (False, (False,)): 16, (False, (True,)): 4}
    result = rater(group(table, passes=100, fails=50, rate=100 / 150))
    # 90 and 10 of the passes, 40 and 10 of the fails, were all labelled.
    assert (result.accuracy.value, result.sensitivity.value) == (pytest.approx(130 / 150), pytest.approx(0.9))
    assert (result.specificity.value, result.kappa.value) == (pytest.approx(0.8), pytest.approx(0.7))
    assert result.corrected.value == pytest.approx(100 / 150)  # as many passes were wrong as fails
    assert (result.items, result.sensitivity.count, result.specificity.count) == (80, 58, 22)
    assert result.may_gate is True
    # Rogan and Gladen (1978): a rate of 0.62, with sensitivity 0.9 and specificity 0.8, is 0.6.
    passes, fails = {"passes_passed": 90, "passes_failed": 10}, {"fails_passed": 10, "fails_failed": 40}
    counted = Counted(**passes, **fails, passes=100, fails=50)
    result = corrected(counted, 0.62, own=False)
    assert result.value == pytest.approx(0.6)
    assert holds(result, 0.6)
    assert (corrected(counted, 0.1, own=False).value, corrected(counted, 1.0, own=False).value) == (0, 1)
    own, other = corrected(counted, 2 / 3, own=True), corrected(counted, 2 / 3, own=False)
    assert own.high - own.low < other.high - other.low


def test_judge_no_better_than_chance_gives_no_corrected_rate():
    cells = dict.fromkeys(("passes_passed", "passes_failed", "fails_passed", "fails_failed"), 50)
    blind = Counted(**cells, passes=100, fails=100)
    assert corrected(blind, 0.7, own=True) is None
    assert corrected(None, 0.7, own=True) is None
    assert corrected(replace(blind, fails_passed=45), None, own=True) is None
    barely = corrected(replace(blind, fails_passed=48), 0.7, own=False)
    assert (barely.low, barely.high) == (0, 1)


def test_judge_rates_exclude_tied_and_unsure_labels_and_need_labeled_fails():
    table = {(True, (True, True)): 5, (True, (True, False)): 3, (True, (None, None)): 2}
    table |= {(False, (False, None)): 4}
    result = rater(group(table, passes=50, fails=10))
    assert (result.items, result.counted.passes_failed) == (9, 0)
    assert result.alpha.count == 12  # a tie is disagreement, and no less so
    result = rater(group({(True, (True,)): 40}, passes=90, fails=10, rate=0.9))
    assert (result.accuracy, result.sensitivity, result.kappa, result.corrected) == (None,) * 4
    assert result.may_gate is None
    assert "none of the judge's fails" in result.why
    assert rater(group({}, passes=90, fails=10)).why.startswith("too few labels")


def test_rates_depend_on_the_seed_but_not_on_the_order_of_labels():
    rng = random.Random(2)
    sample = sample_labels(replace(WORLD, mistakes=(0.1, 0.1)).population(rng), 60, rng)
    turned = replace(sample, labeled=[*reversed(sample.labeled)])
    assert rater(sample, draws=50) == rater(turned, draws=50)
    assert rater(sample, draws=50) != rater(sample, seed=1, draws=50)


def test_more_labels_narrow_the_interval_of_kappa():
    rng = random.Random(6)
    population = replace(WORLD, verdicts=4000).population(rng)
    kappas = [rater(sample_labels(population, labels, rng), draws=400).kappa for labels in (30, 120, 480)]
    assert all(wide.high - wide.low > narrow.high - narrow.low for wide, narrow in pairwise(kappas))


def test_cohens_kappa_of_people_is_given_for_exactly_two():
    rng = random.Random(8)
    world = replace(WORLD, verdicts=4000, mistakes=(0.1, 0.1), prevalence=0.5)
    sample = sample_labels(world.population(rng), 800, rng)
    result = rater(sample, draws=400)
    assert holds(result.people_kappa, 1 - 2 * 0.1 * 0.9 / 0.5)
    assert holds(result.people, world.people_alpha)
    three = replace(sample, labeled=[replace(one, people=(*one.people, True)) for one in sample.labeled])
    assert rater(three, draws=20).people_kappa is None
    alone = replace(sample, labeled=[replace(one, people=one.people[:1]) for one in sample.labeled])
    result = rater(alone, draws=20)
    assert (result.people, result.people_kappa) == (None, None)


def group_of(both_pass: int, judge_passes: int, people_pass: int, both_fail: int) -> LabeledGroup:
    """So many verdicts, all of which one person has labelled."""
    table = {(True, (True,)): both_pass, (True, (False,)): judge_passes}
    table |= {(False, (True,)): people_pass, (False, (False,)): both_fail}
    return group(table, passes=both_pass + judge_passes, fails=people_pass + both_fail)


@each_row(("labels", "may", "missing", "why"), [
    (group_of(40, 2, 2, 36), True, 0, "kappa is 0.89 ("),
    (group_of(40, 2, 20, 36), False, 0, "sensitivity is 0.66, below 0.8"),
    (group_of(40, 20, 2, 36), False, 0, "specificity is 0.64, below 0.8"),
    (group_of(90, 4, 11, 8), False, 0, "kappa is 0.44 (0.20 to 0.65), below 0.6"),
    (group_of(16, 3, 3, 12), False, 0, "which may be below 0.4"),
    (group_of(40, 1, 2, 7), None, 2, "8 of 10 that people fail; it takes 2 more"),
    (group_of(9, 1, 0, 8), None, 12, "18 of 30, 9 of 10 that people pass, 9 of 10 that people fail"),
])  # fmt: skip
def test_judge_may_gate_only_with_enough_labels_kappa_sensitivity_and_specificity(labels, may, missing, why):
    result = rater(labels)
    assert (result.may_gate, result.missing) == (may, missing)
    assert why in result.why


def test_judge_may_not_gate_if_people_disagree():
    """However well the judge does by their majority."""
    rng = random.Random(1)
    world = replace(WORLD, mistakes=(0.3, 0.3, 0.3))
    result = rater(sample_labels(world.population(rng), 200, rng), draws=200)
    assert result.may_gate is False
    assert "people agree too little" in result.why
