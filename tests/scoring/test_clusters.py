"""Tests that depend on each other count as one: the same task with several users."""

from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

import builders as build
import pytest
from doc_pages import page, table
from hypothesis import given
from hypothesis import strategies as st
from plans import trial
from simulated_agents import MEAN, Case, agent

from ci_evals import load_suite
from ci_evals.domain.results.run import Results
from ci_evals.gate.noise import TrialNoise
from ci_evals.scoring import numbers
from ci_evals.scoring.clusters import merged, merged_pairs
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.statistics import ALPHA, ScorePair, chance_of_drop, mean_interval


@dataclass(frozen=True)
class Personas:
    """Tests, each played with some users in some trials."""

    tests: int
    users: int
    trials: int
    shared: bool = False
    """True if what goes wrong in a trial goes wrong for all users of the test, as by a broken test system."""

    def scores(self, cases: list[Case], rng: Random) -> list[tuple[float, ...]]:
        """The scores of all tests' trials, those of one original test side by side."""
        played = []
        for case in cases:
            by_trial = [self._trial(case, rng) for _ in range(self.trials)]
            played += zip(*by_trial, strict=True)
        return played

    def _trial(self, case: Case, rng: Random) -> list[float]:
        if not self.shared:
            return [case.play(1, rng)[0] for _ in range(self.users)]
        astray = rng.random() < case.derails * 3
        score = 100 * case.chances[0] * (0.35 if astray else 1)
        return [min(100.0, max(0.0, score + rng.gauss(0, 5))) for _ in range(self.users)]

    @property
    def clusters(self) -> list[int]:
        """The original test of each test."""
        return [place // self.users for place in range(self.tests * self.users)]


def covers(setting: Personas, times: int) -> tuple[float, float]:
    """How often the interval of a score holds the true one: by original tests, and by all tests."""
    by_cluster = by_test = 0
    for number in range(times):
        rng = Random(f"cover {setting} {number}")
        means = [*map(fmean, setting.scores(agent(setting.tests, rng), rng))]
        by_cluster += _holds(mean_interval(means, setting.clusters))
        by_test += _holds(mean_interval(means))
    return by_cluster / times, by_test / times


def _holds(interval) -> bool:
    return interval.low <= MEAN <= interval.high


def called_worse(setting: Personas, times: int) -> tuple[float, float]:
    """How often an unchanged agent is called worse: by original tests, and by all tests."""
    by_cluster = by_test = 0
    for number in range(times):
        rng = Random(f"level {setting} {number}")
        cases = agent(setting.tests, rng)
        head, base = setting.scores(cases, rng), setting.scores(cases, rng)
        pairs = [ScorePair(one, other) for one, other in zip(head, base, strict=True)]
        by_cluster += _p(merged_pairs(pairs, setting.clusters), number) <= ALPHA
        by_test += _p(pairs, number) <= ALPHA
    return by_cluster / times, by_test / times


def newly_failing(setting: Personas, times: int) -> tuple[float, float, float]:
    """How often an unchanged agent newly fails a test, and its mean odds: by original tests, and by all.

    A trial goes wrong once in ten times on average: more often in some tests, and in all trials of a test's
    users at once if these are shared.
    """
    failing = by_cluster = by_test = 0.0
    for number in range(times):
        rng = Random(f"newly {setting} {number}")
        rates = [rng.betavariate(0.5, 4.5) for _ in range(setting.tests)]
        recorded, new = _passes(setting, rates, rng), _passes(setting, rates, rng)
        failing += any(all(was) and not all(now) for was, now in zip(recorded, new, strict=True))
        by_cluster += _odds_of_newly_failing(setting, recorded, number, clusters=True)
        by_test += _odds_of_newly_failing(setting, recorded, number, clusters=False)
    return failing / times, by_cluster / times, by_test / times


def _passes(setting: Personas, rates: list[float], rng: Random) -> list[list[bool]]:
    """For each trial of each test, if it passes."""
    played = []
    for rate in rates:
        users = [[rng.random() >= rate for _ in range(setting.trials)] for _ in range(setting.users)]
        played += [users[0]] * setting.users if setting.shared else users
    return played


def _odds_of_newly_failing(
    setting: Personas, recorded: list[list[bool]], number: int, *, clusters: bool
) -> float:
    tests = []
    for place, passes in enumerate(recorded):
        outcomes = ("passed" if passed else "failed" for passed in passes)
        trials = tuple(trial(outcome, index=index) for index, outcome in enumerate(outcomes, 1))
        cluster = f"c{setting.clusters[place]}" if clusters else None
        tests.append(replace(build.test_result(f"t{place}", trials=trials), cluster=cluster))
    results = build.results(build.suite_result("S", *tests), run=build.run_info(id=f"run {number}"))
    passed = [place for place, test in enumerate(tests) if test.passed]
    return fmean(TrialNoise(results).misses(passed))


def _p(pairs: list[ScorePair], number: int) -> float:
    return chance_of_drop(pairs, str(number), draws=499).p


RULE = ScoreRule(offline=False)
SCORES = st.lists(st.integers(0, 100).map(float), min_size=1, max_size=4).map(tuple)


def task_of(name: str) -> str:
    """The first word."""
    return name.partition(" ")[0]


def run(run_id: str, scores: dict[str, tuple[int, ...]], cluster_of=task_of):
    """A run with these scores of trials by test, in clusters by the first word of their names."""
    tests = []
    for name, of_trials in scores.items():
        trials = []
        for number, score in enumerate(of_trials, start=1):
            parts = [f"passed*{score}"] * (score > 0) + [f"failed*{100 - score}"] * (score < 100)
            trials.append(trial(*parts, index=number))
        tests.append(replace(build.test_result(name, trials=tuple(trials)), cluster=cluster_of(name)))
    return build.results(build.suite_result("S", *tests), run=build.run_info(id=run_id))


def alone(_name: str) -> None:
    """No test is in a cluster."""


@pytest.mark.parametrize("key", ["languages", "personas"])
def test_languages_and_personas_of_a_test_form_a_cluster_as_in_the_simulation(key):
    test = {"guidelines": "g", "turns": [{"user": "auto"}], "evaluations": [{"criterion": "c"}]}
    tests = [test | {"name": name} for name in "abcdefgh"]
    personas = {"x": {"traits": ["terse"]}, "y": {"traits": ["typos"]}}
    users = {"languages": {"languages": ["de", "fr"]}}
    users["personas"] = {"personas": personas, "personaMatrix": True}
    loaded = load_suite({"name": "Shop", "tests": tests, **users[key]})
    clusters = [test.cluster for test in loaded.suite.tests]
    simulated = Personas(tests=8, users=3, trials=1).clusters
    assert len(set(clusters)) == 8
    assert [clusters.index(cluster) for cluster in clusters] == [simulated.index(one) for one in simulated]


@given(st.lists(st.tuples(st.sampled_from("abc"), SCORES), min_size=1, max_size=9))
def test_merging_clusters_keeps_mean_score_and_tests_without_a_cluster(tests):
    clusters, scores = [cluster for cluster, _ in tests], [own for _, own in tests]
    units = merged(scores, clusters)
    assert len(units) == len(set(clusters))
    assert fmean(map(fmean, units)) == pytest.approx(fmean(map(fmean, scores)))
    assert merged(scores, range(len(scores))) == scores


@given(st.lists(st.tuples(st.sampled_from("ab"), SCORES), min_size=1, max_size=6), st.data())
def test_lower_trial_score_never_raises_merged_cluster_score(tests, data):
    """Else a worse verdict could open the gate."""
    clusters, scores = [cluster for cluster, _ in tests], [own for _, own in tests]
    test = data.draw(st.integers(0, len(scores) - 1))
    number = data.draw(st.integers(0, len(scores[test]) - 1))
    worse = [*scores]
    worse[test] = tuple(0.0 if index == number else score for index, score in enumerate(scores[test]))
    for before, after in zip(merged(scores, clusters), merged(worse, clusters), strict=True):
        assert all(one <= other for one, other in zip(after, before, strict=True))


def users_of(tasks, users="xyz"):
    return {f"{task} ({user})": own for task, own in tasks.items() for user in users}


def test_tests_of_one_cluster_count_as_one_test_in_comparisons_and_intervals():
    pairs = [ScorePair((100.0, 0.0), (50.0,)), ScorePair((100.0, 100.0), (100.0,)), ScorePair((0.0,), (0.0,))]
    first, second = merged_pairs(pairs, ["a", "a", "b"])
    assert (first.head, first.base) == (pytest.approx((400 / 3, 200 / 3)), pytest.approx((100.0,)))
    assert (second.head, second.base) == ((0.0,), (0.0,))
    tasks = dict(zip("abcd", ((0,), (100,), (100,), (50,)), strict=True))
    runs = run("r", users_of(tasks)), run("r", users_of(tasks), alone), run("r", tasks, alone)
    own, as_if_alone, of_tasks = (numbers.of_run(one.suites[0].tests, RULE).interval for one in runs)
    assert (own.low, own.high) == pytest.approx((of_tasks.low, of_tasks.high))
    assert as_if_alone.high - as_if_alone.low < own.high - own.low


def change(head: dict, base: dict, cluster_of) -> RunComparer:
    comparer = RunComparer(run("head", head, cluster_of), run("base", base, cluster_of))
    return comparer.change(comparer.pairs)


def test_drop_of_clustered_tests_counts_once_if_both_runs_have_cluster():
    """Five users of one task that broke in their only trial are one task that broke."""
    users = [f"a ({user})" for user in "uvwxy"]
    head, base = dict.fromkeys(users, (0,)), dict.fromkeys(users, (100,))
    clustered = change(head, base, task_of)
    assert (clustered.tests, clustered.delta, clustered.p) == (5, -100, 0.5)
    assert change(head, base, alone).p == pytest.approx(1 / 32)
    head, base = (users_of(dict.fromkeys("abcde", (score,)), "xy") for score in (0, 100))
    assert change(head, base, task_of).p == pytest.approx(1 / 32)
    # Only what both sides hold for dependent counts as one.
    names = [f"t{number}" for number in range(8)]
    base = run("base", dict.fromkeys(names, (100, 100, 100)), alone)
    head = run("head", dict.fromkeys(names, (0, 0, 0)), lambda _: "all")
    overall = RunComparer(head, base).overall_change()
    assert (overall.tests, overall.p < 0.01) == (8, True)
    once = run("base", dict.fromkeys(names, (100, 100, 100)), lambda _: "all")
    assert RunComparer(head, once).overall_change().p >= 0.05


def test_odds_treat_tests_of_one_cluster_as_one_test():
    """The noise of a run of two users is that of their task if their trials agree."""

    def noise(results: Results) -> float:
        scores = TrialNoise(results).scores(tuple(range(len(results.tests))), None)
        return fmean(abs(change) for change in scores.changes)

    values = {"a": (0, 100, 100), "b": (100, 100, 0), "c": (100, 0, 100)}
    users = users_of(values, "xy")
    assert noise(run("r", users)) == pytest.approx(noise(run("r", values, alone)), rel=0.1)
    assert noise(run("r", users, alone)) < 0.9 * noise(run("r", users))
    users = users_of(TOGETHER)
    assert share_of_misses(run("r", users)) < share_of_misses(run("r", users, alone))
    apart = {"a (x)": (0, 100, 100), "a (y)": (100, 0, 100), "b (x)": (100, 100, 0), "b (y)": (0, 100, 100)}
    for scores in (apart, dict.fromkeys(apart, (100, 100, 100))):
        assert share_of_misses(run("r", scores)) == share_of_misses(run("r", scores, alone))
    # Over all runs, up to the noise of 2,000 draws: three standard errors are 3.4 points.
    drawn = [TrialNoise(run("r", users_of(TOGETHER), of)).misses([0]) for of in (task_of, alone)]
    assert fmean(drawn[0]) == pytest.approx(fmean(drawn[1]), abs=0.034)


def share_of_misses(results: Results) -> float:
    """How likely a test newly fails."""
    return fmean(TrialNoise(results).misses(range(len(results.tests))))


TOGETHER = {"a": (100, 100, 0), "b": (100, 0, 100), "c": (0, 100, 100), "d": (100, 100, 100)}


DOCS = page("statistics.md")


def of_users(size: str) -> tuple[Personas, Personas]:
    """Tests with users of their own, and such whose users share what goes wrong."""
    return tuple(Personas(*map(int, size.split(" × ")), shared=shared) for shared in (False, True))


@pytest.mark.simulate
@pytest.mark.parametrize("cells", table("tests × users × trials", DOCS))
def test_docs_table_of_clusters_equals_the_simulation(cells):
    own, shared = of_users(cells[0])
    seen = (*covers(own, 1_000), *called_worse(own, 400), *called_worse(shared, 400))
    promised = [float(cell.removesuffix(" %")) for cell in cells[1:]]
    assert [100 * share for share in seen] == pytest.approx(promised, abs=0.15)


@pytest.mark.simulate
@pytest.mark.parametrize("cells", table("odds of tests × users × trials", DOCS))
def test_docs_table_of_newly_failing_tests_equals_the_simulation(cells):
    own, shared = of_users(cells[0])
    seen = (*newly_failing(own, 400), *newly_failing(shared, 400))
    promised = [float(cell.removesuffix(" %")) for cell in cells[1:]]
    assert [100 * share for share in seen] == pytest.approx(promised, abs=0.15)


def test_simulated_clusters_keep_error_rate_coverage_and_odds():
    """A few of the runs behind that table."""
    failing, by_cluster, by_test = newly_failing(Personas(4, 3, 3, shared=True), 12)
    assert failing < by_test
    assert by_cluster < by_test
    # A few of the comparisons behind that table: three standard errors of 5 % in 60 are 8.4 points.
    by_cluster, _ = called_worse(Personas(8, 3, 1, shared=True), 60)
    assert by_cluster <= 0.05 + 0.084
    by_cluster, by_test = covers(Personas(8, 3, 3), 120)
    assert by_cluster >= 0.95 - 0.06
    assert by_test < by_cluster
