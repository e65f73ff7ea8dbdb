"""What is said of a change: the sentence, case by case, and the lists beside it."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import builders as build
import cases
from each_row import each_row

from ci_evals.domain.base import Interval
from ci_evals.domain.results.comparison import (
    Baseline,
    Comparison,
    ComparisonLook,
    Efficiency,
    TestChange,
    TestName,
)
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports.story import certainty, changes, phrases
from ci_evals.scoring import suite_results

BOUNDS = Interval(low=79.04, high=91)
TWELVE = [f"Test {number}" for number in range(12)]
DROP = {
    "tests": 12, "base": 90.1, "head": 86.45, "delta": -3.65, "interval": Interval(low=-7.9, high=0.5),
    "p": 0.062, "smallest_p": 0.0001, "detectable": 5.04, "trials_needed": 9,
}  # fmt: skip


def compared(*, names=TWELVE, trials="ppp", bounds=BOUNDS, **fields):
    """Results of these tests and a comparison of all of them, of which the fields are told."""
    fields = DROP | fields
    baseline = fields.pop("baseline", {})
    score = fields.pop("score", fields["head"])
    tests = [cases.played(name, trials) for name in names]
    at = build.STARTED_AT - timedelta(days=3)
    known = {"score": fields["base"], "commit": cases.BASE_COMMIT, "at": at, "run_id": "run-0"}
    known |= {"tests": len(names), "trials": len(names) * len(trials)} | baseline
    result = Comparison(comparable=fields["delta"] is not None, baseline=Baseline(**known), **fields)
    suite = build.suite_result("Refunds", *tests)
    return build.results(suite, score=score, interval=bounds, comparison=result)


CAUGHT = "this run would detect a drop of 6 points or more 80 % of the time."
HEAD = "Score 86.4 (79.0 to 91.0)"
CHANGE = "change −3.7 (−7.9 to +0.5)"
SCORE = f"{HEAD}, baseline 90.1, {CHANGE}"
RISEN = "Score 92.0 (79.0 to 91.0), baseline 90.1, change +1.9"
BY_CHANCE = "a drop that may be chance"
P_06 = f"p = 0.06: {BY_CHANCE}"
WHOLE_DROP = f"baseline 90.1, {CHANGE}, {P_06}; {CAUGHT}"
BEYOND_CHANCE = "a drop larger than chance explains"
TOO_FEW = "too few trials to tell it from chance"
BROKEN = "newly failing tests can be chance"
FEW_TRIALS = (
    "with so few trials any drop can be chance (at least 2 trials per test on each side are required)."
)
SINGLE_TRIALS = (
    "With so few trials per test, this run would detect a drop of 12 points or more 80 % of the time."
)
P_DECIDES = "p decides, not the interval"
NONE_FAILED = "nothing failed in this run"
EQUAL = "Score 100.0 (79.0 to 91.0), baseline 100.0, change 0.0"
UNSCORED = "Nothing was scored; not compared with the baseline"
FOUR_TESTS = {"names": TWELVE[:4], "tests": 4, "trials": "p", "smallest_p": 0.0625}
ONE_TEST = {"names": TWELVE[:1], "tests": 1, "smallest_p": 0.05}
RISE = {"head": 92.0, "delta": 1.9, "p": 0.9, "interval": Interval(low=-1.2, high=5), "trials_needed": None}
NOTHING = dict.fromkeys(DROP) | {"tests": 0}
SINGLE = {"trials": "p", "estimated_from": "tests", "detectable": 11.9, "p": 0.12, "smallest_p": 1 / 4096}


@each_row(("fields", "sentence"), [
    ({}, f"{SCORE}, p = 0.06: {BY_CHANCE}; {CAUGHT}"),
    ({"p": 0.0012, "interval": Interval(low=-5.2, high=-2.1)},
     f"{HEAD}, baseline 90.1, change −3.7 (−5.2 to −2.1), p = 0.001: {BEYOND_CHANCE}."),
    ({"p": 0.0012}, f"{SCORE}, p = 0.001: {BEYOND_CHANCE}; p decides, not the interval."),
    ({"p": 0.0501}, f"{SCORE}, p = 0.051: {BY_CHANCE}; {CAUGHT}"),
    ({"detectable": 3.6}, f"{SCORE}, p = 0.06: {BY_CHANCE}."),
    ({"detectable": 100.0},
     f"{SCORE}, p = 0.06: {BY_CHANCE}; the scores vary too much to notice any drop reliably."),
    ({"p": 0.02, "interval": None}, f"{HEAD}, baseline 90.1, change −3.7, p = 0.02: {BEYOND_CHANCE}."),
    (RISE, f"{RISEN} (−1.2 to +5.0): no drop; {CAUGHT}"),
    (RISE | {"interval": Interval(low=0.4, high=3.4)},
     f"{RISEN} (+0.4 to +3.4): a rise larger than chance explains."),
    ({"head": 90.1, "delta": 0, "p": 0.6, "interval": Interval(low=-3, high=3)},
     f"Score 90.1 (79.0 to 91.0), baseline 90.1, change 0.0 (−3.0 to +3.0): no change; {CAUGHT}"),
    ({"head": 100, "base": 100, "delta": 0, "p": 1, "interval": Interval(low=-2, high=2)},
     f"{EQUAL} (−2.0 to +2.0): no change, {NONE_FAILED}; {CAUGHT}"),
    (FOUR_TESTS | {"p": 0.0625, "trials_needed": 1},
     f"{SCORE}: {TOO_FEW} (at least 2 trials per test on each side are required)."),
    (FOUR_TESTS, f"{SCORE}: {TOO_FEW} (at least 9 trials per test on each side are required)."),
    (ONE_TEST | {"trials": "p", "p": 0.5, "smallest_p": 0.5, "interval": None} | {"detectable": None,
     "trials_needed": None, "bounds": None}, (f"Score 86.4, baseline 90.1, change −3.7: {TOO_FEW} "
     "(at least 3 trials on each side are required).")),
    (RISE | FOUR_TESTS, f"{RISEN} (−1.2 to +5.0): no drop; {FEW_TRIALS}"),
    (ONE_TEST | {"p": 0.2}, f"{SCORE}, p = 0.2: a drop of this one test that may be chance; {CAUGHT}"),
    (ONE_TEST | {"p": 0.05},
     f"{SCORE}, p = 0.05: a drop of this one test larger than chance explains; {P_DECIDES}."),
    (SINGLE, f"{SCORE}, p = 0.12: {BY_CHANCE}; w{SINGLE_TRIALS[1:]}"),
    (SINGLE | {"fewest_broken": 5, "detectable": 3.0},
     f"{SCORE}, p = 0.12: {BY_CHANCE}; with so few trials, up to 4 {BROKEN}."),
    ({"detectable": 90.2}, f"{SCORE}, p = 0.06: {BY_CHANCE}."),
    ({"fewest_broken": 2},
     f"{SCORE}, {P_06}; {CAUGHT[:-1]}; with so few trials, up to 1 newly failing test can be chance."),
    ({"fewest_broken": 1}, f"{SCORE}, p = 0.06: {BY_CHANCE}; {CAUGHT}"),
    ({"interval": Interval(low=-7.9, high=-0.1)},
     f"{HEAD}, baseline 90.1, change −3.7 (−7.9 to −0.1), {P_06}; {P_DECIDES}; {CAUGHT}"),
    ({"tests": 10}, f"{HEAD}; compared on 10 of 12 tests: 86.4, {WHOLE_DROP}"),
    ({"tests": 10, "baseline": {"tests": 14}},
     f"{HEAD}; compared on 10 of 12 tests (the baseline has 14): 86.4, {WHOLE_DROP}"),
    ({"baseline": {"tests": 14}, "interval": None, "detectable": None},
     f"{HEAD}; compared on 12 of 14 tests of the baseline: 86.4, baseline 90.1, change −3.7, {P_06}."),
    ({"score": 86.6, "interval": None, "detectable": None},
     f"Score 86.6 (79.0 to 91.0); compared on 12 tests: 86.4, baseline 90.1, change −3.7, {P_06}."),
    (NOTHING | {"reasons": ("the judge's prompt changed", "the judge is gpt-5")},
     f"{UNSCORED.replace(';', ' (79.0 to 91.0);')}: the judge's prompt changed; the judge is gpt-5."),
    (NOTHING | {"reasons": tuple("abcde"), "bounds": None}, f"{UNSCORED}: a; b; c; and 2 more reasons."),
    (NOTHING | {"bounds": None}, f"{UNSCORED}: they have nothing in common."),
])  # fmt: skip
def test_score_and_change_are_described_in_one_sentence(fields, sentence):
    assert certainty.score_and_change(compared(**fields)) == sentence


@each_row(("fields", "significance", "detectable"), [
    ({}, BY_CHANCE, CAUGHT.replace("this", "This")),
    (SINGLE | {"fewest_broken": 5}, BY_CHANCE, f"{SINGLE_TRIALS} Up to 4 {BROKEN}."),
    (RISE | FOUR_TESTS, "no drop", f"W{FEW_TRIALS[1:]}"),
    ({"p": 0.01, "interval": None}, BEYOND_CHANCE, None),
    (RISE | {"interval": Interval(low=0.4, high=3.4)}, "a rise larger than chance explains", None),
])  # fmt: skip
def test_brief_comparison_sentence_omits_detectable_drop(fields, significance, detectable):
    results = compared(**fields)
    assert certainty.brief(results).endswith(f": {significance}.")
    assert certainty.detectable_drop(results.comparison) == detectable
    assert certainty.score_and_change(results).startswith(certainty.brief(results)[:-1])


def test_score_is_stated_with_its_interval_if_known():
    run = build.results(score=86.45, interval=Interval(low=79.04, high=91))
    assert certainty.score_and_change(run) == "Score 86.4 (79.0 to 91.0)."
    assert certainty.score_and_change(build.results(score=86.45)) == "Score 86.4."


def test_trials_needed_to_prove_a_drop_are_stated_only_if_more_and_realistic():
    def trials_to_prove(**fields) -> str | None:
        results = compared(**fields)
        return certainty.trials_to_prove(results.comparison, results)

    sentence = "With 9 trials per test on each side, a run would detect a drop of 3.6 points"
    assert trials_to_prove().startswith(sentence)
    assert [trials_to_prove(trials_needed=trials) for trials in (3, 4000, None)] == [None] * 3


def test_baseline_age_is_stated_before_or_after_the_run_in_any_time_zone():
    def age(at: datetime) -> str:
        results = compared(baseline={"at": at})
        return changes.age(results, results.comparison)

    for before, text in (
        (timedelta(days=3, hours=5), "3 days before this run"),
        (timedelta(minutes=90), "1 hour before this run"),
        (timedelta(seconds=5), "less than a minute before this run"),
        (-timedelta(hours=2), "2 hours after this run"),
    ):
        assert age(build.STARTED_AT - before) == text
    other_zone = datetime(2026, 11, 20, 11, 30, tzinfo=timezone(timedelta(hours=2)))
    assert age(other_zone) == "1 day before this run"
    assert phrases.moment(other_zone) == "2026-11-20 09:30 UTC"


def test_cost_tokens_and_latency_of_both_runs_are_stated_in_one_line_if_known():
    head = Efficiency(cost_usd_per_trial=0.0174, tokens_per_trial=12_345_678, p95_latency_seconds=3.4)
    base = Efficiency(cost_usd_per_trial=0.0166, median_latency_seconds=1.1, p95_latency_seconds=2.8)
    assert changes.pace(compared(head_efficiency=head, base_efficiency=base).comparison) == (
        "Cost per trial $0.0174 (baseline $0.0166), tokens per trial 12 M (baseline n/a), "
        "95 % of received replies within 3.40 s (baseline 2.80 s)."
    )
    assert changes.pace(compared().comparison) is None


def test_suspected_tests_are_listed_confirmed_first_without_newly_failing():
    def suspect(name: str, delta: float, **fields) -> TestChange:
        return TestChange(suite="S", name=name, base=100, head=100 + delta, delta=delta, p=0.3, **fields)

    suspects = [suspect("a", -20), suspect("b", -40), suspect("c", -30, confirmed=True)]
    comparison = compared(suspects=suspects, regressed=suspects[1:2]).comparison
    assert [test.name for test in changes.suspects(comparison)] == ["c", "a"]
    assert [test.name for test in changes.newly_failing(comparison)] == ["b"]


UNJUDGED = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")


def with_trial(**fields):
    return build.test_result(trials=(build.trial_result(**fields),))


@each_row(("test", "provider", "nothing_failed"), [
    (build.test_result(), "openai", True),
    (build.test_result(not_run=1), "openai", False),
    (cases.played("a", "pf"), "openai", False),
    (cases.played("a", "pu"), "openai", False),
    (with_trial(status=EndState.FAILED), "openai", False),
    (with_trial(findings=(UNJUDGED,)), "openai", False),
    (with_trial(findings=(build.finding(), UNJUDGED)), "offline", True),
])  # fmt: skip
def test_nothing_failed_is_stated_only_if_every_trial_has_passing_verdict(test, provider, nothing_failed):
    results = compared(base=100, head=100, delta=0, p=1, interval=None, detectable=None)
    suite = build.suite_result("Refunds", *results.suites[0].tests[1:], test)
    run = build.run_info(config={"provider": provider})
    message = certainty.score_and_change(replace(results, suites=(suite,), run=run))
    assert message.endswith(f"change 0.0: no change{', nothing failed in this run' * nothing_failed}.")


def test_equally_named_suites_are_paired_with_comparisons_in_order():
    results = cases.proven()
    turns, refunds = results.comparison.suites[1], results.comparison.suites[0]
    assert changes.of_suites(results) == (refunds, turns)
    twice = replace(
        results,
        suites=(results.suites[0], results.suites[0], build.suite_result("Other")),
        comparison=replace(results.comparison, suites=(turns, refunds, replace(refunds, delta=1.0))),
    )
    assert [result and result.delta for result in changes.of_suites(twice)] == [refunds.delta, 1.0, None]
    assert changes.of_suites(build.results()) == (None,)


def test_results_of_one_suite_have_only_its_own_score_and_comparison():
    results: Results = cases.proven()
    suite, result = results.suites[1], results.comparison.suites[1]
    own = suite_results.of_suite(results, suite, result)
    assert (own.score, own.comparison.delta) == (suite.score, result.delta)
    assert own.comparison.removed == (TestName(suite="Exchanges", name="Three items"),)
    assert [test.name for test in own.comparison.regressed] == ["Wrong size"]
    assert own.comparison.suites == (result,)
    assert own.comparison.baseline == results.comparison.baseline
    assert "compared on 1 of 2 tests (the baseline has 3):" in certainty.score_and_change(own)
    assert suite_results.of_suite(own, suite, changes.of_suites(own)[0]) == own


def test_early_look_requires_lower_p_to_prove_drop():
    look = ComparisonLook(trials=3, p=0.04, decision="continue")
    early = certainty.brief(compared(p=0.04, looks=(look,)))
    assert early.endswith("p = 0.04: a drop that may be chance (after so few trials p must be lower).")
    last = replace(look, trials=7, decision="fail")
    assert "larger than chance explains" in certainty.brief(compared(p=0.04, looks=(look, last)))
