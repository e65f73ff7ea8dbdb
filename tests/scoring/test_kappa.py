"""Agreement beyond chance, held against the library that people know, with and without weights."""

import random
from collections import Counter
from fractions import Fraction

import krippendorff as library
import numpy as np
import pytest

from ci_evals.scoring.agreement.kappa import AgreementTable, Split, alpha
from ci_evals.scoring.agreement.krippendorff import alpha as exact


def ratings(seed: int) -> list[list[bool | None]]:
    """What some people say of some things, by person; some say nothing."""
    rng = random.Random(seed)
    things = [rng.random() < 0.7 for _ in range(rng.randint(2, 30))]
    return [
        [rng.choices([good, not good, None], [7, 2, 2])[0] for good in things]
        for _ in range(rng.randint(2, 5))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_alpha_is_the_librarys(seed):
    """With equal weights, whatever these are."""
    people = ratings(seed)
    units = [[said for said in unit if said is not None] for unit in zip(*people, strict=True)]
    splits = Counter(Split(unit.count(True), unit.count(False)) for unit in units)
    values = sum(len(unit) for unit in units if len(unit) > 1)
    found = alpha([(split, Fraction(times, 7)) for split, times in splits.items()], values)
    assert found == exact(units)
    if found is not None:
        told = np.array(
            [[np.nan if said is None else said for said in person] for person in people], dtype=float
        )
        assert float(found) == pytest.approx(library.alpha(told, level_of_measurement="nominal"))


def test_a_weight_stands_for_as_many_things():
    """A thing that weighs three times as much is as three of them, but for the small sample's sake."""
    weighed = {Split(2, 0): Fraction(3), Split(1, 1): Fraction(1), Split(0, 2): Fraction(2)}
    repeated = [[True, True]] * 3 + [[True, False]] + [[False, False]] * 2
    assert alpha(weighed.items(), 12) == exact(repeated)


def test_kappa():
    """0.8 agreed, 0.58 by chance."""
    found = AgreementTable(Fraction(6, 10), Fraction(1, 10), Fraction(1, 10), Fraction(2, 10))
    assert found.kappa() == (Fraction(8, 10) - Fraction(58, 100)) / (1 - Fraction(58, 100))
    assert (found.sensitivity(), found.specificity()) == (Fraction(6, 7), Fraction(2, 3))
    alike = AgreementTable(Fraction(1), Fraction(0), Fraction(0), Fraction(0))
    assert (alike.kappa(), alike.specificity()) == (None, None)
    assert alpha([(Split(2, 0), 1.0)], 2) is None
    assert alpha([(Split(1, 0), 1.0)], 0) is None
