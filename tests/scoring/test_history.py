"""A run against several earlier ones: the arithmetic by itself."""

import cProfile
import math
import pstats
from dataclasses import fields, replace
from random import Random
from statistics import fmean

import builders as build
import pytest
from each_row import each_row
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.choices import Regression
from ci_evals.domain.plan import BASE, HEAD
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.gate.selectors import read_drops, read_thresholds
from ci_evals.job.conclude import BaselineResults, conclude
from ci_evals.scoring.comparison import history
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.rounds import LOOKS, looks_at
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.statistics import t_share_below

_run = build.results_of_verdicts
scores = st.sampled_from([0.0, 25.0, 50.0, 75.0, 100.0])


@st.composite
def runs_of_tests(draw):
    """A head and some earlier runs of the same tests."""
    tests, trials = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    run = st.lists(st.lists(scores, min_size=trials, max_size=trials), min_size=tests, max_size=tests)
    return draw(run), draw(st.lists(run, min_size=1, max_size=5))


def test_history_statistics_agree_with_printed_tables_and_hand_computation():
    for value, freedom, share in [
        *[(0, 3, 0.5), (2.353, 3, 0.95), (-2.353, 3, 0.05)],
        *[(1.0, 1, 0.75), (2.776, 4, 0.975), (1.960, 10_000, 0.975)],
    ]:
        assert t_share_below(value, freedom) == pytest.approx(share, abs=2e-4)
    assert history.adjusted([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    # Two tests; the noise of a run's score is that of its trials: the mean of 2,500 / 2 and 2,500 / 4.
    trials = [0.0, 100.0]  # of variance 5,000; two tests of them 2,500
    runs = [[trials, trials], [trials * 2, trials * 2]]
    share = 0.5
    per_point = 1 / (100 * share * (1 - share))
    pool = (4 * 5_000 / 2 + 2 * 4 * 2_500) / (2 * 1 + 2 * 3)
    noise = per_point**2 * pool / 2
    mean_noise = (noise / 2 + noise / 4) / 2
    between = max(0.0, (4 * (math.log(0.53 / 0.47) ** 2 + mean_noise)) / 5 - mean_noise)
    expected = between * 1.5 + noise / 2 + mean_noise / 2
    assert history.RunSpread.of(runs[0], runs).error == pytest.approx(math.sqrt(expected))


@given(runs_of_tests(), st.randoms(use_true_random=False))
def test_history_p_of_arbitrary_runs_is_a_probability_whatever_their_order(given_runs, rng):
    """Be it one test, one trial, one run, all 0 or all 100; in any order of tests, trials and runs."""
    head, runs = given_runs
    for p in (history.moderated_p(head, runs), history.pooled_p(head, runs, "seed")):
        assert 0 <= p <= 1
    assert 1 <= history.window(runs) <= len(runs)
    named = history.broken_tests(head, runs, "seed")
    assert not set(named.broken) & set(named.probably)
    order = rng.sample(range(len(head)), len(head))
    shuffled = [[run[index] for index in order] for run in rng.sample(runs, len(runs))]
    turned = [[rng.sample(test, len(test)) for test in run] for run in shuffled]
    p = history.moderated_p([head[index] for index in order], turned)
    assert p == pytest.approx(history.moderated_p(head, runs), abs=1e-9)


@settings(max_examples=examples(500))
@given(runs_of_tests(), st.data())
def test_lower_score_never_raises_p_of_a_history(given_runs, data):
    """Whichever trial it is in, and by how much."""
    head, runs = given_runs
    test = data.draw(st.integers(0, len(head) - 1))
    trial = data.draw(st.integers(0, len(head[test]) - 1))
    worse = [[*scores] for scores in head]
    worse[test][trial] = data.draw(scores.filter(lambda score: score <= head[test][trial]))
    assert history.moderated_p(worse, runs) <= history.moderated_p(head, runs) + 1e-12


def test_run_equal_to_its_history_has_p_of_one_half():
    runs = [[[100.0, 50.0], [75.0, 75.0]]] * 4
    assert history.moderated_p(runs[0], runs) == pytest.approx(0.5)
    for score, count in [(0.0, 1), (100.0, 1), (0.0, 4), (100.0, 4)]:
        run = [[score] * 3] * 6
        assert history.moderated_p(run, [run] * count) == pytest.approx(0.5)
        assert history.broken_tests(run, [run] * count, "seed") == history.Broken((), ())
        assert math.isfinite(history.RunSpread.of(run, [run] * count).smallest_drop)


def test_history_window_begins_where_the_score_of_main_last_changed():
    """Three runs are left since main's score changed."""
    rng = Random(5)
    high = [[[100.0, 100.0, 50.0 + 50.0 * (rng.random() < 0.9)] for _ in range(20)] for _ in range(5)]
    low = [[[100.0, 50.0 * (rng.random() < 0.5), 0.0] for _ in range(20)] for _ in range(3)]
    assert history.window(high + low) == 3
    assert history.window(high) >= 4


def test_test_that_lost_all_trials_is_named_broken_unless_by_chance_among_many():
    # Three of three trials that always passed fail now; the others are as before.
    fine, lost = [100.0] * 3, [0.0] * 3
    before = [[fine] * 20 for _ in range(10)]
    assert history.broken_tests([lost, *[fine] * 19], before, "seed").broken == (0,)
    assert history.broken_tests([[0.0, 100.0, 100.0], *[fine] * 19], before, "seed").broken == ()
    # One test of 100 has p = 1 / C(18, 3): times 100 above 0.1, also beside nine that fell less.
    before = [[fine] * 100] * 5
    for head in ([lost, *[fine] * 99], [lost, *[[90.0] * 3] * 9, *[fine] * 90]):
        assert history.broken_tests(head, before, "seed") == history.Broken((), ())


@pytest.mark.parametrize(
    "times", [pytest.param(45, marks=pytest.mark.slow), pytest.param(60, marks=pytest.mark.simulate)]
)
def test_few_unchanged_tests_are_named_broken_beside_many_small_drops(times):
    """Ten steady tests fell by 10 points, ten noisy ones did not: 2 %, or 17 % with small falls ranked."""
    rng = Random(6)

    def run(drop: float = 0) -> list[list[float]]:
        tests = [(85 - drop, 5)] * 10 + [(60, 16)] * 10
        return [[min(100.0, float(round(rng.gauss(*test)))) for _ in range(3)] for test in tests]

    def false_share() -> float:
        before = [run() for _ in range(10)]
        result = history.broken_tests(run(drop=10), before, str(rng.random()))
        named = [*result.broken, *result.probably]
        return sum(index >= 10 for index in named) / len(named) if named else 0.0

    assert fmean(false_share() for _ in range(times)) < 0.08


def _decide(head: Results, runs: list[Results]) -> Results:
    card = Scorecard(**{field.name: getattr(head, field.name) for field in fields(Scorecard)})
    policy = Policy(min_score=0, regression=Regression.SIGNIFICANT)
    return conclude(card, head.run, policy, RunEnding(), BaselineResults(runs[-1], history=tuple(runs)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "most_calls"), [(30, 1_150_000), pytest.param(100, 3_900_000, marks=pytest.mark.simulate)]
)
def test_decision_with_ten_earlier_runs_takes_bounded_work(tests, most_calls):
    """100 tests x (7 + 7) x 10 runs: 3.2 million calls, 30 tests: 945,000, the same everywhere."""
    rng = Random(1)
    chances = [rng.betavariate(6, 0.7) for _ in range(tests)]

    def run_named(name):
        trials = [[[rng.random() < chance for _ in range(5)] for _ in range(7)] for chance in chances]
        return _run(name, trials)

    head, base, *runs = map(run_named, ("head", "base", *map(str, range(10))))
    arms = (build.arm(HEAD, head, gated=True), build.arm(BASE, base))
    profile = cProfile.Profile()
    decided = profile.runcall(_decide, replace(head, arms=arms), runs)
    assert (decided.comparison.method, decided.comparison.history.runs) == ("both-sides", 10)
    assert pstats.Stats(profile).total_calls < most_calls


_verdicts = st.lists(  # tests, trials, criteria
    st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=3, max_size=3), min_size=4, max_size=4
)


@settings(max_examples=examples(30))
@given(st.lists(_verdicts, min_size=5, max_size=5), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1))
def test_worse_verdict_never_passes_a_failed_gate_with_history(verdicts, test, trial, criterion):
    """If earlier runs decide: p does not rise, and what failed fails."""
    head, *earlier = verdicts
    runs = [_run(f"main {number}", one) for number, one in enumerate(earlier)]
    worse = [[[*criteria] for criteria in trials] for trials in head]
    worse[test][trial][criterion] = False
    before, after = (_decide(_run("head", one), runs) for one in (head, worse))
    assert before.comparison.method == after.comparison.method
    assert before.gate.passed or not after.gate.passed


_FINE, _BROKEN = [[True, True]] * 3, [[False, False]] * 3


@pytest.fixture(scope="module")
def six_broken_tests():
    """A run in which six tests broke, four runs of main, and the decision by these alone."""
    weak = [[True, False]] * 3
    head = _run("head", [*[weak] * 4, *[_FINE] * 10, *[_BROKEN] * 6])
    runs = [_run(f"main {number}", [*[weak] * 4, *[_FINE] * 16]) for number in range(4)]
    return head, runs, _decide(head, runs)


@each_row("older", [
    pytest.param([_FINE] * 4, id="fewer tests"),
    pytest.param([[[True, True]]] * 20, id="fewer trials"),
    pytest.param([[[True, True]] * 2] * 20, id="a trial less of each test"),
    pytest.param([*[_FINE] * 19, [[True, True]] * 2], id="a trial less of one test"),
    pytest.param([[[False, False]]] * 20, id="fewer trials, all of them bad"),
])  # fmt: skip
def test_smaller_run_in_history_does_not_hide_a_drop(six_broken_tests, older):
    """The tests that it lacks are the broken ones, or its bad luck looks as if runs differed."""
    head, runs, without = six_broken_tests
    assert not without.gate.passed
    assert len(without.comparison.broken) == 6
    for index in (0, 2, 3):
        with_it = _decide(head, [*runs[:index], _run("small", older), *runs[index:]])
        assert with_it.gate == without.gate
        assert with_it.comparison.history == replace(without.comparison.history, smaller=1)


def test_only_runs_as_large_as_the_current_run_count_as_history():
    """With smaller ones there would be enough runs to decide; the newest one alone has all tests."""
    head, newest = _run("head", [*[_FINE] * 4, *[_BROKEN] * 4]), _run("newest", [_FINE] * 8)
    small = [_run(f"small {number}", [_FINE] * 4) for number in range(5)]
    decided = _decide(head, [*small, newest])
    assert decided.comparison.method == "recorded"
    assert not decided.gate.passed
    history_of = decided.comparison.history
    assert (history_of.runs, history_of.together, history_of.smaller, history_of.tests) == (1, 1, 5, 8)
    # Main is played in rounds too, and its newest run happened to need more.
    seven = [[True, True]] * 7
    runs = [*(_run(f"main {number}", [_FINE] * 4) for number in range(3)), _run("newest", [seven] * 4)]
    for head, counted in ((_FINE, 4), ([[True, True]] * 5, 1)):
        history_of = _decide(_run("head", [head] * 4), runs).comparison.history
        assert (history_of.runs, history_of.smaller) == (counted, 4 - counted)


_sized = st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=3)


@settings(max_examples=examples(15))
@given(
    st.lists(_verdicts, min_size=4, max_size=6), st.lists(_sized, min_size=1, max_size=4), st.integers(0, 3)
)
def test_smaller_run_in_the_history_never_changes_the_gate(verdicts, small, index):
    """Whatever it holds and wherever it stands: the checks are those of the other runs."""
    assume(len(small) < 4 or any(len(trials) < 3 for trials in small))
    head, *earlier = verdicts
    runs = [_run(f"main {number}", one) for number, one in enumerate(earlier)]
    index = min(index, len(runs) - 1)  # older than the newest
    without = _decide(_run("head", head), runs)
    mixed = [*runs[:index], _run("small", small), *runs[index:]]
    assert _decide(_run("head", head), mixed).gate == without.gate


def test_decision_by_history_reports_the_smallest_detectable_drop():
    """Runs of 100 have no room above: three points less are few logits, not as many as a point there has."""
    head = _run("head", [*[_FINE] * 14, *[_BROKEN] * 6])
    decided = _decide(head, [_run(str(run), [_FINE] * 20) for run in range(4)])
    assert (decided.comparison.method, decided.gate.passed) == ("history", False)
    assert decided.comparison.history.smallest_drop < 30
    fine = [[True, True]] * 3
    mains = ([[[True, number % 2 > 0], *fine[1:]], fine, fine, fine] for number in range(5))
    runs = [_run(f"main {number}", verdicts) for number, verdicts in enumerate(mains)]
    comparison = _decide(_run("head", [[[True, False]] * 3] * 4), runs).comparison
    assert (comparison.method, comparison.detectable) == ("history", comparison.history.smallest_drop)
    assert (comparison.trials_needed, comparison.fewest_broken) == (None, None)


def test_undecided_verdicts_make_the_p_of_trials_as_close_as_failed_ones():
    """Else a verdict that could not be reached would spare the base agent that a failed one has played."""
    for outcome in (True, False, None):
        runs = [_run(f"main {number}", [[[True, True]] * 3] * 4) for number in range(4)]
        head = [[[True, outcome]] * 3, [[True, outcome]] * 3, *[[[True, True]] * 3] * 2]
        decided = _decide(_run("head", head), runs)
        assert (decided.comparison.history.p_of_trials <= CLOSE) == (outcome is not True)


def test_look_is_settled_if_no_limit_can_be_missed_but_not_with_broken_off_trials():
    """A trial that broke off might have failed: then a further look would have followed."""
    whole, broken_off = [[[True, True]] * 2] * 4, build.trial_result(2, status="failed", findings=())
    base, head = _run("main", whole), _run("head", whole)
    suite = head.suites[0]
    broken = (replace(test, trials=(test.trials[0], broken_off)) for test in suite.tests[:3])
    head = replace(head, suites=(replace(suite, tests=(*broken, *suite.tests[3:])),))
    policy = Policy(min_score=0, max_errors=9, regression=Regression.SIGNIFICANT)
    settled = []
    for results in (base, head):
        given = GateInput(results, RunComparer(results, base), look=looks_at(LOOKS)[0])
        checks = decide(given, policy, RunEnding()).checks
        settled.append(next(check.settled for check in checks if check.kind is CheckKind.REGRESSION))
    assert settled == [True, False]
    # A floor of 0 is none, however noisy the trials are.
    for policy, settled in (
        *[(Policy(min_score=0), True), (Policy(min_score=1), False)],
        (Policy(min_score=0, thresholds=read_thresholds("suite:Refunds=0")), True),
        (Policy(min_score=0, max_drop=100), True),
        (Policy(min_score=0, max_drop=99), False),
        (Policy(min_score=0, max_drops=read_drops("suite:Refunds=100")[1]), True),
    ):
        noisy = [[[True], [False]]] * 2
        head, base = _run("head", noisy), _run("main", noisy)
        given = GateInput(head, RunComparer(head, base), look=looks_at(LOOKS)[0])
        assert all(check.settled for check in decide(given, policy, RunEnding()).checks) == settled
