"""CTRF as its schema and its readers see it."""

import json
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import builders as build
import cases
import comment_cases
import jsonschema
import pytest

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.suite import Quarantine
from ci_evals.domain.transcript import EndState
from ci_evals.reports import ctrf, unfinished
from ci_evals.reports.names import CTRF
from ci_evals.reports.story.story import story_of

SCHEMA = Path(__file__).parent / "schemas" / "ctrf-0.0.json"
RUNS = {
    **{name: (lambda name=name: cases.made(name)) for name in cases.CASES},
    "flaky": comment_cases.flaky,
    "skipped": comment_cases.skipped,
    "no baseline": comment_cases.no_baseline,
}
REFUSED = Decision(passed=False, exit_code=Exit.FAILED)
NO_VERDICT = Decision(passed=False, exit_code=Exit.INVALID, reasons=("too many errors",))


@cache
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads(SCHEMA.read_text())
    return jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())


def document(results):
    """The document of a run, which the published schema accepts."""
    result = json.loads("".join(ctrf.render(story_of(results))))
    validator().validate(result)
    return result


def ctrf_tests(*tests, **fields):
    """The tests in the document of a run of these tests."""
    results = build.results(build.suite_result("Refunds", *tests), **fields)
    return document(results)["results"]["tests"]


def failed_test(name="bad"):
    return build.test_result(name, trials=(build.trial_result(findings=(build.finding("failed"),)),))


@pytest.mark.parametrize("name", RUNS)
def test_document_of_every_run_is_valid_and_its_totals_add_up(name):
    results = RUNS[name]()
    result = document(results)["results"]
    counted = [test["status"] for test in result["tests"]]
    summary = result["summary"]
    assert summary["tests"] == len(counted)
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert summary[status] == counted.count(status)
    assert summary["flaky"] == sum(test.get("flaky", False) for test in result["tests"])
    if results.gate.exit_code != Exit.PASSED:
        assert summary["failed"], "whoever counts failures alone would take it for a pass"
    assert result["environment"]["healthy"] is (results.gate.exit_code == Exit.PASSED)


def test_ctrf_test_has_location_and_if_failed_one_line_message_and_conversation():
    (test,) = ctrf_tests(build.test_result("Pays back", line=7, tags=("money",)))
    assert (test["name"], test["status"], test["suite"]) == ("Pays back", "passed", ["Refunds"])
    assert (test["filePath"], test["line"], test["tags"]) == ("evals/refunds.json", 7, ["money"])
    assert test["duration"] == 3500
    report = {"name": "Conversations", "contentType": "text/html", "path": "report.html"}
    assert test["attachments"] == [report]
    assert "message" not in test
    failed = build.finding("failed", reason="first line\nsecond line", evidence=(1,))
    (test,) = ctrf_tests(build.test_result(trials=(build.trial_result(findings=(failed,)),)))
    assert test["status"] == "failed"
    assert test["message"] == "The refund workflow starts: first line second line"
    assert "user: I want my money back." in test["trace"]


def test_status_is_other_without_a_result_and_skipped_if_quarantined_or_unselected():
    for outcome in ("error", "undecided"):
        (test,) = ctrf_tests(build.test_result(outcome=outcome, passed=False))
        assert (test["status"], test["rawStatus"]) == ("other", outcome)
        assert test["message"]
    trial = build.trial_result(status=EndState.INVALID_USER, findings=())
    (test,) = ctrf_tests(build.test_result(trials=(trial,), outcome="undecided"))
    assert test["status"] == "other"
    assert test["message"].startswith("1 trial excluded: ")
    quarantine = Quarantine(reason="broken upstream", until=date(2030, 1, 1))
    quarantined, unselected, not_run = ctrf_tests(
        build.test_result("a", quarantine=quarantine),
        build.test_result("b", trials=()),
        build.test_result("c", trials=(), not_run=2),
    )
    assert [test["status"] for test in (quarantined, unselected, not_run)] == ["skipped", "skipped", "other"]
    assert "broken upstream" in quarantined["message"]


def test_flaky_test_has_status_of_each_trial_and_retries_count_failed_attempts():
    trials = (build.trial_result(), build.trial_result(2, findings=(build.finding("failed"),)))
    (test,) = ctrf_tests(build.test_result(trials=trials))
    assert (test["status"], test["flaky"], test["retries"]) == ("failed", True, 0)
    assert [step["status"] for step in test["steps"]] == ["passed", "failed"]
    broke, ended = Attempt(status=EndState.FAILED, error="timed out"), Attempt(status=EndState.COMPLETED)
    trials = (build.trial_result(), build.trial_result(2, attempts=(broke, ended)))
    (test,) = ctrf_tests(build.test_result(trials=trials))
    assert (test["status"], test["retries"]) == ("passed", 1)
    attempt = {"attempt": 1, "status": "other", "message": "timed out", "extra": {"trial": 2}}
    assert test["retryAttempts"] == [attempt]


def test_failed_gate_adds_a_failed_test_if_no_test_failed_or_there_is_no_verdict():
    for decision, reason in ((REFUSED, "Evals failed"), (NO_VERDICT, "too many errors")):
        *_, gate = ctrf_tests(build.test_result(), gate=decision)
        assert (gate["name"], gate["status"], gate["suite"]) == ("gate", "failed", ["ci-evals"])
        assert reason in gate["message"]
    (test,) = ctrf_tests(failed_test(), gate=REFUSED)
    assert test["name"] == "bad"
    unplayed = build.test_result("b", trials=(), not_run=1)
    *tests, gate = ctrf_tests(build.test_result("good"), failed_test(), unplayed, gate=NO_VERDICT)
    assert [test["status"] for test in tests] == ["passed", "failed", "other"]
    assert (gate["name"], gate["status"]) == ("gate", "failed")


def test_ctrf_report_of_unfinished_run_contains_a_failure():
    running = build.results(gate=NO_VERDICT, run=build.run_info(status="unfinished"))
    result = json.loads("".join(unfinished.files(running)[CTRF]))
    validator().validate(result)
    assert [test["status"] for test in result["results"]["tests"]] == ["failed"]
    assert result["results"]["summary"]["failed"] == 1
    assert result["results"]["environment"]["healthy"] is False


def test_compared_run_refers_to_the_document_of_its_baseline():
    head = cases.made("proven")
    compared = document(head)["baseline"]["reportId"]
    earlier = replace(head, run=build.run_info(id=head.comparison.baseline.run_id))
    assert document(earlier)["reportId"] == compared
