"""Which files a run makes, under which names, and that a results file reads back as it was."""

import csv
import io
import json
import re
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import PurePosixPath

import builders as build
import cases
import hostile_text
import pytest
import report_texts
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState
from ci_evals.reports import findings_csv, report_files
from ci_evals.reports.names import folder_for, numbered
from ci_evals.reports.story.story import story_of
from ci_evals.support import dataclass_json

STAMP = "2026-11-21T09-30-00Z"


def run_of_trial(trial, name: str = "Refund", **fields) -> Results:
    """A run of one test of one trial."""
    return build.results(build.suite_result("Refunds", build.test_result(name, trials=(trial,), **fields)))


def test_run_writes_a_folder_per_suite_and_shared_reports():
    assert sorted(report_texts.files_of_run(cases.bad())) == [
        f"Exchanges/{STAMP}/Exchange-for-another-size.md", f"Exchanges/{STAMP}/_results.json",
        f"Exchanges/{STAMP}/_summary.md", f"Refunds/{STAMP}/Refund-after-the-window.md",
        f"Refunds/{STAMP}/Refund-for-a-cancelled-order.md", f"Refunds/{STAMP}/_results.json",
        f"Refunds/{STAMP}/_summary.md", "_results.json", "ctrf.json", "junit.xml", "report.html",
        "summary.md",
    ]  # fmt: skip


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.one_of(
            hostile_text.any_text, st.sampled_from(["_summary", "_results", "a", "A", "ß", "SS", "con"])
        ),
        max_size=6,
    )
)
def test_test_files_have_unique_and_valid_names(names):
    tests = [build.test_result(name) for name in names]
    files = report_texts.files_of_run(build.results(build.suite_result("Refunds", *tests)))
    count = max(len(tests), 1)
    assert len({path.casefold() for path in files}) == len(files) == 5 + 2 + count
    for path in files:
        for part in PurePosixPath(path).parts:
            assert part not in {"", ".", ".."}
            assert len(part.encode()) <= 100
            assert not re.search(r'[":<>|*?\\/\x00-\x1f]', part)
            assert not part.startswith(".")
            assert not part.endswith((".", " "))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
NASTY = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text() | st.integers(2**64, 2**200),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(100))
@given(NASTY, hostile_text.any_text, st.floats(0, 100), st.floats(0, 1e9))
def test_results_file_survives_the_round_trip(value, text, score, seconds):
    turn = build.turn(agent=text, trace={"a": value}, raw=value, latency_seconds=seconds)
    run = run_of_trial(build.trial_result(turns=(turn,)), text, score=score)
    written = report_texts.results_json_text(run)
    written.encode()
    assert report_texts.results_json_text(report_files.load(written, "x")) == written


@pytest.mark.parametrize("name", cases.CASES)
def test_results_file_is_json_and_reads_back_as_the_same_results(name):
    results = cases.CASES[name]()
    written = report_texts.results_json_text(results)
    assert written == dataclass_json.to_json(results, indent=2) + "\n"
    assert report_texts.results_json_text(packed(results)) == written
    assert report_files.load(written, "x") == results
    keys = {"schemaVersion", "tool", "run", "score", "counts", "gate", "usage", "suites"}
    assert keys <= json.loads(written).keys()


def test_deep_traces_and_agent_data_with_keys_of_results_are_written_unchanged():
    trace = []
    for _ in range(240):
        trace = [trace]
    deep = run_of_trial(build.trial_result(turns=(build.turn(trace=trace),)))
    written = report_texts.results_json_text(deep)
    assert report_texts.results_json_text(report_files.load(written, "x")) == written
    odd = {"suites": [], "tests": [], "trials": [], "turns": [], "x": ['\n  "turns": []', {"trials": []}]}
    turn = build.turn(params=odd, trace=odd, agent='      "turns": []')
    test = build.test_result(user_info=odd, trials=(build.trial_result(turns=(turn,)),) * 2)
    run = build.run_info(config={"a": {"a": {"a": odd}}})
    results = build.results(build.suite_result("Refunds", test, test), run=run)
    assert report_texts.results_json_text(packed(results)) == dataclass_json.to_json(results, indent=2) + "\n"


def packed(results: Results) -> Results:
    """The results with packed trials, as a run holds them."""
    suites = []
    for suite in results.suites:
        trials = [tuple(trial.packed() for trial in test.trials) for test in suite.tests]
        tests = [replace(test, trials=own) for test, own in zip(suite.tests, trials, strict=True)]
        suites.append(replace(suite, tests=tuple(tests)))
    return replace(results, suites=tuple(suites))


def changed(**changes) -> str:
    """A good results file with these keys replaced (None: taken out)."""
    data = json.loads(report_texts.results_json_text(cases.good())) | changes
    return json.dumps({key: value for key, value in data.items() if value is not None})


VERSION = r"schemaVersion {} cannot be read, only 3: "


@each_row(("text", "message"), [
    ("{", r"old\.json: not a results file: not JSON: Expecting property name"),
    ("", r"old\.json: not a results file: not JSON"),
    ("[]", r"old\.json: not a results file of ci-evals: it has no 'schemaVersion'"),
    ('{"score": 1}', r"it has no 'schemaVersion'"),
    (changed(schemaVersion=4), VERSION.format(4) + "it was written by a newer version"),
    (changed(schemaVersion=1), r"^old\.json: schemaVersion 1 .* by an earlier version; run the evals again$"),
    (changed(schemaVersion=0), VERSION.format(0) + "no version ever wrote that"),
    (changed(counts=None), r"^old\.json: counts: Field required$"),
    (changed(suites=[{"name": "x"}]), r"old\.json: suites\[0\]\.file: Field required"),
    (changed(score="high"), r"old\.json: score: Input should be a valid number"),
])  # fmt: skip
def test_unreadable_results_file_is_refused_with_the_reason(text, message):
    with pytest.raises(UsageError, match=message):
        report_files.load(text, "old.json")


@each_row("folder", [
    *("../outside", "/etc", "a/../../b", "", ".", ".git/hooks", "a\\b", "C:/x", "a//b", "a\nb", "a."),
    *("junit.xml/x", "_Results.json/x", "summary.md"),
])  # fmt: skip
def test_results_file_with_an_unsafe_folder_is_refused(folder):
    data = json.loads(report_texts.results_json_text(cases.good()))
    data["suites"][0]["folder"] = folder
    with pytest.raises(UsageError, match="must be a unique relative path"):
        report_files.load(json.dumps(data), "x")


def test_suite_has_its_own_results_file_and_reports_are_redrawn_from_it_or_the_run(tmp_path):
    run = cases.bad()
    own = report_files.load(report_texts.files_of_run(run)[f"Exchanges/{STAMP}/_results.json"], "x")
    assert [suite.name for suite in own.suites] == ["Exchanges"]
    assert (own.score, own.counts, own.gate) == (run.suites[1].score, run.suites[1].counts, run.gate)
    run, files = cases.bad(), report_texts.files_of_run(cases.bad())
    again = report_texts.join_parts(report_files.redraw(run, tmp_path / "results" / "_results.json"))
    assert again == {path: text for path, text in files.items() if path != "_results.json"}
    folder = f"Refunds/{STAMP}/"
    own = report_files.load(files[folder + "_results.json"], "x")
    again = report_texts.join_parts(report_files.redraw(own, tmp_path / folder / "_results.json"))
    reports = [path for path in files if path.startswith(folder) and not path.endswith(".json")]
    assert again == {path.removeprefix(folder): files[path] for path in reports}


def test_suite_folders_are_unique_beyond_letter_case_and_stamped_in_utc():
    taken = set()
    for name in ("Refunds", "refunds", "REFUNDS", "../Refunds", "Refunds!"):
        taken.add(folder_for(name, build.STARTED_AT, taken))
    assert len({folder.casefold() for folder in taken}) == 5
    assert f"Refunds/{STAMP}" in taken
    central_europe = build.STARTED_AT.astimezone(timezone(timedelta(hours=1)))
    assert folder_for("Refunds", central_europe, ()) == f"Refunds/{STAMP}"


def test_equal_names_are_numbered_without_reusing_a_given_name():
    for alike, shown in (
        (["A", "B"], ["A", "B"]),
        (["A", "A", "A"], ["A", "A (2)", "A (3)"]),
        (["A", "A", "A (2)"], ["A", "A (3)", "A (2)"]),
        (["A (2)", "A (2)", "A", "A"], ["A (2)", "A (2) (2)", "A", "A (3)"]),
    ):
        assert numbered(alike) == shown


def rows_of(*tests) -> list[dict[str, str]]:
    text = "".join(findings_csv.render(story_of(build.results(build.suite_result("Refunds", *tests)))))
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_row_for_each_finding_and_for_errored_and_unplayed_tests():
    findings = (build.finding(criterion="One"), build.finding("failed", criterion="Two", reason="It, too."))
    trials = tuple(build.trial_result(number, findings=findings) for number in (1, 2))
    rows = rows_of(build.test_result("Refund", trials=trials))
    assert [(row["trial"], row["criterion"], row["outcome"]) for row in rows] == [
        ("1", "One", "passed"), ("1", "Two", "failed"), ("2", "One", "passed"), ("2", "Two", "failed"),
    ]  # fmt: skip
    assert rows[1]["reason"] == "It, too."
    assert {row["suite"] for row in rows} == {"Refunds"}
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
