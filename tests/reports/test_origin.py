"""Results whose conversations were held in an earlier run say so, first of all."""

from dataclasses import replace
from datetime import UTC, datetime

import builders as build
import cases
import pytest
import report_texts

from ci_evals.domain.results.run import Origin
from ci_evals.reports import console
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.story.story import story_of

AT = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
SENTENCES = {
    "replay": "Replayed from a recording of 2026-11-20 09:30 UTC: no agent and no model was called.",
    "rejudge": "Judged again: the conversations are from the run of 2026-11-20 09:30 UTC; "
    "no agent was called.",
}


def reports(results):
    """Every report in words, by its name."""
    files = report_texts.files_of_run(results)
    return {name: text for name, text in files.items() if not name.endswith(".json")} | {
        "comment": comment.render(story_of(results), comment.SummaryContext()),
        "step summary": documents.step_summary(story_of(results), 100_000),
        "compare, Markdown": documents.comparison(story_of(results)),
        "compare, text": console.comparison(story_of(results)),
        "console": console.render(story_of(results)),
    }


def with_origin(results, how):
    origin = Origin(how=how, run="run-0", started_at=AT)
    return replace(results, run=replace(results.run, origin=origin))


@pytest.mark.parametrize("how", SENTENCES)
@pytest.mark.parametrize("case", ["good", "bad", "invalid"])
def test_every_report_names_the_origin_of_its_conversations(case, how):
    results = cases.CASES[case]()
    assert not [name for name, text in reports(results).items() if SENTENCES[how][:20] in text]
    found = reports(with_origin(results, how))
    for name in ("console", "compare, text"):
        text = found.pop(name)
        assert f"\n  {SENTENCES[how]}\n" in text, name
    assert f'<property name="run-origin" value="{SENTENCES[how]}"' in found.pop("junit.xml")
    below_the_verdict = found.pop("report.html").split("</h1>")[1]
    assert f"<li>{SENTENCES[how]}" in below_the_verdict[:1000]
    assert len(found) > 5
    for name, text in found.items():
        lines = [line for line in text.splitlines() if line]
        assert [line for line in lines[1:7] if SENTENCES[how] in line], name


def test_skipped_run_names_the_origin_of_its_conversations():
    results = with_origin(build.results(run=build.run_info(status="skipped")), "replay")
    assert SENTENCES["replay"] in console.render(story_of(results))
    assert SENTENCES["replay"] in comment.render(story_of(results), comment.SummaryContext())
