"""The sentences on failed checks, for somebody who has never seen their options."""

import html
from dataclasses import replace

import builders as build
from each_row import each_row

from ci_evals.domain.base import Interval
from ci_evals.reports import console
from ci_evals.reports.badge import badge_of
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story import gate
from ci_evals.reports.story.story import story_of


@each_row(("name", "required", "seen", "fields", "sentence"), [
    ("min-score", 80, 78.96, {"interval": Interval(low=70, high=85)},
     "the score is 78, at least 80 required"),
    (*("tag:safety", 9, 99, {"seen_if_undecided_failed": 5}),
     "the score of the tag “safety” is 5 if undecided counts as failed, at least 9 required"),
    (*("critical:Never: a discount", 100, 0, {"note": "trials passed: 0 of 3"}),
     "the critical test “Never: a discount” failed"),
    ("max-drop", 3, 5.16, {}, "the score fell by 6, at most 3 allowed"),
    ("max-drop suite:HR", 3, 5.16, {}, "the score of the suite “HR” fell by 6, at most 3 allowed"),
    ("regression", 0.05, 0.02, {}, "the score fell by more than chance explains"),
    ("regression", 0, 1, {}, "1 test passed in the baseline and no longer"),
    ("max-errors", 0, 25, {}, "25 trials errored or could not be judged, at most 0 allowed"),
    (*("max-invalid-users", 1, 2, {}),
     "2 trials excluded, since the simulated user broke character twice, at most 1 allowed"),
    ("max-cost", 1.5, 2, {}, "the run cost $2.00, at most $1.50 allowed"),
    ("max-p95-latency", 2, 3.5, {}, "95 % of the replies took up to 3.50 s, at most 2 s allowed"),
    ("tag:slow", 80, None, {"note": "nothing was scored"}, "tag:slow: nothing was scored"),
    ("fail-fast", None, None, {"note": "a trial failed"}, "fail-fast: a trial failed"),
])  # fmt: skip
def test_failed_check_is_described_in_words(name, required, seen, fields, sentence):
    check = build.check(name, required, seen, passed=False, **fields)
    assert gate.failure(check, build.results()) == sentence


def test_score_of_mostly_undecided_run_is_left_out_of_headings_and_badge():
    suite = replace(build.suite_result("Refunds"), score=97.3, decided_share=0.31)
    results = build.results(suite, score=97.3, decided_share=0.31)
    output = "oo little was decided for a score (31 % of the criteria's weight)"
    story = story_of(results)
    for text in (
        console.render(story).partition("Evals passed")[2],
        console.render(story).partition("\n")[0],
        documents.summary(story).partition("|")[0],
        "".join(page.render(story)).partition('<p class="lead">')[2].partition("</p>")[0],
    ):
        assert output in html.unescape(text)
        assert "97.3" not in text
    assert badge_of(story).message == "passed, mostly undecided"
    half, more = (replace(results, decided_share=share) for share in (0.5, 0.51))
    assert "Score 97.3" not in documents.summary(story_of(half))
    assert "Score 97.3" in documents.summary(story_of(more))
