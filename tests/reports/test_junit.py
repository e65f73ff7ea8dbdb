"""JUnit XML as its readers see it."""

import time
from xml.etree import ElementTree as ET

import builders as build
import cases
import comment_cases
import hostile_text
import junitparser
import pytest
from each_row import each_row
from hypothesis import given, settings
from property_examples import examples

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports import junit, sanitize
from ci_evals.reports.story.story import story_of

NO_JUDGE = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge was configured")
NO_TRACE = build.finding("undecided", cause=Cause.NO_EVIDENCE, reason="no trace")
CRITERION = "The refund workflow starts"


def xml_of(results) -> ET.Element:
    return ET.fromstring("".join(junit.render(story_of(results))))


def case_of(*tests) -> junitparser.TestCase:
    """The first test case that junitparser finds."""
    document = "".join(junit.render(story_of(build.results(build.suite_result("Refunds", *tests)))))
    return next(iter(next(iter(junitparser.JUnitXml.fromstring(document.encode())))))


def failed_test(name: str):
    return build.test_result(name, trials=(build.trial_result(findings=(build.finding("failed"),)),))


def errored_cases(root: ET.Element) -> list[str]:
    return [case.get("name") for case in root.iter("testcase") if case.find("error") is not None]


def result_of(*findings, **fields):
    """The result that the reader gives the one test with these findings."""
    trial = build.trial_result(findings=findings, **fields)
    result = case_of(build.test_result(trials=(trial,))).result
    assert len(result) < 2
    return result[0] if result else None


def test_passed_test_has_its_findings_in_the_output():
    case = case_of(build.test_result("Pays back", line=7))
    assert (case.name, case.classname, case.time) == ("Pays back", "Refunds", 3.5)
    assert (case._elem.get("file"), case._elem.get("line")) == ("evals/refunds.json", "7")
    assert case.result == []
    assert "PASSED  The refund workflow starts (strict tool_used): because" in case.system_out


def test_failure_has_a_one_line_message_even_without_a_reason_and_the_full_text():
    """A failure with an empty message would be dropped by writer and readers."""
    finding = build.finding("failed", reason="first line\nsecond line", evidence=(1,))
    failed = result_of(finding, build.finding())
    assert isinstance(failed, junitparser.Failure)
    assert failed.message == "The refund workflow starts: first line second line"
    assert failed.type == "strict tool_used"
    assert "FAILED  The refund workflow starts (strict tool_used): first line\nsecond line" in failed.text
    assert "user: I want my money back." in failed.text
    assert "agent: I have started the refund." in failed.text
    failed = result_of(build.finding("failed", criterion="Kind", reason=""))
    assert isinstance(failed, junitparser.Failure)
    assert failed.message == "Kind:"
    assert "no reason was given" in failed.text


@each_row(("findings", "fields", "kind", "message"), [
    ((), {"status": EndState.FAILED, "error": "timed out"}, junitparser.Error, "failed: timed out"),
    ((), {"status": EndState.INTERRUPTED}, junitparser.Error, "interrupted"),
    ((), {"status": EndState.AGENT_ERROR}
     | {"turns": (build.turn(error_response=True, error_detail="overloaded"),)}, junitparser.Error,
     "agent error: overloaded"),
    ((NO_TRACE,), {}, junitparser.Error, f"undecided: {CRITERION}: no trace"),
    ((NO_JUDGE,), {}, junitparser.Skipped, "no judge (1 undecided)"),
    ((NO_JUDGE, build.finding()), {}, junitparser.Skipped, "no judge (1 passed, 1 undecided)"),
    ((NO_JUDGE, NO_TRACE), {}, junitparser.Error, f"undecided: {CRITERION}: no judge was configured"),
    ((NO_JUDGE, build.finding("failed", reason="no")), {}, junitparser.Failure, f"{CRITERION}: no"),
])  # fmt: skip
def test_failures_errors_and_missing_judges_have_different_results(findings, fields, kind, message):
    result = result_of(*findings, **fields)
    assert type(result) is kind
    assert result.message == message


@each_row(("planned", "kind"), [(0, junitparser.Skipped), (3, junitparser.Error)])
def test_unselected_test_is_skipped_and_test_that_did_not_run_is_an_error(planned, kind):
    case = case_of(build.test_result(trials=(), not_run=planned))
    assert [type(result) for result in case.result] == [kind]
    assert case.time == 0


def test_junit_totals_are_summed_over_all_suites():
    lost = build.trial_result(status=EndState.FAILED, error="x", findings=())
    first = build.suite_result("A", build.test_result("a"), failed_test("b"))
    unplayed = build.test_result("d", trials=(), not_run=1)
    second = build.suite_result("B", build.test_result("c", trials=(lost,)), unplayed)
    root = xml_of(build.results(first, second))
    totals = ("tests", "failures", "errors", "skipped", "time")
    assert [root.get(name) for name in totals] == ["4", "1", "2", "0", "10.500"]
    assert [suite.get("tests") for suite in root] == ["2", "2"]
    assert root[0].get("timestamp") == "2026-11-21T09:30:00"


def test_gate_that_did_not_pass_adds_an_errored_case_unless_another_case_errored():
    for code, reasons in ((Exit.PASSED, ()), (Exit.FAILED, ()), (Exit.INVALID, ("two judges disagree",))):
        gate = Decision(passed=code is Exit.PASSED, exit_code=code, reasons=reasons)
        root = xml_of(build.results(gate=gate))
        errors = code is not Exit.PASSED
        assert (root.get("errors"), errored_cases(root)) == (str(int(errors)), ["gate"] * errors)
        messages = [error.get("message") for error in root.iter("error")]
        assert all(reason in messages[0] for reason in reasons)
    gate = Decision(passed=False, exit_code=Exit.INVALID, reasons=("too many errors",))
    unplayed = build.test_result("b", trials=(), not_run=1)
    for never_began, errored in (((), ["gate"]), ((unplayed,), ["b"])):
        suite = build.suite_result("Refunds", build.test_result("good"), failed_test("bad"), *never_began)
        root = xml_of(build.results(suite, gate=gate))
        assert errored_cases(root) == errored
        assert [root.get(name) for name in ("failures", "errors", "skipped")] == ["1", "1", "0"]


def test_bundled_suite_has_no_file_or_line_in_junit():
    bundled = build.results(build.suite_result("HR", build.test_result(), file="demo:hr"))
    case = xml_of(bundled).find(".//testcase")
    assert (case.get("file"), case.get("line"), case.get("classname")) == (None, None, "HR")


def test_equally_named_suites_have_distinct_names_in_junit():
    suites = [build.suite_result("Refunds", file=file) for file in ("a.json", "b.json", "b.json")]
    names = [suite.get("name") for suite in xml_of(build.results(*suites))]
    assert names == ["Refunds (a.json)", "Refunds (b.json)", "Refunds (b.json) (2)"]


def test_junit_cuts_reasons_and_conversations_at_limit_of_visible_text_with_a_note():
    long = build.turn(agent="word " * 10_000)
    trial = build.trial_result(turns=(long,), findings=(build.finding("failed", reason="x" * 10_000),))
    case = case_of(build.test_result(trials=(trial,)))
    assert len(case.result[0].text) < 9_500
    assert len(case.system_out) < 17_500
    assert case.result[0].text.count(sanitize.CUT_NOTE) == 2
    assert case.system_out.endswith(sanitize.CUT_NOTE)
    turn = build.turn(agent="word " * 300 + "\u200b" * 5_000)
    trials = tuple(build.trial_result(number, turns=(turn,)) for number in range(1, 31))
    few = case_of(build.test_result(trials=trials[:10])).system_out
    assert "Conversation of trial 10" in few
    assert sanitize.CUT_NOTE not in few
    many = case_of(build.test_result(trials=trials)).system_out
    assert "Conversation of trial 10" in many
    assert "Conversation of trial 12" not in many
    assert many.endswith(sanitize.CUT_NOTE)


@settings(max_examples=examples(60))
@given(hostile_text.any_text, hostile_text.any_text)
def test_any_text_survives_the_round_trip_sanitized(name, reason):
    trial = build.trial_result(findings=(build.finding("failed", reason=reason),))
    results = build.results(build.suite_result(name, build.test_result(name, trials=(trial,))))
    case = xml_of(results)[0].find("testcase")
    assert case.get("name") == sanitize.xml(sanitize.one_line(name))
    assert case.get("classname", "") == sanitize.xml(sanitize.one_line(name))
    assert sanitize.xml(reason) in case.find("failure").text


def properties(suite) -> dict[str, str]:
    return {one.get("name"): one.get("value") for one in suite.find("properties")}


def test_junit_suite_properties_have_gate_and_scores_and_if_compared_the_change():
    """All properties are in the golden files."""
    compared = properties(xml_of(cases.unproven())[0])
    assert (compared["delta"], compared["delta-low"], compared["delta-high"]) == ("-5.6", "-18.4", "+5.5")
    assert compared["baseline-commit"] == cases.BASE_COMMIT
    assert compared["gate-failed"] == "min-score, max-drop"
    assert "delta" not in properties(xml_of(cases.incomparable())[0])
    unsure, *_ = xml_of(cases.unsure())
    assert properties(unsure)["gate"] == "passed"
    assert "gate-failed" not in properties(unsure)
    both = [properties(suite) for suite in xml_of(cases.proven())]
    assert {fields["run-score"] for fields in both} == {"78.3"}
    assert [fields["compared-score"] for fields in both] == ["66.6", "70.0"]
    (lost,) = xml_of(cases.invalid())
    assert properties(lost)["gate"] == "no verdict"


def test_only_newly_failing_test_says_that_it_passed_in_the_baseline():
    texts = {case.get("name"): case.findtext("failure") for case in xml_of(cases.unproven()).iter("testcase")}
    assert texts["Refund too late"].startswith(f"It passed in the baseline (commit {cases.BASE_COMMIT}).\n")
    assert "passed in the baseline" not in texts["Wrong size"]
    undecided = xml_of(cases.proven()).find(".//testcase[@name='Lost parcel']/error")
    assert undecided.text.startswith("It passed in the baseline.\n")


def test_skipped_run_gives_the_reason_at_each_test():
    root = xml_of(comment_cases.skipped())
    reasons = [case.find("skipped").get("message") for case in root.iter("testcase")]
    assert reasons == [f"Evals skipped: {comment_cases.skipped().run.stopped_because}"] * 13
    totals = ("tests", "skipped", "failures", "errors")
    assert [root.get(name) for name in totals] == ["13", "13", "0", "0"]
    assert properties(root[0])["gate"] == "skipped"


@pytest.mark.slow
def test_junit_rendering_time_grows_linearly_with_trials():
    def seconds(trials: int) -> float:
        failing = (build.finding("failed"),) * 5
        played = tuple(build.trial_result(index, findings=failing) for index in range(1, trials + 1))
        results = build.results(build.suite_result("Refunds", build.test_result(trials=played)))
        began = time.process_time()
        "".join(junit.render(story_of(results)))
        return time.process_time() - began

    few = min(seconds(250) for _ in range(3))
    assert min(seconds(1000) for _ in range(3)) < 9 * few
