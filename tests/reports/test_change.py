"""What is said of a change: the sentence, case by case, and the lists beside it."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import builders as build
import cases
import pytest
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
    "tests": 12,
    "base": 90.1,
    "head": 86.45,
    "delta": -3.65,
    "interval": Interval(low=-7.9, high=0.5),
    "p": 0.062,
    "smallest_p": 0.0001,
    "detectable": 5.04,
    "trials_needed": 9,
}


def compared(*, names=TWELVE, trials="ppp", bounds=BOUNDS, **fields):
    """Results of these tests and a comparison of all of them, of which the fields are told."""
    fields = DROP | fields
    baseline = fields.pop("baseline", {})
    score = fields.pop("score", fields["head"])
    tests = [cases.played(name, trials) for name in names]
    found = Comparison(
        comparable=fields["delta"] is not None,
        baseline=Baseline(
            **{
                "score": fields["base"],
                "commit": cases.BASE_COMMIT,
                "at": build.STARTED_AT - timedelta(days=3),
                "run_id": "run-0",
                "tests": len(names),
                "trials": len(names) * len(trials),
            }
            | baseline
        ),
        **fields,
    )
    return build.results(
        build.suite_result("Refunds", *tests),
        score=score,
        interval=bounds,
        comparison=found,
    )


CAUGHT = "this run would detect a drop of 6 points or more 80 % of the time."
SCORE = "Score 86.4 (79.0 to 91.0), baseline 90.1, change −3.7 (−7.9 to +0.5)"
RISE = {"head": 92.0, "delta": 1.9, "p": 0.9, "interval": Interval(low=-1.2, high=5), "trials_needed": None}
NOTHING = {
    "tests": 0,
    "base": None,
    "head": None,
    "delta": None,
    "p": None,
    "interval": None,
    "smallest_p": None,
    "detectable": None,
    "trials_needed": None,
}
SINGLE = {"trials": "p", "estimated_from": "tests", "detectable": 11.9, "p": 0.12, "smallest_p": 1 / 4096}


@each_row(
    ("fields", "value"),
    [
        (
            {},
            f"{SCORE}, p = 0.06: a drop that may be chance; {CAUGHT}",
        ),
        (
            {"p": 0.0012, "interval": Interval(low=-5.2, high=-2.1)},
            (
                "Score 86.4 (79.0 to 91.0), baseline 90.1, change −3.7 (−5.2 to −2.1), p = 0.001: "
                "a drop larger than chance explains."
            ),
        ),
        (
            {"p": 0.0012},
            f"{SCORE}, p = 0.001: a drop larger than chance explains; p decides, not the interval.",
        ),
        (
            {"p": 0.0501},
            f"{SCORE}, p = 0.051: a drop that may be chance; {CAUGHT}",
        ),
        ({"detectable": 3.6}, f"{SCORE}, p = 0.06: a drop that may be chance."),
        (
            {"detectable": 100.0},
            (
                f"{SCORE}, p = 0.06: a drop that may be chance; "
                "the scores vary too much to notice any drop reliably."
            ),
        ),
        (
            {"p": 0.02, "interval": None},
            (
                "Score 86.4 (79.0 to 91.0), baseline 90.1, change −3.7, "
                "p = 0.02: a drop larger than chance explains."
            ),
        ),
        (
            RISE,
            f"Score 92.0 (79.0 to 91.0), baseline 90.1, change +1.9 (−1.2 to +5.0): no drop; {CAUGHT}",
        ),
        (
            RISE | {"interval": Interval(low=0.4, high=3.4)},
            (
                "Score 92.0 (79.0 to 91.0), baseline 90.1, change +1.9 (+0.4 to +3.4): "
                "a rise larger than chance explains."
            ),
        ),
        (
            {"head": 90.1, "delta": 0, "p": 0.6, "interval": Interval(low=-3, high=3)},
            f"Score 90.1 (79.0 to 91.0), baseline 90.1, change 0.0 (−3.0 to +3.0): no change; {CAUGHT}",
        ),
        (
            {"head": 100, "base": 100, "delta": 0, "p": 1, "interval": Interval(low=-2, high=2)},
            (
                "Score 100.0 (79.0 to 91.0), baseline 100.0, change 0.0 (−2.0 to +2.0): "
                f"no change, nothing failed in this run; {CAUGHT}"
            ),
        ),
        (
            {"names": TWELVE[:4], "tests": 4, "trials": "p", "p": 0.0625, "smallest_p": 0.0625}
            | {"trials_needed": 1},
            (
                f"{SCORE}: too few trials to tell it from chance "
                "(at least 2 trials per test on each side are required)."
            ),
        ),
        (
            {"names": TWELVE[:4], "tests": 4, "trials": "p", "smallest_p": 0.0625},
            (
                f"{SCORE}: too few trials to tell it from chance "
                "(at least 9 trials per test on each side are required)."
            ),
        ),
        (
            {"names": TWELVE[:1], "tests": 1, "trials": "p", "p": 0.5, "smallest_p": 0.5, "interval": None}
            | {"detectable": None, "trials_needed": None, "bounds": None},
            (
                "Score 86.4, baseline 90.1, change −3.7: "
                "too few trials to tell it from chance (at least 3 trials on each side are required)."
            ),
        ),
        (
            RISE | {"names": TWELVE[:4], "tests": 4, "trials": "p", "smallest_p": 0.0625},
            (
                "Score 92.0 (79.0 to 91.0), baseline 90.1, change +1.9 (−1.2 to +5.0): no drop; "
                "with so few trials any drop can be chance "
                "(at least 2 trials per test on each side are required)."
            ),
        ),
        (
            {"names": TWELVE[:1], "tests": 1, "p": 0.2, "smallest_p": 0.05},
            f"{SCORE}, p = 0.2: a drop of this one test that may be chance; {CAUGHT}",
        ),
        (
            {"names": TWELVE[:1], "tests": 1, "p": 0.05, "smallest_p": 0.05},
            (
                f"{SCORE}, p = 0.05: a drop of this one test larger than chance explains; "
                "p decides, not the interval."
            ),
        ),
        (
            SINGLE,
            (
                f"{SCORE}, p = 0.12: a drop that may be chance; with so few trials per test, this run would "
                "detect a drop of 12 points or more 80 % of the time."
            ),
        ),
        (
            SINGLE | {"fewest_broken": 5, "detectable": 3.0},
            (
                f"{SCORE}, p = 0.12: a drop that may be chance; "
                "with so few trials, up to 4 newly failing tests can be chance."
            ),
        ),
        ({"detectable": 90.2}, f"{SCORE}, p = 0.06: a drop that may be chance."),
        (
            {"fewest_broken": 2},
            (
                f"{SCORE}, p = 0.06: a drop that may be chance; {CAUGHT[:-1]}; "
                "with so few trials, up to 1 newly failing test can be chance."
            ),
        ),
        ({"fewest_broken": 1}, f"{SCORE}, p = 0.06: a drop that may be chance; {CAUGHT}"),
        (
            {"interval": Interval(low=-7.9, high=-0.1)},
            (
                "Score 86.4 (79.0 to 91.0), baseline 90.1, change −3.7 (−7.9 to −0.1), p = 0.06: "
                f"a drop that may be chance; p decides, not the interval; {CAUGHT}"
            ),
        ),
        (
            {"tests": 10},
            (
                "Score 86.4 (79.0 to 91.0); compared on 10 of 12 tests: 86.4, baseline 90.1, "
                f"change −3.7 (−7.9 to +0.5), p = 0.06: a drop that may be chance; {CAUGHT}"
            ),
        ),
        (
            {"tests": 10, "baseline": {"tests": 14}},
            (
                "Score 86.4 (79.0 to 91.0); compared on 10 of 12 tests (the baseline has 14): 86.4, "
                f"baseline 90.1, change −3.7 (−7.9 to +0.5), p = 0.06: a drop that may be chance; {CAUGHT}"
            ),
        ),
        (
            {"baseline": {"tests": 14}, "interval": None, "detectable": None},
            (
                "Score 86.4 (79.0 to 91.0); compared on 12 of 14 tests of the baseline: 86.4, "
                "baseline 90.1, change −3.7, p = 0.06: a drop that may be chance."
            ),
        ),
        (
            {"score": 86.6, "interval": None, "detectable": None},
            (
                "Score 86.6 (79.0 to 91.0); compared on 12 tests: 86.4, "
                "baseline 90.1, change −3.7, p = 0.06: a drop that may be chance."
            ),
        ),
        (
            NOTHING
            | {"reasons": ("the judge's prompt changed", "the judge is gpt-5, in the baseline gpt-4")},
            (
                "Nothing was scored (79.0 to 91.0); not compared with the baseline: "
                "the judge's prompt changed; the judge is gpt-5, in the baseline gpt-4."
            ),
        ),
        (
            NOTHING | {"reasons": tuple("abcde"), "bounds": None},
            "Nothing was scored; not compared with the baseline: a; b; c; and 2 more reasons.",
        ),
        (
            NOTHING | {"bounds": None},
            "Nothing was scored; not compared with the baseline: they have nothing in common.",
        ),
    ],
)
def test_change_is_described_in_one_sentence(fields, value):
    """What was seen, and what it is worth; only what is proven is called so."""
    assert certainty.score_and_change(compared(**fields)) == value


@pytest.mark.parametrize(
    ("fields", "worth", "small"),
    [
        (
            {},
            "a drop that may be chance",
            "This run would detect a drop of 6 points or more 80 % of the time.",
        ),
        (
            SINGLE | {"fewest_broken": 5},
            "a drop that may be chance",
            (
                "With so few trials per test, this run would detect a drop of 12 points or more 80 % "
                "of the time. Up to 4 newly failing tests can be chance."
            ),
        ),
        (
            RISE | {"names": TWELVE[:4], "tests": 4, "trials": "p", "smallest_p": 0.0625},
            "no drop",
            (
                "With so few trials any drop can be chance "
                "(at least 2 trials per test on each side are required)."
            ),
        ),
        ({"p": 0.01, "interval": None}, "a drop larger than chance explains", None),
        (RISE | {"interval": Interval(low=0.4, high=3.4)}, "a rise larger than chance explains", None),
    ],
)
def test_what_could_have_been_seen_is_for_the_small_print(fields, worth, small):
    """The brief sentence ends with the worth; the console's has both."""
    results = compared(**fields)
    assert certainty.brief(results).endswith(f": {worth}.")
    assert certainty.detectable_drop(results.comparison) == small
    assert certainty.score_and_change(results).startswith(certainty.brief(results)[:-1])


def test_without_a_baseline_the_score_is_told():
    """With its interval, where there is one."""
    run = build.results(score=86.45, interval=Interval(low=79.04, high=91))
    assert certainty.score_and_change(run) == "Score 86.4 (79.0 to 91.0)."
    assert certainty.score_and_change(build.results(score=86.45)) == "Score 86.4."


def test_the_trials_that_would_settle_it():
    """Where there are more than were played, and not so many that nobody would."""

    def trials_needed(**fields) -> str | None:
        results = compared(**fields)
        return certainty.trials_to_prove(results.comparison, results)

    assert trials_needed().startswith(
        "With 9 trials per test on each side, a run would detect a drop of 3.6 points"
    )
    assert trials_needed(trials_needed=3) is None
    assert trials_needed(trials_needed=4000) is None
    assert trials_needed(trials_needed=None) is None


@pytest.mark.parametrize(
    ("before", "value"),
    [
        (timedelta(days=3, hours=5), "3 days before this run"),
        (timedelta(minutes=90), "1 hour before this run"),
        (timedelta(seconds=5), "less than a minute before this run"),
        (-timedelta(hours=2), "2 hours after this run"),
    ],
)
def test_how_old_the_baseline_is(before, value):
    """By the two runs alone, whenever the report is drawn."""
    results = compared(baseline={"at": build.STARTED_AT - before})
    assert changes.age(results, results.comparison) == value


def test_time_in_another_zone_is_shown_in_utc():
    """A results file may have been written by another program."""
    there = timezone(timedelta(hours=2))
    results = compared(baseline={"at": datetime(2026, 11, 20, 11, 30, tzinfo=there)})
    assert changes.age(results, results.comparison) == "1 day before this run"
    assert phrases.moment(results.comparison.baseline.at) == "2026-11-20 09:30 UTC"


def test_what_both_runs_took_stands_in_one_line():
    """As far as it is known of this run."""
    results = compared(
        head_efficiency=Efficiency(
            cost_usd_per_trial=0.0174, tokens_per_trial=12_345_678, p95_latency_seconds=3.4
        ),
        base_efficiency=Efficiency(
            cost_usd_per_trial=0.0166, median_latency_seconds=1.1, p95_latency_seconds=2.8
        ),
    )
    assert changes.pace(results.comparison) == (
        "Cost per trial $0.0174 (baseline $0.0166), tokens per trial 12 M (baseline n/a), "
        "95 % of received replies within 3.40 s (baseline 2.80 s)."
    )
    assert changes.pace(compared().comparison) is None


def test_suspects_that_are_confirmed_are_listed_first():
    """Newly failing ones are not listed again."""

    def suspect(name: str, delta: float, *, confirmed: bool = False) -> TestChange:
        return TestChange(
            suite="S", name=name, base=100, head=100 + delta, delta=delta, confirmed=confirmed, p=0.3
        )

    found = [suspect("a", -20), suspect("b", -40), suspect("c", -30, confirmed=True)]
    comparison = compared(suspects=found, regressed=found[1:2]).comparison
    assert [test.name for test in changes.suspects(comparison)] == ["c", "a"]
    assert [test.name for test in changes.newly_failing(comparison)] == ["b"]


UNJUDGED = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")


@pytest.mark.parametrize(
    ("test", "provider", "text"),
    [
        (build.test_result(), "openai", "no change, nothing failed in this run"),
        (build.test_result(not_run=1), "openai", "no change"),
        (cases.played("a", "pf"), "openai", "no change"),
        (cases.played("a", "pu"), "openai", "no change"),
        (build.test_result(trials=(build.trial_result(status=EndState.FAILED),)), "openai", "no change"),
        (build.test_result(trials=(build.trial_result(findings=(UNJUDGED,)),)), "openai", "no change"),
        (
            build.test_result(trials=(build.trial_result(findings=(build.finding(), UNJUDGED)),)),
            "offline",
            "no change, nothing failed in this run",
        ),
    ],
)
def test_nothing_failed_appears_only_without_failures(test, provider, text):
    """Compared scores of 100 do not tell of trials that died and verdicts that are wanting."""
    results = compared(base=100, head=100, delta=0, p=1, interval=None, detectable=None)
    suite = build.suite_result("Refunds", *results.suites[0].tests[1:], test)
    run = build.run_info(config={"provider": provider})
    message = certainty.score_and_change(replace(results, suites=(suite,), run=run))
    assert message.endswith(f"change 0.0: {text}.")


def test_suites_of_one_name_go_by_their_order():
    """As they were paired; a suite that the comparison does not know has none."""
    results = cases.proven()
    turns, refunds = results.comparison.suites[1], results.comparison.suites[0]
    assert changes.of_suites(results) == (refunds, turns)
    twice = replace(
        results,
        suites=(results.suites[0], results.suites[0], build.suite_result("Other")),
        comparison=replace(results.comparison, suites=(turns, refunds, replace(refunds, delta=1.0))),
    )
    assert [found and found.delta for found in changes.of_suites(twice)] == [refunds.delta, 1.0, None]
    assert changes.of_suites(build.results()) == (None,)


def test_a_suites_own_results_hold_its_own_comparison():
    """The change of its tests, and of the lists its own; narrowed again they stay what they are."""
    results: Results = cases.proven()
    suite, found = results.suites[1], results.comparison.suites[1]
    own = suite_results.of_suite(results, suite, found)
    assert (own.score, own.comparison.delta) == (suite.score, found.delta)
    assert own.comparison.removed == (TestName(suite="Exchanges", name="Three items"),)
    assert [test.name for test in own.comparison.regressed] == ["Wrong size"]
    assert own.comparison.suites == (found,)
    assert own.comparison.baseline == results.comparison.baseline
    assert "compared on 1 of 2 tests (the baseline has 3):" in certainty.score_and_change(own)
    assert suite_results.of_suite(own, suite, changes.of_suites(own)[0]) == own


def test_an_early_look_proves_less():
    """Every look is a chance to err, so that p is held to the limit of the look."""
    look = ComparisonLook(trials=3, p=0.04, decision="continue")
    early = certainty.brief(compared(p=0.04, looks=(look,)))
    assert early.endswith("p = 0.04: a drop that may be chance (after so few trials p must be lower).")
    last = replace(look, trials=7, decision="fail")
    assert "larger than chance explains" in certainty.brief(compared(p=0.04, looks=(look, last)))
