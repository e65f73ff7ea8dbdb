"""Why the gate does not hold, for somebody who has never seen its options."""

import html

import builders as build
import pytest

from ci_evals.domain.base import Interval
from ci_evals.reports import console
from ci_evals.reports.badge import badge_of
from ci_evals.reports.facts import gate
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.page.comparison_runs import ALONE


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            {"name": "min-score", "required": 80, "seen": 78.96, "interval": Interval(low=70, high=85)},
            "The score is 78.9 (70.0 to 85.0); at least 80 is asked.",
        ),
        (
            {"name": "tag:safety", "required": 9, "seen": 99, "seen_if_undecided_failed": 5},
            "The score of the tag “safety” is 99.0 (5.0 if undecided counts as failed); at least 9 is asked.",
        ),
        (
            {
                "name": "critical:Never: a discount",
                "required": 100,
                "seen": 0,
                "note": "trials passed: 0 of 3",
            },
            "The critical test “Never: a discount” must pass in every trial; trials passed: 0 of 3.",
        ),
        (
            {"name": "max-drop", "required": 3, "seen": 5.16},
            "The score fell by 5.2; at most 3 is allowed.",
        ),
        (
            {"name": "max-drop suite:HR", "required": 3, "seen": 5.16},
            "The score of the suite “HR” fell by 5.2; at most 3 is allowed.",
        ),
        (
            {"name": "regression", "required": 0.05, "seen": 0.02},
            "The score fell, and chance does not explain it (p = 0.02).",
        ),
        (
            {"name": "regression", "required": 0, "seen": 1},
            "1 test passed in the baseline and no longer.",
        ),
        (
            {"name": "max-errors", "required": 0, "seen": 25},
            "25 trials broke off or could not be judged; at most 0 is allowed.",
        ),
        (
            {"name": "max-invalid-users", "required": 1, "seen": 2},
            "2 trials left out, since the simulated user broke its role twice; at most 1 is allowed.",
        ),
        (
            {"name": "max-cost", "required": 1.5, "seen": 2},
            "The run cost $2.00; at most $1.50 is allowed.",
        ),
        (
            {"name": "max-p95-latency", "required": 2, "seen": 3.5},
            "95 % of the replies came within 3.50 s; at most 2 s is allowed.",
        ),
        (
            {"name": "tag:slow", "required": 80, "seen": None, "note": "nothing of it was scored"},
            "tag:slow does not hold: nothing of it was scored.",
        ),
        (
            {"name": "fail-fast", "required": None, "seen": None, "note": "a trial failed"},
            "fail-fast does not hold: a trial failed.",
        ),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_a_broken_check_in_words(check, words):
    """Names of options stay out of it where the check can be told without."""
    assert gate.in_words(build.check(holds=False, **check)) == words


def test_a_score_of_which_little_was_decided_is_no_headline():
    """Neither on the console nor in summary, comment, page or badge; what was decided is said instead."""
    suite = build.suite_result("Refunds").model_copy(update={"score": 97.3, "decided_share": 0.31})
    results = build.results(suite, score=97.3, decided_share=0.31)
    said = "oo little was decided for a score (31 % of the criteria's weight)"
    headlines = (
        console.render(results).rpartition("\n\n")[2],
        console.render(results).partition("\n")[0],
        documents.summary(results).partition("|")[0],
        "".join(page.render(results, ALONE)).partition('<dl class="tiles">')[2].partition("</div>")[0],
    )
    for text in headlines:
        assert said in html.unescape(text)
        assert "97.3" not in text
    assert badge_of(results).message == "passed, mostly undecided"
    enough = results.model_copy(update={"decided_share": 0.5})
    assert "Score 97.3" in documents.summary(enough)
