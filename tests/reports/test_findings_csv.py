"""The findings of a run as CSV."""

import csv
import io

import builders as build

from ci_evals.domain.transcript import EndState
from ci_evals.reports import findings_csv
from ci_evals.reports.story.story import story_of


def rows_of(*tests) -> list[dict[str, str]]:
    text = "".join(findings_csv.render(story_of(build.results(build.suite_result("Refunds", *tests)))))
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_row_for_each_finding_of_each_trial():
    findings = (build.finding(criterion="One"), build.finding("failed", criterion="Two", reason="It, too."))
    trials = tuple(build.trial_result(number, findings=findings) for number in (1, 2))
    rows = rows_of(build.test_result("Refund", trials=trials))
    assert [(row["trial"], row["criterion"], row["outcome"]) for row in rows] == [
        ("1", "One", "passed"), ("1", "Two", "failed"), ("2", "One", "passed"), ("2", "Two", "failed"),
    ]  # fmt: skip
    assert rows[1]["reason"] == "It, too."
    assert {row["suite"] for row in rows} == {"Refunds"}


def test_errored_and_unplayed_tests_have_a_row():
    lost = build.trial_result(status=EndState.FAILED, findings=())
    rows = rows_of(
        build.test_result("Lost", trials=(lost,), outcome="error"),
        build.test_result("Never begun", trials=(), not_run=1, outcome="not_run"),
    )
    assert [(row["test"], row["testOutcome"], row["status"], row["outcome"]) for row in rows] == [
        ("Lost", "error", "failed", ""),
        ("Never begun", "not_run", "", ""),
    ]


def test_spreadsheet_formulas_are_escaped():
    finding = build.finding("failed", criterion="=HYPERLINK(1)", reason="-1+1")
    (row,) = rows_of(build.test_result("@x", trials=(build.trial_result(findings=(finding,)),)))
    assert (row["criterion"], row["reason"], row["test"]) == ("'=HYPERLINK(1)", "'-1+1", "'@x")
