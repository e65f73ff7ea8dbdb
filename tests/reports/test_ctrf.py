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
    found = json.loads("".join(ctrf.render(story_of(results))))
    validator().validate(found)
    return found


def of_tests(*tests, **fields):
    """The tests that the document of a run of these lists."""
    results = build.results(build.suite_result("Refunds", *tests), **fields)
    return document(results)["results"]["tests"]


@pytest.mark.parametrize("name", RUNS)
def test_every_run_is_valid_and_its_totals_are_those_of_its_tests(name):
    results = RUNS[name]()
    found = document(results)["results"]
    counted = [test["status"] for test in found["tests"]]
    summary = found["summary"]
    assert summary["tests"] == len(counted)
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert summary[status] == counted.count(status)
    assert summary["flaky"] == sum(test.get("flaky", False) for test in found["tests"])
    if results.gate.exit_code != Exit.PASSED:
        assert summary["failed"], "whoever counts failures alone would take it for a pass"
    assert found["environment"]["healthy"] is (results.gate.exit_code == Exit.PASSED)


def test_a_passed_test_has_its_place_and_no_message():
    (test,) = of_tests(build.test_result("Pays back", line=7, tags=("money",)))
    assert (test["name"], test["status"], test["suite"]) == ("Pays back", "passed", ["Refunds"])
    assert (test["filePath"], test["line"], test["tags"]) == ("evals/refunds.json", 7, ["money"])
    assert test["duration"] == 3500
    assert test["attachments"] == [
        {"name": "Conversations", "contentType": "text/html", "path": "report.html"}
    ]
    assert "message" not in test


def test_a_failed_test_has_one_line_and_the_whole_story():
    failed = build.finding("failed", reason="first line\nsecond line", evidence=(1,))
    (test,) = of_tests(build.test_result(trials=(build.trial_result(findings=(failed,)),)))
    assert test["status"] == "failed"
    assert test["message"] == "The refund workflow starts: first line second line"
    assert "user: I want my money back." in test["trace"]


@pytest.mark.parametrize("outcome", ["error", "undecided"])
def test_what_is_not_decided_is_other_and_never_passed(outcome):
    (test,) = of_tests(build.test_result(outcome=outcome, passed=False))
    assert (test["status"], test["rawStatus"]) == ("other", outcome)
    assert test["message"]


def test_a_test_whose_simulated_users_all_broke_character_is_other():
    trial = build.trial_result(status=EndState.INVALID_USER, findings=())
    (test,) = of_tests(build.test_result(trials=(trial,), outcome="undecided"))
    assert test["status"] == "other"
    assert test["message"].startswith("1 trial excluded: ")


def test_a_quarantined_or_left_out_test_is_skipped_and_one_that_never_began_is_other():
    quarantined = build.test_result(
        "a", quarantine=Quarantine(reason="broken upstream", until=date(2030, 1, 1))
    )
    left_out, planned = build.test_result("b", trials=()), build.test_result("c", trials=(), not_run=2)
    away, unplanned, unplayed = of_tests(quarantined, left_out, planned)
    assert [test["status"] for test in (away, unplanned, unplayed)] == ["skipped", "skipped", "other"]
    assert "broken upstream" in away["message"]


def test_a_flaky_test_says_so_with_each_trial():
    trials = (build.trial_result(), build.trial_result(2, findings=(build.finding("failed"),)))
    (test,) = of_tests(build.test_result(trials=trials))
    assert (test["status"], test["flaky"], test["retries"]) == ("failed", True, 0)
    assert [step["status"] for step in test["steps"]] == ["passed", "failed"]


def test_retries_are_the_attempts_that_broke_and_not_the_trials():
    broke, ended = Attempt(status=EndState.FAILED, error="timed out"), Attempt(status=EndState.COMPLETED)
    trials = (build.trial_result(), build.trial_result(2, attempts=(broke, ended)))
    (test,) = of_tests(build.test_result(trials=trials))
    assert (test["status"], test["retries"]) == ("passed", 1)
    assert test["retryAttempts"] == [
        {"attempt": 1, "status": "other", "message": "timed out", "extra": {"trial": 2}}
    ]


@pytest.mark.parametrize(
    ("decision", "why"), [(REFUSED, "Evals failed"), (NO_VERDICT, "too many errors")], ids=["failed", "none"]
)
def test_a_run_that_did_not_pass_has_a_failure_though_no_test_failed(decision, why):
    *_, own = of_tests(build.test_result(), gate=decision)
    assert (own["name"], own["status"], own["suite"]) == ("gate", "failed", ["ci-evals"])
    assert why in own["message"]


def test_a_run_without_a_verdict_has_a_failure_of_its_own_beside_a_failed_test():
    failed = build.test_result("bad", trials=(build.trial_result(findings=(build.finding("failed"),)),))
    unplayed = build.test_result("b", trials=(), not_run=1)
    *tests, own = of_tests(build.test_result("good"), failed, unplayed, gate=NO_VERDICT)
    assert [test["status"] for test in tests] == ["passed", "failed", "other"]
    assert (own["name"], own["status"]) == ("gate", "failed")


def test_a_run_that_failed_with_a_test_has_no_failure_of_its_own():
    failed = build.test_result(trials=(build.trial_result(findings=(build.finding("failed"),)),))
    (test,) = of_tests(failed, gate=REFUSED)
    assert test["name"] == failed.name


def test_a_run_under_way_is_a_failure():
    running = build.results(gate=NO_VERDICT, run=build.run_info(status="unfinished"))
    found = json.loads("".join(unfinished.files(running)[CTRF]))
    validator().validate(found)
    assert [test["status"] for test in found["results"]["tests"]] == ["failed"]
    assert found["results"]["summary"]["failed"] == 1
    assert found["results"]["environment"]["healthy"] is False


def test_a_compared_run_names_the_document_of_its_baseline():
    head = cases.made("proven")
    compared = document(head)["baseline"]["reportId"]
    earlier = replace(head, run=build.run_info(id=head.comparison.baseline.run_id))
    assert document(earlier)["reportId"] == compared
