"""Since when a test fails, by earlier runs."""

from dataclasses import replace
from datetime import timedelta

import builders as build
from each_row import each_row

from ci_evals.domain.results.run import Git, Origin
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.story import comparison_runs
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.outcome_labels import RunOutcome

TEST = ("Refunds", "Refund too late", "d" * 64)
SIGNS = {"p": TestOutcome.PASSED, "f": TestOutcome.FAILED, "e": TestOutcome.ERROR, "u": TestOutcome.UNDECIDED}
SINCE_1 = "Failing since 2026-11-20 09:30 UTC (1aaaaaa), 2 runs in a row"
SINCE_4 = "Failing since 2026-11-17 09:30 UTC (4aaaaaa), 3 runs in a row"


def past_runs(drawing):
    """Earlier runs of the test, a letter each, the newest first; a dot is one that does not know it."""
    return tuple(
        ComparisonRun(
            label=f"past/{age}",
            id=f"past-{age}",
            at=build.STARTED_AT - timedelta(days=age),
            commit=f"{age}{'a' * 39}",
            score=90.0,
            interval=None,
            cost_usd=None,
            run_outcome=RunOutcome.PASSED,
            outcomes={TEST: SIGNS[letter]} if letter in SIGNS else {},
        )
        for age, letter in enumerate(drawing, start=1)
    )


@each_row(("letters", "sentence"), [
    ("p", "First failed in this run; last passed 2026-11-20 09:30 UTC (1aaaaaa)."),
    ("fp", f"{SINCE_1}; last passed 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("f.efup", f"{SINCE_4}; last passed 2026-11-15 09:30 UTC (6aaaaaa)."),
    ("fpf", f"{SINCE_1}; last passed 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("ff", "Failed in all 3 known runs, the first 2026-11-19 09:30 UTC (2aaaaaa)."),
    ("", None),
    (".", None),
    ("eu", None),
])  # fmt: skip
def test_first_failed_run_of_current_failure_streak_is_named(letters, sentence):
    assert comparison_runs.failing_since(TEST, past_runs(letters)) == sentence


def test_last_pass_in_baseline_is_named_and_changed_test_is_ignored():
    result = comparison_runs.failing_since(TEST, past_runs("p"), baseline="past-1")
    assert result == "First failed in this run; last passed in the baseline, 2026-11-20 09:30 UTC (1aaaaaa)."
    assert comparison_runs.failing_since((*TEST[:2], "e" * 64), past_runs("fp")) is None


def test_earlier_runs_are_unique_and_ordered_newest_first():
    past = past_runs("fpf")
    later = build.results(run=build.run_info(id="later", started_at=build.STARTED_AT + timedelta(days=1)))
    baseline = build.results(run=build.run_info(id="past-2", started_at=past[1].at))
    others = (past[2], ComparisonRun.of(later, "later"), past[1], past[0])
    result = comparison_runs.earlier(build.results(), ComparisonRuns(baseline=baseline, others=others))
    assert [run.id for run in result] == ["past-1", "past-2", "past-3"]
    own = ComparisonRun.of(build.results(run=build.run_info(started_at=past[0].at)), "the same run")
    assert comparison_runs.earlier(build.results(), ComparisonRuns(others=(own,))) == ()


@each_row(("here", "base", "ages"), [
    ("refs/heads/main", None, [1, 5]),
    ("refs/heads/fix", "refs/heads/main", [1, 2, 5]),
    ("refs/pull/7/merge", "refs/heads/main", [1, 3, 5]),
    ("refs/pull/7/merge", None, [1, 2, 3, 5]),
    (None, None, [1, 2, 3, 4, 5]),
])  # fmt: skip
def test_runs_of_unrelated_branches_are_ignored(here, base, ages):
    refs = ("refs/heads/main", "refs/heads/fix", "refs/pull/7/merge", "refs/pull/8/merge", None)
    past = tuple(replace(run, ref=ref) for run, ref in zip(past_runs("fffff"), refs, strict=True))
    results = build.results(run=build.run_info(git=Git(ref=here)))
    baseline = build.results(run=build.run_info(id="past-1", started_at=past[0].at, git=Git(ref=base)))
    result = comparison_runs.earlier(results, ComparisonRuns(baseline if base else None, past))
    assert [run.id for run in result] == [f"past-{age}" for age in ages]


def test_rejudged_run_counts_as_the_run_of_its_conversations():
    past = past_runs("ff")
    origin = Origin(how="rejudge", run="past-1", started_at=past[0].at)
    again = build.results(
        run=build.run_info(id="again", started_at=past[0].at + timedelta(hours=1), origin=origin)
    )
    others = ComparisonRuns(others=(*past, ComparisonRun.of(again, "again")))
    assert [run.id for run in comparison_runs.earlier(build.results(), others)] == ["past-1", "past-2"]
    assert [run.id for run in comparison_runs.earlier(again, ComparisonRuns(others=past))] == ["past-2"]
