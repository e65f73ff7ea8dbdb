"""The agreement of a judge's votes: over a run, by criterion and by category.

Only the votes of the first batch count, as many as a majority takes: those are asked for whatever comes.
Later ones are asked for because the first ones disagree, and would make agreement look worse than it is.
docs/judge-statistics.md has the formulas and where they are from.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from ci_evals.domain.results.judge import Estimate, PartAgreement, VoteAgreement
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring.agreement.beyond_chance import Split, alpha, coincidences, ordinal_alpha
from ci_evals.scoring.agreement.clustered import Bundle, share_of
from ci_evals.scoring.statistics import t_quantile

LOW = Fraction(4, 5)
"""The share of pairs of votes that should agree. Where clearly fewer do, a verdict depends on which votes
were asked for."""
DRAWS = 1_000
LEAST = 10
"""Tests, or trials of one, from which an interval of alpha can be told."""
_NORMAL = NormalDist()
_MOST_WITHOUT = 0.05
"""The share of draws that may lack an alpha. Where more have none, since all their votes are alike, there is
no interval."""


@dataclass(frozen=True)
class RatedVerdict:
    """A verdict by the votes of the first batch that decide: how many pass, how many fail."""

    suite: str
    test: str
    trial: int
    criterion: str
    category: str | None
    passes: int
    fails: int
    levels: tuple[tuple[float, ...], ...] = ()
    """The values of the levels that these votes name, for each dimension of a rubric."""

    @property
    def votes(self) -> int:
        """The number of votes that decide."""
        return self.passes + self.fails

    @property
    def pairs(self) -> int:
        """The number of pairs of votes."""
        return self.votes * (self.votes - 1) // 2

    @property
    def agreeing(self) -> int:
        """Pairs that say the same."""
        return self.pairs - self.passes * self.fails


def vote_agreement(suites: Sequence[SuiteResult]) -> VoteAgreement | None:
    """The agreement of votes; None if no criterion has several."""
    voting = [suite for suite in suites if suite.judge_votes > 1]
    if not voting:
        return None
    rated = [verdict for suite in voting for verdict in _rated(suite) if verdict.votes > 1]
    by_criterion, by_category = defaultdict(list), defaultdict(list)
    for verdict in rated:
        by_criterion[verdict.suite, verdict.test, verdict.criterion].append(verdict)
        if verdict.category is not None:
            by_category[verdict.category].append(verdict)
    criteria = [
        _part(verdicts, criterion, lambda verdict: str(verdict.trial), suite=suite, test=test)
        for (suite, test, criterion), verdicts in by_criterion.items()
    ]
    whole = _part(rated, "all", _test)
    numbers = {suite.judge_votes for suite in voting}
    votes = max(numbers)
    return VoteAgreement(
        votes=votes,
        models=tuple(sorted({model for suite in voting for model in suite.models.judges})),
        whole=whole,
        effective_votes=effective_votes(votes, whole.alpha) if len(numbers) == 1 else None,
        levels=_of_levels(rated),
        criteria=tuple(sorted(criteria, key=_worst_first)),
        categories=tuple(_part(verdicts, name, _test) for name, verdicts in sorted(by_category.items())),
    )


def effective_votes(votes: int, alpha: Estimate | None) -> Estimate | None:
    """The independent votes that these are worth at least, by the design effect of alpha (Kish, 1965).

    None without an interval of alpha: what votes that never disagree have in common is unknown.
    """
    if alpha is None or alpha.low is None or alpha.high is None:
        return None

    def worth(alpha: float) -> float:
        return votes / (1 + (votes - 1) * max(alpha, 0.0))

    return Estimate(value=worth(alpha.value), low=worth(alpha.high), high=worth(alpha.low), count=alpha.count)


def _rated(suite: SuiteResult) -> Iterator[RatedVerdict]:
    for test in suite.tests:
        for trial in test.trials:
            for finding in trial.findings:
                if finding.votes:
                    yield _rated_by(suite, test.name, trial.index, finding)


def _rated_by(suite: SuiteResult, test: str, trial: int, finding: Finding) -> RatedVerdict:
    first = (finding.votes or ())[: suite.judge_votes // 2 + 1]
    counts = Counter(vote.outcome for vote in first)
    passes, fails = counts[Outcome.PASSED], counts[Outcome.FAILED]
    levels: dict[str, tuple[float, ...]] = {}
    for grade in filter(None, (vote.grade for vote in first)):
        for dimension in grade.dimensions:
            levels[dimension.name] = (*levels.get(dimension.name, ()), dimension.score)
    scores = tuple(levels.values())
    return RatedVerdict(suite.name, test, trial, finding.criterion, finding.category, passes, fails, scores)


def _test(verdict: RatedVerdict) -> str:
    return f"{verdict.suite}\n{verdict.test}"


def _worst_first(part: PartAgreement) -> tuple[Any, ...]:
    return (part.share.value if part.share else 1.0, part.suite, part.test, part.name)


def _part(
    rated: Sequence[RatedVerdict], name: str, unit: Callable[[RatedVerdict], str], **part: str
) -> PartAgreement:
    """The agreement on these verdicts; those of one unit are not independent of one another."""
    units: dict[str, list[RatedVerdict]] = defaultdict(list)
    for verdict in rated:
        units[unit(verdict)].append(verdict)
    share = share_of(
        Bundle(
            yes=sum(verdict.agreeing for verdict in unit_verdicts),
            of=sum(verdict.pairs for verdict in unit_verdicts),
        )
        for _, unit_verdicts in sorted(units.items())
    )
    return PartAgreement(
        name=name,
        **part,
        share=share,
        alpha=_alpha(rated, units, f"{part} {name}"),
        verdicts=len(rated),
        low=_is_low(rated),
    )


def _is_low(rated: Sequence[RatedVerdict]) -> bool:
    """Return whether the share is below 80 % by more than chance does to so few verdicts.

    By more than a standard error, and half a verdict for continuity (Yates, 1934): with 3 verdicts it takes
    two whose votes differ, with 10 four. A single one never says enough.
    """
    pairs, verdicts = sum(verdict.pairs for verdict in rated), len(rated)
    if not pairs:
        return False
    below = LOW - Fraction(sum(verdict.agreeing for verdict in rated), pairs) - Fraction(1, 2 * verdicts)
    return below > 0 and below**2 * verdicts > LOW * (1 - LOW)


def _alpha(rated: Sequence[RatedVerdict], units: dict[str, list[RatedVerdict]], seed: str) -> Estimate | None:
    """Krippendorff's alpha, nominal, with a bootstrap interval by unit.

    Of few units a bootstrap draws too little: its percentiles are taken as far out as Student's t has it
    (Hesterberg, 2015).
    """
    splits = ((Split(verdict.passes, verdict.fails), Fraction(1)) for verdict in rated)
    value = alpha(splits, values=sum(verdict.votes for verdict in rated))
    if value is None:
        return None
    drawn = _drawn(units, seed) if value < 1 and len(units) >= LEAST else []
    return _estimate(value, drawn, units=len(units), count=len(rated))


def _estimate(value: Fraction, drawn: Sequence[float], *, units: int, count: int) -> Estimate:
    """The value with its interval out of the draws, of which there may be none."""
    if not drawn:
        return Estimate(value=float(value), count=count)
    outside = _NORMAL.cdf(-math.sqrt(units / (units - 1)) * t_quantile(units - 1))
    edge = int(len(drawn) * outside)
    return Estimate(value=float(value), low=drawn[edge], high=drawn[-1 - edge], count=count)


def _drawn(units: dict[str, list[RatedVerdict]], seed: str) -> list[float]:
    """The alphas of as many runs drawn from these units, in their order; none where too few have one.

    What is drawn depends on the units' number alone, so that the same results give the same interval.
    """
    sums = [tuple(map(sum, zip(*map(_coincidences, units[name]), strict=True))) for name in sorted(units)]
    rng = random.Random(f"{seed} {len(sums)}")  # noqa: S311  # a simulation, not a secret
    alphas = []
    for _ in range(DRAWS):
        counts = Counter(rng.choices(sums, k=len(sums)))
        both_pass, split, both_fail = (
            sum(pairs[kind] * times for pairs, times in counts.items()) for kind in range(3)
        )
        passes, fails = both_pass + split, both_fail + split
        if passes and fails:
            alphas.append(1 - (passes + fails - 1) * split / (passes * fails))
    return _enough(alphas)


def _enough(alphas: list[float]) -> list[float]:
    """The alphas in order; none if too few draws have one."""
    return sorted(alphas) if len(alphas) >= DRAWS * (1 - _MOST_WITHOUT) else []


def _coincidences(verdict: RatedVerdict) -> tuple[float, float, float]:
    """Count pairs of votes: pass and pass, pass and fail, fail and fail."""
    among = verdict.votes - 1
    return (
        verdict.passes * (verdict.passes - 1) / among,
        verdict.passes * verdict.fails / among,
        verdict.fails * (verdict.fails - 1) / among,
    )


def _of_levels(rated: Sequence[RatedVerdict]) -> Estimate | None:
    """Krippendorff's alpha, ordinal, of the levels that votes on rubrics name, dimension by dimension."""
    units: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for verdict in rated:
        if verdict.levels:
            units[_test(verdict)] += verdict.levels
    levels = [scores for unit in units.values() for scores in unit]
    value = ordinal_alpha(coincidences(levels))
    if value is None:
        return None
    enough = value < 1 and len(units) >= LEAST
    drawn = _levels_drawn([units[name] for name in sorted(units)]) if enough else []
    return _estimate(value, drawn, units=len(units), count=len(levels))


def _levels_drawn(units: Sequence[Sequence[tuple[float, ...]]]) -> list[float]:
    """The same of as many runs drawn from these units, as `_drawn` has it."""
    by_unit = [{pair: float(count) for pair, count in coincidences(unit).items()} for unit in units]
    rng = random.Random(f"levels {len(units)}")  # noqa: S311  # a simulation, not a secret
    alphas = []
    for _ in range(DRAWS):
        drawn: dict[tuple[float, float], float] = defaultdict(float)
        for index, times in Counter(rng.choices(range(len(units)), k=len(units))).items():
            for pair, count in by_unit[index].items():
                drawn[pair] += count * times
        value = ordinal_alpha(drawn)
        if value is not None:
            alphas.append(value)
    return _enough(alphas)
