"""From a judge's answers on pairs of conversations to wins, losses and ties, and how the place swayed it."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Git
from ci_evals.extensions.preference.result import Better, Preference, Preferred
from ci_evals.scoring.agreement.clustered import Bundle, share_of

PairResult = Literal["win", "loss", "tie"]
"""The outcome of a pair, for this run's conversation."""

_REASONS = 3
"""Reasons kept of a test."""


@dataclass(frozen=True)
class Round:
    """One pair shown twice; None if the judge could not be asked or read."""

    straight: Better | None
    """This run's conversation stood first."""
    swapped: Better | None
    """The other run's did."""
    reason: str = ""
    """The judge's, for the first of these."""

    @property
    def result(self) -> PairResult | None:
        """A side wins that is named both times; whatever else was answered is a tie."""
        match self.straight, self.swapped:
            case (None, _) | (_, None):
                return None
            case "first", "second":
                return "win"
            case "second", "first":
                return "loss"
        return "tie"

    @property
    def followed_place(self) -> bool:
        """Tell whether the same position was preferred both times, whichever conversation was there."""
        return self.straight == self.swapped and self.straight in {"first", "second"}


@dataclass(frozen=True)
class ComparedPair:
    """One pair of conversations with all that was said of it."""

    suite: str
    test: str
    rounds: tuple[Round, ...]
    votes: int
    """The most rounds that there may be."""
    counted: int = 1
    """Rounds that were asked unconditionally: these alone are used to measure position bias."""

    @property
    def result(self) -> PairResult | None:
        """The majority of all rounds, else a tie; None if a missing round could have decided."""
        said = [one.result for one in self.rounds]
        for result in ("win", "loss", "tie"):
            if 2 * said.count(result) > self.votes:
                return result
        return None if None in said else "tie"

    @property
    def followed_place(self) -> bool:
        """Tell whether an answer followed the position."""
        return any(one.followed_place for one in self.rounds[: self.counted])


def decided(rounds: Sequence[Round], votes: int) -> bool:
    """Tell whether more rounds could not change the outcome."""
    said = [one.result for one in rounds]
    left = votes - len(said)
    most = max(said.count(result) for result in ("win", "loss", "tie"))
    return left <= 0 or 2 * most > votes or 2 * (most + left) <= votes


def preference(
    pairs: Sequence[ComparedPair], judge: JudgeUsed, at: datetime, other: str, git: Git
) -> Preference:
    """Sum up all pairs, which are ordered by test."""
    grouped = groupby(pairs, key=lambda pair: (pair.suite, pair.test))
    pairs_by_test = [tuple(of_test) for _, of_test in grouped]
    tests = tuple(map(_preferred, pairs_by_test))
    wins = sum(test.wins for test in tests)
    losses = sum(test.losses for test in tests)
    ties = sum(test.ties for test in tests)
    return Preference(
        judge=judge,
        at=at,
        other=other,
        other_commit=git.commit,
        pairs=len(pairs),
        wins=wins,
        losses=losses,
        ties=ties,
        undecided=len(pairs) - wins - losses - ties,
        share=share_of(
            Bundle(test.wins + test.ties / 2, test.wins + test.losses + test.ties) for test in tests
        ),
        p=sign_test(tests),
        # Answers on one test are alike, those on one pair above all: the test is the unit.
        first=share_of(map(_places, pairs_by_test)),
        swapped=sum(pair.followed_place for pair in pairs),
        tests=tests,
    )


def sign_test(tests: Iterable[Preferred]) -> float | None:
    """The exact two-sided sign test over tests.

    A test with as many wins as losses says nothing of it. None if all are such.
    """
    signs = [test.wins > test.losses for test in tests if test.wins != test.losses]
    n, fewer = len(signs), min(sum(signs), len(signs) - sum(signs))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / 2**n) if n else None


def _places(pairs: Sequence[ComparedPair]) -> Bundle:
    """The answers on a test that prefer the first position, of those that prefer either."""
    counted = [one for pair in pairs for one in pair.rounds[: pair.counted]]
    answers = Counter(answer for one in counted for answer in (one.straight, one.swapped))
    return Bundle(answers["first"], answers["first"] + answers["second"])


def _preferred(pairs: Sequence[ComparedPair]) -> Preferred:
    results = [pair.result for pair in pairs]
    reasons = [
        f"{result}: {one.reason}"
        for pair, result in zip(pairs, results, strict=True)
        for one in pair.rounds[:1]
        if result in {"win", "loss"} and one.result == result
    ]
    return Preferred(
        suite=pairs[0].suite,
        test=pairs[0].test,
        wins=results.count("win"),
        losses=results.count("loss"),
        ties=results.count("tie"),
        reasons=tuple(reasons[:_REASONS]),
    )
