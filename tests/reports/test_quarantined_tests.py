"""Tests in quarantine, in every report."""

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

QUARANTINE = {"reason": "The sandbox drops orders @all", "until": "2026-12-31", "owner": "Ann"}
SENTENCE = "in quarantine until 2026-12-31, so it decides nothing: The sandbox drops orders"


@pytest.fixture(scope="module")
def quarantined():
    """One test passed, one failed in quarantine."""
    plan = make_plan({"name": "good"}, {"name": "sick", "quarantine": QUARANTINE})
    played = trial("passed"), trial("failed")
    return replace(build.results_of_scorecard(scorecard(plan, *played)), gate=gate_decision(plan, *played))


def test_quarantined_failure_is_named_in_reports_of_a_passed_run(quarantined):
    story = story_of(quarantined)
    text = comment.render(story, NO_CONTEXT)
    assert text.splitlines()[0].startswith("## ✅ Evals passed: 100 / 100")
    assert "1 of 1 test passes, 1 in quarantine" in text
    assert f"“sick” (failed) is {SENTENCE}" in text
    assert "@all" not in text
    assert "failed (in quarantine)" in text
    html = "".join(page.render(story))
    for text in (documents.step_summary(story, 900_000), console.render(story), html):
        assert SENTENCE in text
        assert "in quarantine" in text
    assert annotations(story) == ()


def test_quarantined_test_is_skipped_in_junit(quarantined):
    (suite,) = JUnitXml.fromstring("".join(junit.render(story_of(quarantined))).encode())
    good, sick = suite
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0, 0, 1)
    assert good.result == []
    assert sick.result[0].message.startswith(f"failed; {SENTENCE}")
