"""Simulated commits that are evaluated several times: what reruns do to false alarms and to found drops.

The agents are those of `logit_agents`. Levels and tests are the functions that a run uses. A session moves
all tests of an attempt, as another day or load does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import pi, sqrt
from random import Random
from statistics import NormalDist, fmean, pvariance

from rounds_simulation import Agents, Scores, agents

from ci_evals.scoring.comparison.reruns import share_of_level, with_share
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS, looks_at
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop

_FEW, _MANY = 999, 9_999
"""Arrangements drawn: as many as a run draws where the limit is low."""
_FAR, _NEAR_ZERO = 6, 1 / 30
"""Where the normal approximation is so many times the limit, or less, nothing is drawn."""
REPLACE, SQUARES, POOL = "replace", "6/(π²k²)", "pool"
"""The newest attempt alone; all trials, with a level that falls with every attempt; what a run does."""


@dataclass(frozen=True)
class Commits:
    """The commits that are simulated."""

    kind: str
    tests: int
    policy: str = POOL
    rounds: bool = False
    both_sides: bool = False
    """The base agent is played in every attempt too."""
    session_points: float = 0.0
    points: float = 0.0
    """The points that the agent has lost, spread over all tests."""
    broken: str = ""
    """Which of its tests broke, as in `rounds_simulation`."""
    times: int = 400

    def each(self) -> Iterator["Commit"]:
        """Each commit, with dice of its own."""
        for time in range(self.times):
            rng = Random(f"{self.kind} {self.tests} {self.session_points} {self.points} {self.broken} {time}")
            pair = agents(
                self.kind,
                self.tests,
                rng,
                points=self.points,
                broken=self.broken,
                session=self.session_points,
            )
            yield Commit(self, pair)


@dataclass
class Commit:
    """One commit, and what its attempts have shown."""

    given: Commits
    agents: Agents
    drops: list[bool] = field(default_factory=list)
    _head: Scores = field(default_factory=list)
    _base: Scores = field(default_factory=list)

    def __post_init__(self) -> None:
        self._head = self._base = [()] * self.given.tests
        self._recorded = self._played(self.agents.base, 3, self.agents.session())

    def attempt(self) -> bool:
        """Play the commit once more, and return whether that shows a drop."""
        given, session = self.given, self.agents.session()
        if given.policy == REPLACE:
            self._head = self._base = [()] * given.tests
        known = LOOKS
        if given.both_sides:
            known = BOTH_SIDES_LOOKS
        looks = looks_at(known if given.rounds else (3,), both_sides=given.both_sides)
        played, found = 0, False
        for look in looks:
            self._play_to(look.trials - played, session)
            played = look.trials
            if given.rounds:
                look = with_share(look, self._share)  # noqa: PLW2901  # the same look at another level
                decision = look.decision(self._p(look.fails_at))
                found = decision == "fail"
                if decision != "continue":
                    break
            else:
                limit = ALPHA * self._share
                found = self._p(limit) <= limit
        self.drops.append(found)
        return found

    def _play_to(self, more: int, session: float) -> None:
        self._head = _joined(self._head, self._played(self.agents.head, more, session))
        if self.given.both_sides:
            self._base = _joined(self._base, self._played(self.agents.base, more, session))

    @property
    def _share(self) -> float:
        match self.given.policy:
            case "replace":
                return 1.0
            case "pool":
                return share_of_level(self.drops)
        return 6 / (pi * (len(self.drops) + 1)) ** 2

    def _played(self, agent, trials: int, session: float) -> Scores:
        return self.agents.play(agent, trials, session)

    def _p(self, limit: float) -> float:
        base = self._base if self.given.both_sides else self._recorded
        pairs = [ScorePair(head, of_base) for head, of_base in zip(self._head, base, strict=True)]
        roughly = _approximate_p(pairs)
        if not _NEAR_ZERO * limit < roughly < _FAR * limit + 0.0002:
            return roughly
        draws = _FEW if limit > 0.01 else _MANY
        return chance_of_drop(pairs, str(self.agents.rng.random()), draws).p


def _joined(one: Scores, other: Scores) -> Scores:
    return [(*first, *second) for first, second in zip(one, other, strict=True)]


def _approximate_p(pairs: list[ScorePair]) -> float:
    """The p of a permutation test, as if changes were normal."""
    square = 0.0
    for pair in pairs:
        heads, bases = len(pair.head), len(pair.base)
        trials = heads + bases
        square += pvariance((*pair.head, *pair.base)) * trials**2 / ((trials - 1) * heads * bases)
    delta = sum(pair.delta for pair in pairs)
    if square <= 0:
        return 1.0
    return NormalDist().cdf(delta / sqrt(square))


def called_worse_by(commits: Commits, reruns: tuple[int, ...]) -> list[float]:
    """The same for each of these numbers of reruns, of the same commits."""
    first: list[int] = []
    for commit in commits.each():
        shown = next((index for index in range(max(reruns) + 1) if commit.attempt()), max(reruns) + 1)
        first.append(shown)
    return [fmean(index <= number for index in first) for number in reruns]


def green_after(commits: Commits, reruns: tuple[int, ...]) -> list[float]:
    """How often a commit is green after at most so many reruns, by somebody who stops at the first green."""
    first: list[int] = []
    for commit in commits.each():
        shown = next((index for index in range(max(reruns) + 1) if not commit.attempt()), max(reruns) + 1)
        first.append(shown)
    return [fmean(index <= number for index in first) for number in reruns]
