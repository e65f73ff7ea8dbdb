"""People who label, and a judge, with known and seeded errors."""

import random
from dataclasses import dataclass

from ci_evals.extensions.calibration.judge_accuracy import LabeledGroup
from ci_evals.extensions.calibration.labeled_verdicts import LabeledVerdict


@dataclass(frozen=True)
class LabelingModel:
    """What conversations, judge and people are like in truth."""

    prevalence: float = 0.85
    """The share of verdicts that should be passes."""
    sensitivity: float = 0.93
    specificity: float = 0.85
    verdicts: int = 400
    of_one: int = 1
    """Verdicts of each conversation, all of which are alike in truth and to the judge."""
    mistakes: tuple[float, ...] = (0.0,)
    """Of each person: the chance to say the wrong thing."""

    @property
    def accuracy(self) -> float:
        return self.prevalence * self.sensitivity + (1 - self.prevalence) * self.specificity

    @property
    def kappa(self) -> float:
        """Of judge and truth."""
        passed = self.prevalence * self.sensitivity + (1 - self.prevalence) * (1 - self.specificity)
        chance = self.prevalence * passed + (1 - self.prevalence) * (1 - passed)
        return (self.accuracy - chance) / (1 - chance)

    @property
    def people_alpha(self) -> float:
        """Of two people, or more with the same mistakes."""
        wrong = self.mistakes[0]
        passed = self.prevalence * (1 - wrong) + (1 - self.prevalence) * wrong
        return 1 - 2 * wrong * (1 - wrong) / (2 * passed * (1 - passed))

    def population(self, rng: random.Random) -> list[tuple[bool, LabeledVerdict]]:
        """Each verdict's truth, and what was said of it."""
        result = []
        for number in range(self.verdicts // self.of_one):
            good = rng.random() < self.prevalence
            passed = rng.random() < (self.sensitivity if good else 1 - self.specificity)
            for _ in range(self.of_one):
                people = tuple(good != (rng.random() < wrong) for wrong in self.mistakes)
                result.append((good, LabeledVerdict(str(number), passed, people)))
        return result


def sample_labels(
    population: list[tuple[bool, LabeledVerdict]], labels: int, rng: random.Random
) -> LabeledGroup:
    """As many labels as that, half of them of the judge's fails as far as there are."""
    sides = [[one for _, one in population if one.passed is result] for result in (True, False)]
    fails = min(len(sides[1]), labels // 2)
    chosen = [*rng.sample(sides[0], min(len(sides[0]), labels - fails)), *rng.sample(sides[1], fails)]
    rate = len(sides[0]) / len(population)
    return LabeledGroup("all", "all", chosen, len(sides[0]), len(sides[1]), rate)
