"""Since when a test fails, told from the runs that stand beside one."""

from dataclasses import replace
from datetime import timedelta

import builders as build
import pytest

from ci_evals.domain.results.run import Git, Origin
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports.story import comparison_runs
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.outcome_labels import RunOutcome

TEST = ("Refunds", "Refund too late", "d" * 64)
SIGNS = {
    "p": TestOutcome.PASSED,
    "f": TestOutcome.FAILED,
    "e": TestOutcome.ERROR,
    "u": TestOutcome.UNDECIDED,
}


def runs(drawing):
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


@pytest.mark.parametrize(
    ("drawing", "sentence"),
    [
        ("p", "First failed in this run; last passed 2026-11-20 09:30 UTC (1aaaaaa)."),
        (
            "fp",
            (
                "Failing since 2026-11-20 09:30 UTC (1aaaaaa), 2 runs in a row; "
                "last passed 2026-11-19 09:30 UTC (2aaaaaa)."
            ),
        ),
        (
            "f.efup",
            (
                "Failing since 2026-11-17 09:30 UTC (4aaaaaa), 3 runs in a row; "
                "last passed 2026-11-15 09:30 UTC (6aaaaaa)."
            ),
        ),
        (
            "fpf",
            (
                "Failing since 2026-11-20 09:30 UTC (1aaaaaa), 2 runs in a row; "
                "last passed 2026-11-19 09:30 UTC (2aaaaaa)."
            ),
        ),
        ("ff", "Failed in all 3 known runs, the first 2026-11-19 09:30 UTC (2aaaaaa)."),
    ],
)
def test_unbroken_row_of_failures_is_shown(drawing, sentence):
    """Runs that do not know the test, or could not tell, neither break the row nor make it longer."""
    assert comparison_runs.failing_since(TEST, runs(drawing)) == sentence


@pytest.mark.parametrize("drawing", ["", ".", "eu"])
def test_without_a_run_that_knows_the_test_nothing_is_said(drawing):
    """A test of another digest is another test."""
    assert comparison_runs.failing_since(TEST, runs(drawing)) is None
    assert comparison_runs.failing_since((*TEST[:2], "e" * 64), runs("fp")) is None


def test_the_baseline_is_named_as_such():
    found = comparison_runs.failing_since(TEST, runs("p"), baseline="past-1")
    assert found == "First failed in this run; last passed in the baseline, 2026-11-20 09:30 UTC (1aaaaaa)."


def test_only_earlier_runs_count_each_once_the_newest_first():
    """The baseline is one of them, also where it stands among the others."""
    past = runs("fpf")
    later = build.results(run=build.run_info(id="later", started_at=build.STARTED_AT + timedelta(days=1)))
    baseline = build.results(run=build.run_info(id="past-2", started_at=past[1].at))
    beside = ComparisonRuns(
        baseline=baseline, others=(past[2], ComparisonRun.of(later, "later"), past[1], past[0])
    )
    found = comparison_runs.earlier(build.results(), beside)
    assert [run.id for run in found] == ["past-1", "past-2", "past-3"]
    own = ComparisonRun.of(build.results(run=build.run_info(started_at=past[0].at)), "the same run")
    assert comparison_runs.earlier(build.results(), ComparisonRuns(others=(own,))) == ()


@pytest.mark.parametrize(
    ("here", "base", "ages"),
    [
        ("refs/heads/main", None, [1, 5]),
        ("refs/heads/fix", "refs/heads/main", [1, 2, 5]),
        ("refs/pull/7/merge", "refs/heads/main", [1, 3, 5]),
        ("refs/pull/7/merge", None, [1, 2, 3, 5]),
        (None, None, [1, 2, 3, 4, 5]),
    ],
)
def test_runs_of_other_branches_tell_nothing_of_this_one(here, base, ages):
    """Its own branch counts, and that of its baseline; of a pull request without one all branches do."""
    refs = ("refs/heads/main", "refs/heads/fix", "refs/pull/7/merge", "refs/pull/8/merge", None)
    past = tuple(replace(run, ref=ref) for run, ref in zip(runs("fffff"), refs, strict=True))
    results = build.results(run=build.run_info(git=Git(ref=here)))
    baseline = build.results(run=build.run_info(id="past-1", started_at=past[0].at, git=Git(ref=base)))
    found = comparison_runs.earlier(results, ComparisonRuns(baseline if base else None, past))
    assert [run.id for run in found] == [f"past-{age}" for age in ages]


def test_conversations_that_were_held_once_count_once():
    """A replay, and a run that was judged again, tell of the run that held them."""
    past = runs("ff")
    origin = Origin(how="rejudge", run="past-1", started_at=past[0].at)
    again = build.run_info(id="again", started_at=past[0].at + timedelta(hours=1), origin=origin)
    beside = ComparisonRuns(others=(*past, ComparisonRun.of(build.results(run=again), "again")))
    assert [run.id for run in comparison_runs.earlier(build.results(), beside)] == [
        "past-1",
        "past-2",
    ]
    assert [
        run.id for run in comparison_runs.earlier(build.results(run=again), ComparisonRuns(others=past))
    ] == ["past-2"]
