"""Tests that count otherwise than the rest, in every report."""

from dataclasses import replace

import builders as build
import pytest
from junitparser import JUnitXml
from plans import gate_decision, make_plan, scorecard, trial

from ci_evals.reports import console, junit
from ci_evals.reports.annotations import annotations
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.markdown.sections import NO_CONTEXT
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of

WHY = {"reason": "The sandbox drops orders @all", "until": "2026-12-31", "owner": "Ann"}
SENTENCE = "in quarantine until 2026-12-31, so it decides nothing: The sandbox drops orders"


@pytest.fixture(scope="module")
def quarantined():
    """One test passed, one failed in quarantine."""
    plan = make_plan({"name": "good"}, {"name": "sick", "quarantine": WHY})
    played = trial("passed"), trial("failed")
    return replace(build.results_of_scorecard(scorecard(plan, *played)), gate=gate_decision(plan, *played))


def test_the_comment_names_it_and_its_outcome(quarantined):
    """The run is green; what failed in quarantine is said above the folds."""
    text = comment.render(story_of(quarantined), NO_CONTEXT)
    assert text.splitlines()[0].startswith("## ✅ Evals passed: 100 / 100")
    assert "1 of 1 test passes, 1 in quarantine" in text
    assert f"“sick” (failed) is {SENTENCE}" in text
    assert "@all" not in text
    assert "failed (in quarantine)" in text


def test_step_summary_console_and_page_say_it_too(quarantined):
    """With the same words."""
    for text in (
        documents.step_summary(story_of(quarantined), 900_000),
        console.render(story_of(quarantined)),
        "".join(page.render(story_of(quarantined))),
    ):
        assert SENTENCE in text
        assert "in quarantine" in text


def test_in_junit_it_is_skipped(quarantined):
    """Readers of test results must not fail the build for it, and see why."""
    (suite,) = JUnitXml.fromstring("".join(junit.render(story_of(quarantined))).encode())
    good, sick = suite
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0, 0, 1)
    assert good.result == []
    assert sick.result[0].message.startswith(f"failed; {SENTENCE}")


def test_it_has_no_annotation(quarantined):
    """A failure that decides nothing marks no line."""
    assert annotations(story_of(quarantined)) == ()
