"""Why the gate does not hold, for somebody who has never seen its options."""

import html
from dataclasses import replace

import builders as build
import pytest

from ci_evals.domain.base import Interval
from ci_evals.reports import console
from ci_evals.reports.badge import badge_of
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story import gate
from ci_evals.reports.story.story import story_of


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            {"name": "min-score", "required": 80, "seen": 78.96, "interval": Interval(low=70, high=85)},
            "the score is 78, at least 80 required",
        ),
        (
            {"name": "tag:safety", "required": 9, "seen": 99, "seen_if_undecided_failed": 5},
            "the score of the tag “safety” is 5 if undecided counts as failed, at least 9 required",
        ),
        (
            {
                "name": "critical:Never: a discount",
                "required": 100,
                "seen": 0,
                "note": "trials passed: 0 of 3",
            },
            "the critical test “Never: a discount” failed",
        ),
        (
            {"name": "max-drop", "required": 3, "seen": 5.16},
            "the score fell by 6, at most 3 allowed",
        ),
        (
            {"name": "max-drop suite:HR", "required": 3, "seen": 5.16},
            "the score of the suite “HR” fell by 6, at most 3 allowed",
        ),
        (
            {"name": "regression", "required": 0.05, "seen": 0.02},
            "the score fell by more than chance explains",
        ),
        (
            {"name": "regression", "required": 0, "seen": 1},
            "1 test passed in the baseline and no longer",
        ),
        (
            {"name": "max-errors", "required": 0, "seen": 25},
            "25 trials errored or could not be judged, at most 0 allowed",
        ),
        (
            {"name": "max-invalid-users", "required": 1, "seen": 2},
            "2 trials excluded, since the simulated user broke character twice, at most 1 allowed",
        ),
        (
            {"name": "max-cost", "required": 1.5, "seen": 2},
            "the run cost $2.00, at most $1.50 allowed",
        ),
        (
            {"name": "max-p95-latency", "required": 2, "seen": 3.5},
            "95 % of the replies took up to 3.50 s, at most 2 s allowed",
        ),
        (
            {"name": "tag:slow", "required": 80, "seen": None, "note": "nothing was scored"},
            "tag:slow: nothing was scored",
        ),
        (
            {"name": "fail-fast", "required": None, "seen": None, "note": "a trial failed"},
            "fail-fast: a trial failed",
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_a_broken_check_in_words(check, words):
    """Names of options stay out of it where the check can be told without."""
    assert gate.failure(build.check(passed=False, **check), build.results()) == words


def test_a_score_of_which_little_was_decided_is_no_headline():
    """Neither on the console nor in summary, comment, page or badge; what was decided is said instead."""
    suite = replace(build.suite_result("Refunds"), score=97.3, decided_share=0.31)
    results = build.results(suite, score=97.3, decided_share=0.31)
    output = "oo little was decided for a score (31 % of the criteria's weight)"
    headlines = (
        console.render(story_of(results)).partition("Evals passed")[2],
        console.render(story_of(results)).partition("\n")[0],
        documents.summary(story_of(results)).partition("|")[0],
        "".join(page.render(story_of(results))).partition('<p class="lead">')[2].partition("</p>")[0],
    )
    for text in headlines:
        assert output in html.unescape(text)
        assert "97.3" not in text
    assert badge_of(story_of(results)).message == "passed, mostly undecided"
    half, more = (replace(results, decided_share=share) for share in (0.5, 0.51))
    assert "Score 97.3" not in documents.summary(story_of(half))
    assert "Score 97.3" in documents.summary(story_of(more))
