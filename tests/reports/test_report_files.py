"""Which files a run makes, under which names, and that a results file reads back as it was."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.reports import report_files
from ci_evals.reports.names import folder_for, numbered
from ci_evals.support import dataclass_json

STAMP = "2026-11-21T09-30-00Z"


def test_a_run_makes_these_files():
    """A folder for each suite with a file for each test, and five files at the root."""
    assert sorted(report_texts.files_of_run(cases.bad())) == [
        f"Exchanges/{STAMP}/Exchange-for-another-size.md",
        f"Exchanges/{STAMP}/_results.json",
        f"Exchanges/{STAMP}/_summary.md",
        f"Refunds/{STAMP}/Refund-after-the-window.md",
        f"Refunds/{STAMP}/Refund-for-a-cancelled-order.md",
        f"Refunds/{STAMP}/_results.json",
        f"Refunds/{STAMP}/_summary.md",
        "_results.json",
        "ctrf.json",
        "junit.xml",
        "report.html",
        "summary.md",
    ]


def test_a_suites_own_file_holds_that_suite_and_its_score():
    """Same schema, one suite; the gate is the run's."""
    run = cases.bad()
    own = report_files.load(report_texts.files_of_run(run)[f"Exchanges/{STAMP}/_results.json"], "x")
    assert [suite.name for suite in own.suites] == ["Exchanges"]
    assert (own.score, own.counts) == (run.suites[1].score, run.suites[1].counts)
    assert own.gate == run.gate


def test_folders_of_suites_that_share_a_name_differ():
    """Also where upper and lower case are one."""
    taken = set()
    for name in ("Refunds", "refunds", "REFUNDS", "../Refunds", "Refunds!"):
        taken.add(folder_for(name, build.STARTED_AT, taken))
    assert len({folder.casefold() for folder in taken}) == 5
    assert f"Refunds/{STAMP}" in taken


def test_the_timestamp_is_in_utc():
    """A run that began at 10:30 in Central Europe began at 9:30."""
    at = build.STARTED_AT.astimezone(timezone(timedelta(hours=1)))
    assert folder_for("Refunds", at, ()) == f"Refunds/{STAMP}"


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.one_of(
            hostile_text.any_text, st.sampled_from(["_summary", "_results", "a", "A", "ß", "SS", "con"])
        ),
        max_size=6,
    )
)
def test_every_name_of_a_test_makes_a_safe_file_of_its_own(names):
    """No test overwrites another or the suite's own files, and none leaves its folder."""
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
def test_a_results_file_reads_back_to_the_same_bytes(value, text, score, seconds):
    """Whatever numbers and texts a trace holds, reading and writing again changes nothing."""
    trial = build.trial_result(
        turns=(build.turn(agent=text, trace={"a": value}, raw=value, latency_seconds=seconds),)
    )
    results = build.results(
        build.suite_result("Refunds", build.test_result(text, trials=(trial,), score=score))
    )
    written = report_texts.results_json_text(results)
    written.encode()
    assert report_texts.results_json_text(report_files.load(written, "x")) == written


def test_a_deeply_nested_trace_can_be_read_back():
    """What can be written can be read: else one odd reply would cost the baseline."""
    trace = []
    for _ in range(240):
        trace = [trace]
    trial = build.trial_result(turns=(build.turn(trace=trace),))
    results = build.results(build.suite_result("Refunds", build.test_result(trials=(trial,))))
    written = report_texts.results_json_text(results)
    assert report_texts.results_json_text(report_files.load(written, "x")) == written


@pytest.mark.parametrize("name", cases.CASES)
def test_a_results_file_is_one_json_text(name):
    """Made in parts, it has the bytes that it would have as a whole, whether its trials are packed or not."""
    results = cases.CASES[name]()
    written = report_texts.results_json_text(results)
    assert written == dataclass_json.to_json(results, indent=2) + "\n"
    assert report_texts.results_json_text(kept(results)) == written


def test_agents_text_with_keys_of_results_is_laid_out_as_text():
    """Suites, tests, trials and turns are put where they belong though agents use these words."""
    odd = {
        "suites": [],
        "tests": [],
        "trials": [],
        "turns": [],
        "x": ['\n  "turns": []', {"trials": []}],
    }
    turn = build.turn(params=odd, trace=odd, agent='      "turns": []')
    test = build.test_result(user_info=odd, trials=(build.trial_result(turns=(turn,)),) * 2)
    results = build.results(
        build.suite_result("Refunds", test, test), run=build.run_info(config={"a": {"a": {"a": odd}}})
    )
    assert report_texts.results_json_text(kept(results)) == dataclass_json.to_json(results, indent=2) + "\n"


def kept(results: Results) -> Results:
    """As a run holds them."""
    suites = []
    for suite in results.suites:
        trials = [tuple(trial.packed() for trial in test.trials) for test in suite.tests]
        tests = [replace(test, trials=own) for test, own in zip(suite.tests, trials, strict=True)]
        suites.append(replace(suite, tests=tuple(tests)))
    return replace(results, suites=tuple(suites))


@pytest.mark.parametrize("name", cases.CASES)
def test_a_results_file_is_the_same_value(name):
    """Reading gives back what was written, keys in camelCase."""
    results = cases.CASES[name]()
    written = report_texts.results_json_text(results)
    assert report_files.load(written, "x") == results
    assert {"schemaVersion", "tool", "run", "score", "counts", "gate", "usage", "suites"} <= json.loads(
        written
    ).keys()


def changed(**changes) -> str:
    """A good results file with these keys replaced (None: taken out)."""
    data = json.loads(report_texts.results_json_text(cases.good())) | changes
    return json.dumps({key: value for key, value in data.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"old\.json: not a results file: not JSON: Expecting property name"),
        ("", r"old\.json: not a results file: not JSON"),
        ("[]", r"old\.json: not a results file of ci-evals: it has no 'schemaVersion'"),
        ('{"score": 1}', r"it has no 'schemaVersion'"),
        (
            changed(schemaVersion=4),
            r"schemaVersion 4 cannot be read, only 3: it was written by a newer version",
        ),
        (
            changed(schemaVersion=1),
            r"^old\.json: schemaVersion 1 .* by an earlier version; run the evals again$",
        ),
        (changed(schemaVersion=0), r"schemaVersion 0 cannot be read, only 3: no version ever wrote that"),
        (changed(counts=None), r"^old\.json: counts: Field required$"),
        (changed(suites=[{"name": "x"}]), r"old\.json: suites\[0\]\.file: Field required"),
        (changed(score="high"), r"old\.json: score: Input should be a valid number"),
    ],
)
def test_a_file_that_is_none_says_what_is_wrong(text, message):
    """The file, the place in it, and the fault."""
    with pytest.raises(UsageError, match=message):
        report_files.load(text, "old.json")


@pytest.mark.parametrize(
    "folder",
    [
        *("../outside", "/etc", "a/../../b", "", ".", ".git/hooks", "a\\b", "C:/x", "a//b", "a\nb", "a."),
        *("junit.xml/x", "_Results.json/x", "summary.md"),
    ],
)
def test_a_results_file_cannot_name_a_folder_outside(folder):
    """A file from somebody else's artifact decides nothing about places on this machine."""
    data = json.loads(report_texts.results_json_text(cases.good()))
    data["suites"][0]["folder"] = folder
    with pytest.raises(UsageError, match="must be a unique relative path"):
        report_files.load(json.dumps(data), "x")


def test_a_runs_file_redraws_everything(tmp_path):
    """All reports but the file itself."""
    run = cases.bad()
    again = report_texts.join_parts(report_files.redraw(run, tmp_path / "results" / "_results.json"))
    assert again == {
        path: text for path, text in report_texts.files_of_run(run).items() if path != "_results.json"
    }


def test_a_suites_own_file_redraws_its_folder(tmp_path):
    """The same bytes that the run wrote there."""
    files = report_texts.files_of_run(cases.bad())
    folder = f"Refunds/{STAMP}/"
    own = report_files.load(files[folder + "_results.json"], "x")
    again = report_texts.join_parts(report_files.redraw(own, tmp_path / folder / "_results.json"))
    assert again == {
        path.removeprefix(folder): text
        for path, text in files.items()
        if path.startswith(folder) and not path.endswith(".json")
    }


def test_names_that_are_alike_are_numbered_and_no_number_makes_two_alike():
    """A name that ends in a number of its own keeps it."""
    for alike, shown in (
        (["A", "B"], ["A", "B"]),
        (["A", "A", "A"], ["A", "A (2)", "A (3)"]),
        (["A", "A", "A (2)"], ["A", "A (3)", "A (2)"]),
        (["A (2)", "A (2)", "A", "A"], ["A (2)", "A (2) (2)", "A", "A (3)"]),
    ):
        assert numbered(alike) == shown
