"""The story of a run: computed once, and the same for the same results."""

from dataclasses import FrozenInstanceError

import cases
import comment_cases
import pytest

from ci_evals.reports.story.headline import Trust
from ci_evals.reports.story.story import story_of


@pytest.mark.parametrize("make", [comment_cases.bad, comment_cases.passed_example, cases.invalid])
def test_a_story_depends_on_the_results_alone(make):
    results = make()
    assert story_of(results) == story_of(results)


def test_a_story_does_not_change():
    story = story_of(cases.good())
    with pytest.raises(FrozenInstanceError):
        story.certainty = "sure"  # type: ignore[misc]


def test_the_origin_of_results_stands_in_their_verdict():
    story = story_of(comment_cases.passed_example())
    assert story.verdict() == "Evals passed: 93 / 100, same as main"
    assert story.verdict(Trust.FORK).startswith("Evals passed (reported by the fork, unverified): 93")
    assert story.verdict(Trust.CONTRADICTORY) == "No verdict: the results contradict their own checks"
