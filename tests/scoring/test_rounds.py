"""Rounds, both sides and history: limits by themselves, and simulated pull requests of agents that are known.

The figures are those of docs/rounds.md. In CI few pull requests are simulated; `make simulate` has the whole.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from random import Random
from statistics import fmean

import pytest
from doc_pages import ROOT, table
from hypothesis import given
from hypothesis import strategies as st
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
        moves = map(self.moved, reversed(range(runs)))
        return [self.play(self.base, trials, self.session() + move) for move in moves]


def agents(kind: str, tests: int, rng: Random, *, points=0.0, broken="", session=0.0, main=STILL) -> Agents:
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


def repeated(decide: Callable[[Agents], Outcome], times: int, tests: int, **given) -> list[Outcome]:
    """The outcomes of so many pull requests, each of other agents."""
    rng = Random(f"1 {decide.__name__} {tests} {sorted(given.items())}")
    return [decide(agents("heavy", tests, rng, **given)) for _ in range(times)]


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


DOCS = (ROOT / "docs" / "rounds.md").read_text()
FEW, MANY = 30, 1_000


def test_round_looks_have_documented_limits_per_trial_count():
    """The last look always decides. If both sides are run, a pass after three trials needs a higher p."""
    looks = [(look.trials, look.fails_at, look.passes_above, look.is_last) for look in looks_at(LOOKS)]
    last = [(5, 0.018, 0.18, False), (7, 0.045, 0.045, True)]
    assert (looks, looks_at(())) == ([(2, 0.0025, 0.50, False), (3, 0.007, 0.28, False), *last], ())
    both = looks_at(BOTH_SIDES_LOOKS, both_sides=True)
    looks = [(look.trials, look.fails_at, look.passes_above, look.is_last) for look in both]
    assert looks == [(3, 0.007, 0.50, False), *last]


@given(
    st.sets(st.sampled_from(LOOKS), min_size=1).map(sorted),
    st.lists(st.integers(1, 10**9), max_size=6, unique=True).map(sorted),
)
def test_looks_of_any_trial_counts_are_built_and_subsets_keep_their_limits(trials, others):
    """So that no more unchanged agents fail than with all looks. A foreign file may hold any numbers."""
    limits = {look.trials: look for look in looks_at(LOOKS)}
    *earlier, last = looks_at(trials)
    assert earlier == [limits[look.trials] for look in earlier]
    assert (last.is_last, last.fails_at, last.passes_above) == (True, 0.045, 0.045)
    assert [look.trials for look in looks_at(others)] == others


@given(st.data(), st.floats(0, 1), st.floats(0, 1))
def test_lower_p_never_gives_a_better_look_decision(data, one, other):
    look = data.draw(st.sampled_from(looks_at(LOOKS) + looks_at(BOTH_SIDES_LOOKS, both_sides=True)))
    low, high = sorted((one, other))
    worst_first = ("fail", "continue", "pass")
    assert worst_first.index(look.decision(low)) <= worst_first.index(look.decision(high))


def test_score_is_settled_only_beyond_computed_distance_or_safety_margin():
    """Two tests of two trials each, 0 and 100: the variance is 5,000, that of a test's mean 2,500."""
    first, *_, last = looks_at(LOOKS)
    tests = [[0.0, 100.0], [0.0, 100.0]]
    limit = 2.5 * 4.302653 / 1.96 * sqrt(2 * 5_000 / 2) / 2
    settled = [first.settles_score(distance, tests) for distance in (limit - 0.1, limit + 0.1, -limit - 0.1)]
    assert settled == [False, True, True]
    # They show no noise.
    assert not first.settles_score(50, [[100.0], [0.0]])
    assert not first.settles_drop(50, [ScorePair((100.0,), (0.0,))])
    assert looks_at((2,))[0].settles_score(0, [[100.0], [0.0]])
    # As if of two more one had failed. Below its threshold any distance is more than their noise.
    for tests, doubt in (
        ([[100.0, 100.0]], 2.5 * sqrt(1_875 / 2)),  # three of four: a variance of 1,875
        ([[100.0, 100.0], [100.0, 100.0]], 2.5 * sqrt(12_500 / 9) / 2),  # five of six: 12,500 / 9
    ):
        settled = [first.settles_score(distance, tests) for distance in (doubt - 0.1, doubt + 0.1, -0.1, 0.0)]
        assert settled == [False, True, True, False]
        assert last.settles_score(0.1, tests)


METHODS = {
    "rounds against 3 recorded trials": rounds,
    "both sides, 4 + 4 trials": both_sides,
    "both sides in rounds": both_sides_in_rounds,
    "ten earlier runs, by whole runs": moderated,
    "ten earlier runs, by trials and whole runs": by_history,
    "screen of ten runs, then both sides in rounds": screened,
}
ROWS = table("method", DOCS)


@dataclass(frozen=True)
class Expected:
    """What statistics has computed of a method by other code, and how far a simulation may be from it."""

    fails: float
    found: float | None = None
    conversations: float | None = None
    at_drop: float | None = None
    """Conversations where there is a drop."""


EXPECTED = {
    ("rounds against 3 recorded trials", "8", "0"): Expected(4.7, conversations=3.3),
    ("rounds against 3 recorded trials", "20", "0"): Expected(4.8, 80, 3.3, 4.4),
    ("rounds against 3 recorded trials", "40", "0"): Expected(5.2, conversations=3.3),
    ("both sides, 4 + 4 trials", "20", "3"): Expected(4.7, 80),
    ("ten earlier runs, by whole runs", "20", "0"): Expected(1.7, 77),
    ("ten earlier runs, by whole runs", "20", "3"): Expected(3.5, 57),
    ("ten earlier runs, by whole runs", "20", "5"): Expected(5.1),
}


def simulated(method, tests, conditions, main, times, **drop) -> list[Outcome]:
    """Pull requests of an unchanged agent, or of one that lost `points`."""
    given = {"session": float(conditions)} if float(conditions) else {}
    given |= {"main": main} if main != STILL else {}
    return repeated(METHODS[method], times, int(tests), **drop, **given)


def check_unchanged(expected: Expected, outcomes: list[Outcome]) -> None:
    """Within two points of the level, 0.15 of the conversations, and what so few repetitions vary by."""
    chance = (len(outcomes) < MANY) * 3 / sqrt(len(outcomes))
    assert share_failed(outcomes) == pytest.approx(expected.fails, abs=2 + 22 * chance)
    if expected.conversations:
        assert conversations(outcomes) == pytest.approx(expected.conversations, abs=0.15 + 1.5 * chance)


def check_worse(expected: Expected, outcomes: list[Outcome]) -> None:
    """Within four or five points of the power, 0.25 of the conversations, and what so few vary by."""
    chance = (len(outcomes) < MANY) * 3 / sqrt(len(outcomes))
    within = 4 if expected.found == 80 else 5
    assert share_failed(outcomes) == pytest.approx(expected.found, abs=within + 50 * chance)
    if expected.at_drop:
        assert conversations(outcomes) == pytest.approx(expected.at_drop, abs=0.25 + 2 * chance)


def conversations(outcomes: list[Outcome]) -> float:
    return fmean(outcome.conversations for outcome in outcomes)


def check_row(outcomes: list[Outcome], fails: str, played: str) -> None:
    """The same dice come to the same figures, up to how a machine rounds."""
    assert share_failed(outcomes) == pytest.approx(float(fails.removesuffix(" %")), abs=0.25)
    assert conversations(outcomes) == pytest.approx(float(played), abs=0.1)


@pytest.mark.simulate
@pytest.mark.parametrize("cells", ROWS, ids="-".join)
def test_docs_table_of_methods_equals_the_simulation(cells):
    *row, fails, result, played, at_drop = cells
    expected = EXPECTED.get(tuple(row[:3]))
    unchanged = simulated(*row, MANY)
    check_row(unchanged, fails, played)
    if expected:
        check_unchanged(expected, unchanged)
    if result:
        worse = simulated(*row, MANY, points=10)
        check_row(worse, result, at_drop)
        if expected and expected.found:
            check_worse(expected, worse)


DROPS = ({"broken": "a fifth of the tests"}, {"broken": "one test"})


@pytest.mark.simulate
@pytest.mark.parametrize(("drop", "share"), [(DROPS[0], 85.9), (DROPS[1], 26.6)], ids=str)
def test_history_screen_finds_broken_tests_as_often_as_documented(drop, share):
    assert share_failed(repeated(screened, MANY, 20, session=3.0, **drop)) == pytest.approx(share, abs=0.25)
    assert f"{share} %" in DOCS


def test_docs_list_the_round_limits_and_all_expected_methods():
    """And the screen at 8, 20 and 40 tests, however runs differ or main moved: it fails 6.5 % at most."""
    rows = [tuple(row) for row in ROWS]
    assert EXPECTED.keys() <= {row[:3] for row in rows}
    screens = {row[1:4] for row in rows if METHODS[row[0]] is screened}
    expected = {(str(tests), points, STILL) for tests in (8, 20, 40) for points in "035"}
    assert screens == expected | {("20", "3", main) for main in MOVES}
    assert all(float(row[4].removesuffix(" %")) <= 6.5 for row in rows)
    beside = {look.trials: look for look in looks_at(BOTH_SIDES_LOOKS, both_sides=True)}
    for look in looks_at(LOOKS):
        passes = f"{beside[look.trials].passes_above:g}" if look.trials in beside else "no look"
        assert f"| {look.trials} | {look.fails_at:g} | {look.passes_above:g} | {passes} |" in DOCS
    assert all(look.fails_at == beside[look.trials].fails_at for look in looks_at(LOOKS)[1:])


QUICK_ROWS = [("rounds against 3 recorded trials", "8", "0"), ("both sides, 4 + 4 trials", "20", "3")]
QUICK_ROWS += [("ten earlier runs, by whole runs", "20", "0")]


@pytest.mark.slow
@pytest.mark.parametrize("row", QUICK_ROWS, ids="-".join)
def test_simulated_comparison_methods_fail_as_often_as_documented(row):
    """A row of each method; `make simulate` tries all of them often."""
    check_unchanged(EXPECTED[row], simulated(*row, STILL, FEW))
    if EXPECTED[row].found:
        check_worse(EXPECTED[row], simulated(*row, STILL, FEW, points=10))


@pytest.mark.parametrize(
    "times", [pytest.param(20, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.simulate)]
)
@pytest.mark.parametrize("main", [STILL, "fell by 6 before the newest run"])
def test_history_screen_fails_few_unchanged_pull_requests(main, times):
    """Not more than chance allows at 6.5 %."""
    fails = share_failed(repeated(screened, times, 8, session=3.0, main=main))
    assert fails <= 6.5 + 300 * sqrt(0.065 * 0.935 / times)
