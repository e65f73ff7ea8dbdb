"""CTRF reports of several runners become rows, and so do our own."""

import json
from typing import Any

import builders as build
import pytest
from each_row import each_row
from tool_results import ERROR, FAILED, PASSED, SKIPPED, outcomes_by_test, read_set, row_of

from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.transcript import EndState
from ci_evals.extension_support.result_files.result_rows import ResultSet
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.reading import read_file
from ci_evals.reports import ctrf
from ci_evals.reports.story.story import story_of


def totals(*tests: dict[str, Any]) -> dict[str, Any]:
    statuses, names = [test["status"] for test in tests], ("passed", "failed", "skipped", "pending", "other")
    return {"tests": len(tests), **{name: statuses.count(name) for name in names}}


def report(*tests: dict[str, Any], summary: dict[str, Any] | None = None, **more: Any) -> str:
    stated = totals(*tests) | (summary or {})
    results = {"tool": {"name": "tool"}, "summary": stated, "tests": tests, **more}
    return json.dumps({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results})


def entry(status: str, name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "duration": 1500, **fields}


def read(text: str) -> ResultSet:
    reader, (result,) = read_file(SourceFile("ctrf.json", text.encode()))
    assert reader.format == "ctrf"
    return result


def test_jest_report_is_read():
    results = read_set("ctrf/jest.json")
    assert results.suite == "jest"
    assert not results.contradictions
    assert outcomes_by_test(results) == {
        "a.test.js › adds": [PASSED], "a.test.js › fails": [FAILED], "a.test.js › skipped": [SKIPPED],
        "a.test.js › to do": [SKIPPED], "a.test.js › outer inner": [PASSED],
    }  # fmt: skip
    assert row_of(results, "a.test.js › fails").reason.startswith("Error: expect(received).toBe(expected)")
    assert row_of(results, "a.test.js › adds").seconds == 0.007


@pytest.mark.parametrize(("tool", "outer"), [("vitest", "outer > inner"), ("mocha", "outer adds")])
def test_rerun_test_has_its_counted_failure_before_its_pass(tool, outer):
    results = read_set(f"ctrf/{tool}.json")
    assert not results.contradictions
    result = outcomes_by_test(results)
    assert result[outer] == [PASSED]
    (flaky,) = (of for name, of in result.items() if "flaky" in name)
    assert flaky == [FAILED, PASSED]


def test_unknown_ctrf_statuses_are_errors():
    known = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED, "pending": SKIPPED, "other": ERROR}
    results = read(report(*(entry(status, status) for status in [*known, "PASSED"])))
    expected = known | {"PASSED": ERROR}
    assert outcomes_by_test(results) == {name: [outcome] for name, outcome in expected.items()}
    assert row_of(results, "PASSED").reason == "its status is 'PASSED'"
    assert outcomes_by_test(read(report(entry("other", rawStatus=[])))) == {"a": [ERROR]}


def test_ctrf_attempts_and_flaky_flag_become_trials():
    attempts = [{"attempt": 1, "status": "failed", "message": "no"}, {"attempt": 2, "status": "other"}]
    results = read(report(entry("passed", retries=2, retryAttempts=attempts, flaky=True)))
    assert (outcomes_by_test(results), row_of(results, "a").reason) == ({"a": [FAILED, ERROR, PASSED]}, "no")
    assert outcomes_by_test(read(report(entry("passed", flaky=True)))) == {"a": [FAILED, PASSED]}


def test_ctrf_suites_become_part_of_names_and_groups():
    results = read(report(entry("passed", suite=["x", "y"]), entry("failed", suite=["x", "z"])))
    assert outcomes_by_test(results) == {"x › y › a": [PASSED], "x › z › a": [FAILED]}
    assert row_of(results, "x › y › a").groups == ("x",)


@each_row(("summary", "message"), [
    ({"tests": 2}, "summary.tests is 2, and the list of tests has 1."),
    ({"failed": 1}, "summary.failed is 1, and the list of tests has 0."),
    ({"passed": 0}, "summary.passed is 0, and the list of tests has 1."),
    ({"other": 3}, "summary.other is 3, and the list of tests has 0."),
    ({"tests": 5.0}, "summary.tests is 5, and the list of tests has 1."),
    ({"tests": 5.5}, "summary.tests is 5.5, which is no count."),
    ({"tests": "5"}, "summary.tests is '5', which is no count."),
    ({"tests": {}}, "summary.tests is dict, which is no count."),
    ({"tests": None}, "summary.tests is None, which is no count."),
    ({"passed": True}, "summary.passed is True, which is no count."),
    ({"failed": -1}, "summary.failed is -1, which is no count."),
])  # fmt: skip
def test_total_contradicted_by_tests_is_reported(summary, message):
    assert read(report(entry("passed"), summary=summary)).contradictions == (message,)


def test_missing_total_and_bad_environment_or_exit_code_are_contradictions():
    document = json.loads(report(entry("passed")))
    del document["results"]["summary"]["tests"]
    message = "summary.tests is missing, and the list of tests has 1."
    assert read(json.dumps(document)).contradictions == (message,)
    assert not read(report(entry("passed"), summary={"tests": 1.0})).contradictions
    unhealthy = {"environment": {"healthy": False}}
    assert read(report(entry("passed"), **unhealthy)).contradictions
    assert not read(report(entry("passed"), entry("failed", "b"), **unhealthy)).contradictions
    decision = Decision(passed=False, exit_code=Exit.INVALID, reasons=("too many errors",))
    results = read("".join(ctrf.render(story_of(build.results(gate=decision)))))
    assert outcomes_by_test(results)["ci-evals › gate"] == [FAILED]
    assert results.contradictions == ("extra.exitCode is 3: the run has no verdict.",)
    assert not read(report(entry("passed"), extra={"exitCode": 3})).contradictions


@pytest.mark.parametrize(("fields", "reason"), [
    ({"retries": "1"}, "retries is '1', which is no count"),
    ({"retries": [1]}, "retries is list, which is no count"),
    ({"retries": 0.5}, "retries is 0.5, which is no count"),
    ({"flaky": "yes"}, "flaky is 'yes', which is neither true nor false"),
    ({"flaky": 1}, "flaky is 1, which is neither true nor false"),
])  # fmt: skip
def test_invalid_retry_or_flaky_field_makes_its_test_an_error(fields, reason):
    results = read(report(entry("passed", **fields), entry("passed", "b")))
    assert (outcomes_by_test(results), row_of(results, "a").reason) == ({"a": [ERROR], "b": [PASSED]}, reason)


@pytest.mark.parametrize(("text", "message"), [
    (report(entry("passed", name="")), "the test has no name"),
    (report({"name": ["a"], "status": "passed"}), "is broken: the name of a test is not a name but list"),
    (report(entry("passed", retries=10**9)), "retries of 'a' is 1,000,000,000"),
    (report(), "has no rows"),
])  # fmt: skip
def test_broken_ctrf_report_is_refused_with_the_reason(text, message):
    with pytest.raises(UsageError, match=message):
        read(text)


def test_own_report_is_read_with_the_same_outcomes():
    failed = build.trial_result(findings=(build.finding("failed", reason="no refund"),))
    broke, ended = Attempt(status=EndState.FAILED, error="timed out"), Attempt(status=EndState.COMPLETED)
    suite = build.suite_result(
        "Refunds", build.test_result("good"), build.test_result("bad", trials=(failed,)),
        build.test_result("unknown", outcome="undecided", passed=False),
        build.test_result("left out", trials=()), build.test_result("unplayed", trials=(), not_run=1),
        build.test_result("rerun", trials=(build.trial_result(attempts=(broke, ended)),)),
        build.test_result("unsteady", flaky=True),
    )  # fmt: skip
    results = read("".join(ctrf.render(story_of(build.results(suite)))))
    assert not results.contradictions
    assert outcomes_by_test(results) == {
        "Refunds › good": [PASSED], "Refunds › bad": [FAILED], "Refunds › unknown": [ERROR],
        "Refunds › left out": [SKIPPED], "Refunds › unplayed": [ERROR], "Refunds › rerun": [PASSED],
        "Refunds › unsteady": [PASSED],
    }  # fmt: skip
    assert "no refund" in row_of(results, "Refunds › bad").reason
