"""Simulated pull requests: rounds, both sides in one run, a history. The functions are those that a run uses.

The agents are those of `logit_agents`. A session moves all tests of a run, as another day or load does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from statistics import fmean

from logit_agents import KINDS, LogitAgent, LogitCase

from ci_evals.scoring.comparison import history
from ci_evals.scoring.comparison.rounds import BOTH_SIDES_LOOKS, LOOKS, looks_at
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop

Scores = list[tuple[float, ...]]
DRAWS = 999
SCREEN = 0.25
STILL = "still"
MOVES: dict[str, Callable[[int], float]] = {
    STILL: lambda _: 0,
    "fell by 6 before the newest run": lambda later: 6 * (later > 0),
    "rose by 6 before the newest run": lambda later: -6 * (later > 0),
    "falls by 1 a run": lambda later: later + 1,
}
"""How main moved: by how many points a recorded run was above today's base, given how many runs are later."""


BROKEN: dict[str, Callable[[int], tuple[int, float]]] = {
    "a fifth of the tests": lambda tests: (round(tests / 5), 0.35),
    "one test": lambda _: (1, 0.10),
}
"""How many tests break, and what each keeps of the chance of its criteria."""


@dataclass(frozen=True)
class Outcome:
    """What became of a pull request."""

    failed: bool
    conversations: float
    """Of each test, on both sides, without those recorded before."""


@dataclass
class Agents:
    """An unchanged agent, and the same one that lost some points of its score."""

    base: LogitAgent
    head: LogitAgent
    rng: Random
    session_points: float = 0.0
    main: str = STILL

    def __post_init__(self) -> None:
        self._slope = (_score(self.base, 0.25) - _score(self.base, -0.25)) / 0.5

    def session(self) -> float:
        """The logits by which a run's conditions move all tests."""
        return self.rng.gauss(0, self.session_points / self._slope)

    def moved(self, later: int) -> float:
        """The logits by which a recorded run's agent was above today's base."""
        return MOVES[self.main](later) / self._slope

    def play(self, agent: LogitAgent, trials: int, session: float) -> Scores:
        """The trials of one run."""
        return [case.moved(session).play(trials, self.rng) for case in agent]

    def recorded(self, runs: int, trials: int) -> list[Scores]:
        """Runs of the base, each in a session of its own."""
        return [
            self.play(self.base, trials, self.session() + self.moved(later))
            for later in reversed(range(runs))
        ]


def agents(
    kind: str,
    tests: int,
    rng: Random,
    *,
    points: float = 0.0,
    broken: str = "",
    session: float = 0.0,
    main: str = STILL,
) -> Agents:
    """A pair of agents; the head has lost so many points, spread over all tests, or some tests are broken."""
    base = KINDS[kind](tests, rng)
    low, high, wanted = 0.0, 12.0, _score(base, 0) - points
    for _ in range(20 if points else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(base, -middle) > wanted else (low, middle)
    head = [case.moved(-low) for case in base] if points else [*base]
    if broken:
        number, keeps = BROKEN[broken](tests)
        for index in rng.sample(range(tests), number):
            head[index] = _broken(head[index], keeps)
    return Agents(base, head, rng, session, main)


def rounds(pair: Agents) -> Outcome:
    """Looks after 2, 3, 5 and 7 trials of the head, against one recorded run of three."""
    (base,) = pair.recorded(1, 3)
    head = pair.play(pair.head, LOOKS[-1], pair.session())
    for look in looks_at(LOOKS):
        p = _p(_first(head, look.trials), base)
        if look.decision(p) != "continue":
            return Outcome(p <= look.fails_at, look.trials)
    raise AssertionError("the last look decides")


def both_sides(pair: Agents, trials: int = 4) -> Outcome:
    """So many trials of both agents in one session, looked at once."""
    session = pair.session()
    head, base = (pair.play(agent, trials, session) for agent in (pair.head, pair.base))
    return Outcome(_p(head, base) <= ALPHA, 2 * trials)


def by_history(pair: Agents, runs: int = 10) -> Outcome:
    """Three trials against several recorded runs: the larger p of trials and of runs."""
    earlier = pair.recorded(runs, 3)
    head = pair.play(pair.head, 3, pair.session())
    p = max(_pooled(head, earlier), history.moderated_p(head, earlier))
    return Outcome(p <= ALPHA, 3)


def moderated(pair: Agents, runs: int = 10) -> Outcome:
    """The same by the moderated test alone."""
    earlier = pair.recorded(runs, 3)
    head = pair.play(pair.head, 3, pair.session())
    return Outcome(history.moderated_p(head, earlier) <= ALPHA, 3)


def screened(pair: Agents, runs: int = 10) -> Outcome:
    """Earlier runs screen; where a drop is possible, the base is played in the same session, in rounds."""
    earlier, session = pair.recorded(runs, 3), pair.session()
    head = pair.play(pair.head, LOOKS[-1], session)
    first = _first(head, 3)
    if min(_p(first, earlier[-1]), _pooled(first, earlier)) > SCREEN:
        return Outcome(failed=False, conversations=3)
    return _beside(head, pair.play(pair.base, LOOKS[-1], session))


def both_sides_in_rounds(pair: Agents) -> Outcome:
    """Both agents from the first trial on, in the same session."""
    session = pair.session()
    head, base = (pair.play(agent, LOOKS[-1], session) for agent in (pair.head, pair.base))
    return _beside(head, base)


def share_failed(outcomes: Iterable[Outcome]) -> float:
    """In percent."""
    return 100 * fmean(outcome.failed for outcome in outcomes)


def repeated(
    decide: Callable[[Agents], Outcome],
    times: int,
    tests: int,
    *,
    kind: str = "heavy",
    seed: int = 1,
    **given,
) -> list[Outcome]:
    """The outcomes of so many pull requests, each of other agents."""
    rng = Random(f"{seed} {decide.__name__} {tests} {sorted(given.items())}")
    return [decide(agents(kind, tests, rng, **given)) for _ in range(times)]


def _broken(case: LogitCase, keeps: float) -> LogitCase:
    """The test whose criteria keep so much of their chance to pass."""
    chances = [keeps / (1 + exp(-logit)) for logit in case.logits]
    return replace(case, logits=tuple(log(chance / (1 - chance)) for chance in chances))


def _score(agent: LogitAgent, by: float) -> float:
    return fmean(case.moved(by).score for case in agent)


def _first(run: Scores, trials: int) -> Scores:
    return [scores[:trials] for scores in run]


def _p(head: Scores, base: Scores) -> float:
    pairs = [ScorePair(own, other) for own, other in zip(head, base, strict=True)]
    chance = chance_of_drop(pairs, "a seed", DRAWS)
    assert chance
    return chance.p


def _beside(head: Scores, base: Scores) -> Outcome:
    for look in looks_at(BOTH_SIDES_LOOKS, both_sides=True):
        p = _p(_first(head, look.trials), _first(base, look.trials))
        if look.decision(p) != "continue":
            return Outcome(p <= look.fails_at, 2 * look.trials)
    raise AssertionError("the last look decides")


def _pooled(head: Scores, runs: list[Scores]) -> float:
    together = [tuple(score for run in runs for score in run[index]) for index in range(len(head))]
    return _p(head, together)
