"""Since when a test fails, told from the runs that stand beside one."""

from datetime import timedelta

import builders as build
import pytest

from ci_evals.domain.results import TestOutcome
from ci_evals.reports.page import since
from ci_evals.reports.page.beside import Beside, OtherRun

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
        OtherRun(
            label=f"past/{age}",
            id=f"past-{age}",
            at=build.STARTED_AT - timedelta(days=age),
            commit=f"{age}{'a' * 39}",
            score=90.0,
            interval=None,
            trials=3,
            cost_usd=None,
            holds=True,
            outcomes={TEST: SIGNS[letter]} if letter in SIGNS else {},
        )
        for age, letter in enumerate(drawing, start=1)
    )


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        ("p", "Fails since this run. Passed last in the run of 2026-11-20 09:30 UTC, commit 1aaaaaa."),
        (
            "fp",
            (
                "Fails since the run of 2026-11-20 09:30 UTC, commit 1aaaaaa (2 runs in a row). "
                "Passed last in the run of 2026-11-19 09:30 UTC, commit 2aaaaaa."
            ),
        ),
        (
            "f.efup",
            (
                "Fails since the run of 2026-11-17 09:30 UTC, commit 4aaaaaa (3 runs in a row). "
                "Passed last in the run of 2026-11-15 09:30 UTC, commit 6aaaaaa."
            ),
        ),
        (
            "fpf",
            (
                "Fails since the run of 2026-11-20 09:30 UTC, commit 1aaaaaa (2 runs in a row). "
                "Passed last in the run of 2026-11-19 09:30 UTC, commit 2aaaaaa."
            ),
        ),
        (
            "ff",
            "Failed in all 3 runs that are known, the first of 2026-11-19 09:30 UTC, commit 2aaaaaa.",
        ),
    ],
)
def test_the_unbroken_row_of_failures_is_told(drawing, said):
    """Runs that do not know the test, or could not tell, neither break the row nor make it longer."""
    found = since.of(TEST, runs(drawing))
    assert found is not None
    assert since.words(found) == said


@pytest.mark.parametrize("drawing", ["", ".", "eu"])
def test_without_a_run_that_knows_the_test_nothing_is_said(drawing):
    """A test of another digest is another test."""
    assert since.of(TEST, runs(drawing)) is None
    assert since.of((*TEST[:2], "e" * 64), runs("fp")) is None


def test_the_baseline_is_named_as_such():
    found = since.of(TEST, runs("p"))
    assert found is not None
    assert "Passed last in the baseline, the run of 2026-11-20" in since.words(found, baseline="past-1")


def test_only_earlier_runs_count_each_once_the_newest_first():
    """The baseline is one of them, also where it stands among the others."""
    past = runs("fpf")
    later = build.results(run=build.run_info(id="later", started_at=build.STARTED_AT + timedelta(days=1)))
    baseline = build.results(run=build.run_info(id="past-2", started_at=past[1].at))
    beside = Beside(baseline=baseline, others=(past[2], OtherRun.of(later, "later"), past[1], past[0]))
    found = since.earlier(build.results(), beside)
    assert [run.id for run in found] == ["past-1", "past-2", "past-3"]
    own = OtherRun.of(build.results(run=build.run_info(started_at=past[0].at)), "the same run")
    assert since.earlier(build.results(), Beside(others=(own,))) == ()
