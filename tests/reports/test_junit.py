"""JUnit XML as its readers see it."""

import time
from xml.etree import ElementTree as ET

import builders as build
import cases
import comment_cases
import hostile_text
import junitparser
import pytest
from hypothesis import given, settings
from property_examples import examples

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports import junit, sanitize
from ci_evals.reports.story.story import story_of

NO_JUDGE = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge was configured")


def case_of(*tests) -> junitparser.TestCase:
    """The first test case that junitparser finds."""
    document = "".join(junit.render(story_of(build.results(build.suite_result("Refunds", *tests)))))
    return next(iter(next(iter(junitparser.JUnitXml.fromstring(document.encode())))))


def result_of(*findings, **fields):
    """What the reader takes the one test with these findings for."""
    trial = build.trial_result(findings=findings, **fields)
    found = case_of(build.test_result(trials=(trial,))).result
    assert len(found) < 2
    return found[0] if found else None


def test_a_passed_test_has_no_result_and_tells_its_verdicts():
    """Name, suite, place, time, and the verdicts in the output."""
    case = case_of(build.test_result("Pays back", line=7))
    assert (case.name, case.classname, case.time) == ("Pays back", "Refunds", 3.5)
    assert (case._elem.get("file"), case._elem.get("line")) == ("evals/refunds.json", "7")
    assert case.result == []
    assert "PASSED  The refund workflow starts (strict tool_used): because" in case.system_out


def test_a_failure_has_one_line_and_the_whole_story():
    """Some readers show the attribute, some the text: both are there."""
    failed = result_of(
        build.finding("failed", reason="first line\nsecond line", evidence=(1,)), build.finding()
    )
    assert isinstance(failed, junitparser.Failure)
    assert failed.message == "The refund workflow starts: first line second line"
    assert failed.type == "strict tool_used"
    assert "FAILED  The refund workflow starts (strict tool_used): first line\nsecond line" in failed.text
    assert "user: I want my money back." in failed.text
    assert "agent: I have started the refund." in failed.text


def test_a_judge_without_a_reason_still_fails_the_test():
    """A failure with an empty message would be dropped by writer and readers."""
    failed = result_of(build.finding("failed", criterion="Kind", reason=""))
    assert isinstance(failed, junitparser.Failure)
    assert failed.message == "Kind:"
    assert "no reason was given" in failed.text


@pytest.mark.parametrize(
    ("findings", "fields", "kind", "message"),
    [
        ((), {"status": EndState.FAILED, "error": "timed out"}, junitparser.Error, "failed: timed out"),
        ((), {"status": EndState.INTERRUPTED}, junitparser.Error, "interrupted"),
        (
            (),
            {
                "status": EndState.AGENT_ERROR,
                "turns": (build.turn(error_response=True, error_detail="overloaded"),),
            },
            junitparser.Error,
            "agent error: overloaded",
        ),
        (
            (build.finding("undecided", cause=Cause.NO_EVIDENCE, reason="no trace"),),
            {},
            junitparser.Error,
            "undecided: The refund workflow starts: no trace",
        ),
        ((NO_JUDGE,), {}, junitparser.Skipped, "no judge (1 undecided)"),
        ((NO_JUDGE, build.finding()), {}, junitparser.Skipped, "no judge (1 passed, 1 undecided)"),
        (
            (NO_JUDGE, build.finding("undecided", cause=Cause.NO_EVIDENCE, reason="no trace")),
            {},
            junitparser.Error,
            "undecided: The refund workflow starts: no judge was configured",
        ),
        (
            (NO_JUDGE, build.finding("failed", reason="no")),
            {},
            junitparser.Failure,
            "The refund workflow starts: no",
        ),
    ],
)
def test_trouble_is_told_apart(findings, fields, kind, message):
    """An agent that got worse is a failure, an instrument that broke an error, a missing judge a skip."""
    result = result_of(*findings, **fields)
    assert type(result) is kind
    assert result.message == message


@pytest.mark.parametrize(("planned", "kind"), [(0, junitparser.Skipped), (3, junitparser.Error)])
def test_a_test_that_never_began_is_an_error_and_one_that_was_left_out_is_skipped(planned, kind):
    """Neither passed nor failed."""
    case = case_of(build.test_result(trials=(), not_run=planned))
    assert [type(result) for result in case.result] == [kind]
    assert case.time == 0


def test_a_bundled_suite_has_no_file():
    """`demo:hr` is no path: readers would look for it in the repository."""
    suite = build.suite_result("HR", build.test_result(), file="demo:hr")
    case = ET.fromstring("".join(junit.render(story_of(build.results(suite))))).find(".//testcase")
    assert (case.get("file"), case.get("line")) == (None, None)
    assert case.get("classname") == "HR"


def test_totals_add_up():
    """Readers take the totals from the attributes."""
    failed = build.test_result("b", trials=(build.trial_result(findings=(build.finding("failed"),)),))
    lost = build.test_result(
        "c", trials=(build.trial_result(status=EndState.FAILED, error="x", findings=()),)
    )
    rest = build.test_result("d", trials=(), not_run=1)
    root = ET.fromstring(
        "".join(
            junit.render(
                story_of(
                    build.results(
                        build.suite_result("A", build.test_result("a"), failed),
                        build.suite_result("B", lost, rest),
                    )
                )
            )
        )
    )
    totals = ("tests", "failures", "errors", "skipped", "time")
    assert [root.get(name) for name in totals] == ["4", "1", "2", "0", "10.500"]
    assert [suite.get("tests") for suite in root] == ["2", "2"]
    assert root[0].get("timestamp") == "2026-11-21T09:30:00"


@pytest.mark.parametrize(
    ("code", "reasons", "errors"),
    [(Exit.PASSED, (), 0), (Exit.FAILED, (), 1), (Exit.INVALID, ("two judges disagree",), 1)],
)
def test_a_run_that_did_not_pass_is_never_all_green(code, reasons, errors):
    """Readers count test cases, and look at no properties."""
    gate = Decision(passed=code is Exit.PASSED, exit_code=code, reasons=reasons)
    root = ET.fromstring("".join(junit.render(story_of(build.results(gate=gate)))))
    assert root.get("errors") == str(errors)
    found = [case.get("name") for case in root.iter("testcase") if case.find("error") is not None]
    assert found == ["gate"] * errors
    items = [error.get("message") for error in root.iter("error")]
    assert all(reason in items[0] for reason in reasons)


@pytest.mark.parametrize(("never_began", "errors"), [(0, ["gate"]), (1, ["b"])])
def test_a_run_without_a_verdict_has_an_error_beside_a_failed_test(never_began, errors):
    """Its own, if no test has one. Who counts must not take one failed test of many for the whole."""
    failed = build.test_result("bad", trials=(build.trial_result(findings=(build.finding("failed"),)),))
    unplayed = [build.test_result("b", trials=(), not_run=1)] * never_began
    suite = build.suite_result("Refunds", build.test_result("good"), failed, *unplayed)
    gate = Decision(passed=False, exit_code=Exit.INVALID, reasons=("too many errors",))
    root = ET.fromstring("".join(junit.render(story_of(build.results(suite, gate=gate)))))
    assert [case.get("name") for case in root.iter("testcase") if case.find("error") is not None] == errors
    assert [root.get(name) for name in ("failures", "errors", "skipped")] == ["1", "1", "0"]


def test_two_suites_of_one_name_stay_two():
    """Readers drop test cases of the same class and name."""
    suites = [build.suite_result("Refunds", file=file) for file in ("a.json", "b.json", "b.json")]
    root = ET.fromstring("".join(junit.render(story_of(build.results(*suites)))))
    assert [suite.get("name") for suite in root] == [
        "Refunds (a.json)",
        "Refunds (b.json)",
        "Refunds (b.json) (2)",
    ]


def test_long_texts_are_cut():
    """A reason has 4 KB, a test's conversations 16 KB, and both say that there is more."""
    long = build.turn(agent="word " * 10_000)
    trial = build.trial_result(turns=(long,), findings=(build.finding("failed", reason="x" * 10_000),))
    case = case_of(build.test_result(trials=(trial,)))
    assert len(case.result[0].text) < 9_500
    assert len(case.system_out) < 17_500
    assert case.result[0].text.count(sanitize.CUT_NOTE) == 2
    assert case.system_out.endswith(sanitize.CUT_NOTE)


def test_conversations_are_shown_as_far_as_there_is_room():
    """Those of the first trials, with what no place can show taken out before it is measured."""
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
def test_any_text_comes_back_from_the_file(name, reason):
    """Whatever names and reasons hold, the file parses and gives them back cleaned."""
    trial = build.trial_result(findings=(build.finding("failed", reason=reason),))
    results = build.results(build.suite_result(name, build.test_result(name, trials=(trial,))))
    case = ET.fromstring("".join(junit.render(story_of(results))).encode())[0].find("testcase")
    assert case.get("name") == sanitize.xml(sanitize.one_line(name))
    assert case.get("classname", "") == sanitize.xml(sanitize.one_line(name))
    assert sanitize.xml(reason) in case.find("failure").text


def properties(suite) -> dict[str, str]:
    return {one.get("name"): one.get("value") for one in suite.find("properties")}


def test_the_baseline_stands_in_the_suites_properties():
    """Score and change of the suite with their intervals, and which commit it is held against."""
    refunds = ET.fromstring("".join(junit.render(story_of(cases.unproven()))))[0]
    result = properties(refunds)
    assert result == {
        "score": "88.8",
        "interval-low": "67.6",
        "interval-high": "96.8",
        "pass-hat-3": "0.5",
        "compared-score": "88.8",
        "baseline-score": "94.4",
        "delta": "-5.6",
        "delta-low": "-18.4",
        "delta-high": "+5.5",
        "p": "0.315",
        "baseline-commit": cases.BASE_COMMIT,
        "agent": "agent-1",
        "adapter": "aui",
        "run-score": "88.8",
        "run-delta": "-5.6",
        "run-p": "0.315",
        "run-detectable-drop": "15.5",
        "run-odds": "0.5685",
        "run-cost-usd": "0.3123",
        "gate": "failed",
        "gate-failed": "min-score, max-drop",
    }
    assert "delta" not in properties(ET.fromstring("".join(junit.render(story_of(cases.incomparable()))))[0])


def test_the_runs_own_facts_stand_in_each_suite():
    """Also how the run stands where the gate does not tell."""
    unsure, *_ = ET.fromstring("".join(junit.render(story_of(cases.unsure()))))
    assert properties(unsure)["gate"] == "passed"
    assert "gate-failed" not in properties(unsure)
    both = [properties(suite) for suite in ET.fromstring("".join(junit.render(story_of(cases.proven()))))]
    assert {fields["run-score"] for fields in both} == {"78.3"}
    assert [fields["compared-score"] for fields in both] == ["66.6", "70.0"]
    (lost,) = ET.fromstring("".join(junit.render(story_of(cases.invalid()))))
    assert properties(lost)["gate"] == "no verdict"


def test_a_newly_failing_test_says_that_it_passed():
    """In its text, which is what every reader shows; a test that failed before does not."""
    document = ET.fromstring("".join(junit.render(story_of(cases.unproven()))))
    texts = {case.get("name"): case.findtext("failure") for case in document.iter("testcase")}
    assert texts["Refund too late"].startswith(f"It passed in the baseline (commit {cases.BASE_COMMIT}).\n")
    assert "passed in the baseline" not in texts["Wrong size"]
    undecided = ET.fromstring("".join(junit.render(story_of(cases.proven())))).find(
        ".//testcase[@name='Lost parcel']/error"
    )
    assert undecided.text.startswith("It passed in the baseline.\n")


def test_a_skipped_run_says_why_at_each_test():
    """Readers show skipped tests with their message; nothing failed, and nothing passed."""
    root = ET.fromstring("".join(junit.render(story_of(comment_cases.skipped()))))
    texts = [case.find("skipped").get("message") for case in root.iter("testcase")]
    assert texts == [f"Evals skipped: {comment_cases.skipped().run.stopped_because}"] * 13
    assert (root.get("tests"), root.get("skipped"), root.get("failures"), root.get("errors")) == (
        "13",
        "13",
        "0",
        "0",
    )
    assert 'name="gate" value="skipped"' in "".join(junit.render(story_of(comment_cases.skipped())))


@pytest.mark.slow
def test_many_trials_take_no_longer_than_few_at_a_time():
    """A cancelled job has seconds for its reports: four times the trials take four times as long."""

    def seconds(trials: int) -> float:
        failing = build.finding("failed")
        test = build.test_result(
            trials=tuple(build.trial_result(index, findings=(failing,) * 5) for index in range(1, trials + 1))
        )
        results = build.results(build.suite_result("Refunds", test))
        began = time.process_time()
        "".join(junit.render(story_of(results)))
        return time.process_time() - began

    few = min(seconds(250) for _ in range(3))
    assert min(seconds(1000) for _ in range(3)) < 9 * few
