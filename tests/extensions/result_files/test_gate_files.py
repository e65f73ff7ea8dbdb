"""`ci-evals gate`: results of other tools get what a run gets, and nothing missing becomes a pass.

Of more results than anybody reads, reports list some and say how many they leave out. Results of ours that
are gated again keep the rules of their suites, and need to be whole.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import ci_evals
from gate_command import run_gate, saved_results, write_demo_suite

from ci_evals.reports import console, junit, report_files, results_json
from ci_evals.reports.story import listed_tests
from ci_evals.reports.story.story import story_of

HEADER = "test,passed,score,group,error,cost,tokens,seconds\n"
ROWS = "refund,true,,billing,,0.1,10,1\nlogin,true,,access,,0.1,10,1\ncancel,false,0.5,billing,,0.1,10,1\n"
MAIN = HEADER + ROWS
WORSE = MAIN.replace("login,true", "login,false")


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Writes files, gates them, and returns what is printed, or the message that refuses them."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str, code: int = 0, **files: str) -> str:
        for name, text in files.items():
            Path(name.replace("_", ".")).write_text(text)
        ended, printed = run_gate(capsys, *options)
        assert ended == code, printed
        return printed

    return run


def test_rows_become_run_with_groups_cost_tokens_errors_and_skipped_rows(gate):
    gate("a.csv", "--min-score=83", a_csv=MAIN)
    results = saved_results()
    groups = {group["name"]: group["score"] for group in results["suites"][0]["categories"]}
    assert (groups, results["official"]) == ({"billing": 75, "access": 100}, None)
    assert results["usage"]["tokens"]["input"] == 30
    assert (results["score"], results["usage"]["costUsd"]) == pytest.approx((250 / 3, 0.3))
    assert Path("results/report.html").is_file()
    assert "billing" in gate("a.csv", "--min-score=0", "--thresholds=category:billing=80", code=1)
    text = gate("a.csv", "--min-score=83", a_csv=MAIN + "later,skipped,,billing,,,,\n")
    assert "1 row skipped, and not counted" in text
    results = saved_results()
    assert (results["counts"]["tests"], results["counts"]["errors"]) == (4, 0)
    assert results["score"] == pytest.approx(250 / 3)
    broken = MAIN + "slow,false,,billing,timeout,,,\n"
    text = gate("a.csv", "--min-score=0", code=3, a_csv=broken)
    assert "timeout" in text
    gate("a.csv", "--min-score=0", "--max-errors=1", a_csv=broken)


def test_worse_run_fails_by_a_reproducible_comparison(gate):
    options = ("b.csv", "--baseline=a.csv", "--regression=any")
    assert "1 test broke since the baseline" in gate(*options, code=1, a_csv=MAIN, b_csv=WORSE)
    comparison = saved_results()["comparison"]
    assert [test["name"] for test in comparison["regressed"]] == ["login"]
    assert "login" in Path("results/summary.md").read_text()
    gate(*options, "--output-dir=again", code=1)
    assert saved_results("again")["comparison"]["p"] == comparison["p"] is not None


def test_official_score_is_shown_next_to_the_score(gate):
    broken = '<testcase name="c"><error message="x"/></testcase>'
    cases = '<testcase name="a"/><testcase name="a"/><testcase name="b"/>' + broken
    junit = f'<testsuite name="s" tests="3">{cases}</testsuite>'
    text = gate("j.xml", "--max-errors=1", "--min-score=0", j_xml=junit)
    results = saved_results()
    assert results["official"] == results["suites"][0]["official"]
    assert (results["official"]["name"], results["official"]["of"]) == ("tests passed", 3)
    assert results["official"]["value"] == pytest.approx(2 / 3)
    assert "Official score: tests passed 66.6 % of 3. Ours is 75.0. Errors count as failures" in text
    assert "Official score" in Path("results/summary.md").read_text()


MAP = "test: $.test\npassed: $.passed\nscore: $.score\n"


@pytest.mark.parametrize("options", [[], ["--format=rows"], ["--map=map.yaml"]])
def test_format_options_apply_to_baseline_of_other_tool_but_not_to_own(gate, options):
    Path("map.yaml").write_text(MAP)
    gate("a.csv", "--output-dir=main", "--min-score=50", a_csv=MAIN)
    for baseline in ("main", "main/_results.json", "a.csv"):
        text = gate("b.csv", *options, f"--baseline={baseline}", "--max-drop=1", code=1, b_csv=WORSE)
        assert "at most 1 allowed" in text
    Path("old.json").write_text(json.dumps(saved_results("main") | {"schemaVersion": 0}))
    message = gate("b.csv", *options, "--baseline=old.json", code=2)
    assert message.startswith("--baseline: old.json: was written by another version")


@pytest.mark.parametrize(("text", "keys", "fields"), [
    ("question_id,mark\nq1,true\n", "question_id, mark", {"test": "$.question_id", "passed": "$.mark"}),
    ('{"case": "a", "reward": 0.5}\n', "case, reward", {"test": "$.case", "score": "$.reward"}),
    ('[{"task": {"id": 1}, "my \'mark\'": 0.25, "cost": 1}]', "task, my 'mark', cost",
     {"test": "$.task.id", "score": "$['my \\\\'mark\\\\'']", "cost": "$.cost"}),
    ('{"when": 1, "results": [{"task_id": "a", "reached": true}]}', "task_id, reached",
     {"rows": "$.results[*]", "test": "$.task_id", "passed": "$.reached"}),
])  # fmt: skip
def test_rows_with_unknown_columns_get_working_map_suggested(gate, text, keys, fields):
    message = gate("a.txt", "--format=rows", code=2, a_txt=text)
    assert "--map is missing" in message
    assert f"its keys: {keys}. " in message
    shown = message.partition("\n\n")[2]
    assert yaml.safe_load(shown) == {name: path.replace("\\\\", "\\") for name, path in fields.items()}
    gate("a.txt", "--map=map.yaml", "--min-score=0", "--max-errors=1", map_yaml=shown)
    assert saved_results()["score"] is not None


WRONG_PATHS = [
    ("test: $.task.id\npassed: $.ok",
     "row 1: map: test: $.task.id finds nothing in it; its keys: id, ok, note"),
    ("test: $.id\npassed: $.done\nscore: $.s[0]",
     "row 1: map: passed: $.done and score: $.s[0] find nothing in it; its keys: id, ok, note"),
    ("rows: $.items\ntest: $.id\npassed: $.ok",
     "has no list at $.items (--map, rows): it is not an object but a list"),
]  # fmt: skip


def test_rows_of_several_files_are_trials_of_one_test(gate):
    gate("*.csv", "--min-score=0", a_csv=MAIN, b_csv=WORSE)
    tests = {test["name"]: test for test in saved_results()["suites"][0]["tests"]}
    assert tests["login"]["flaky"] is True
    assert len(tests["refund"]["trials"]) == 2


def test_arms_of_one_file_must_be_named_and_are_compared(gate):
    rows = "".join(f"t{i},true,new\nt{i},{str(i < 2).lower()},old\n" for i in range(4))
    rows = "test,passed,model\n" + rows
    assert "'new', 'old'" in gate("a.csv", code=2, a_csv=rows)
    assert "--arm=mid" in gate("a.csv", "--arm=mid", code=2)
    gate("a.csv", "--arm=new", "--baseline-arm=old", "--max-drop=0")
    comparison = saved_results()["comparison"]
    assert (comparison["head"], comparison["base"]) == (100, 50)


@pytest.mark.parametrize(("name", "text", "code", "message"), [
    ("empty.csv", "", 2, "is empty"),
    ("head.csv", HEADER, 2, "no rows, so there is nothing to gate"),
    ("errors.csv", HEADER + "a,error,,,,,,\n", 3, "No verdict"),
    ("skipped.csv", HEADER + "a,skipped,,,,,,\n", 3, "No verdict"),
    ("nan.csv", HEADER + "a,,nan,,,,,\n", 2, "row 1: score is 'nan', not a finite number"),
    ("big.csv", HEADER + "a,,7,,,,,\n", 2, "score 7.0 is not a number from 0 to 1"),
    ("cut.csv", HEADER + "a,true\n", 2, "may be cut off"),
    ("word.csv", HEADER + "a,maybe,,,,,,\n", 2, "passed is 'maybe'"),
    ("twice.csv", "test,trial,passed\na,1,true\na,1,true\n", 2, "has trial '1' twice"),
    ("cut.jsonl", '{"test": "a", "passed": true}\n{"te', 2, "line 2 is not JSON"),
    ("deep.json", "[" * 9999, 2, "has no known format"),
    ("same.csv", "test,passed\n" + "a,true\n" * 2001, 2, "has 2,001 trials, and at most 2,000 are read"),
    ("models.csv", "test,passed,model\na,true,x\na,true,y\n", 2, "'x', 'y'. They are not mixed"),
    ("nameless.xml", "<testsuite name='s'><testcase name=''/><testcase name=' '/></testsuite>", 2, "no name"),
    ("none.junit.xml", "<testsuites/>", 2, "has no rows, so there is nothing to gate"),
    ("missing", None, 2, "cannot be read: No such file"),
    ("*.nothing", None, 2, "no file matches"),
])  # fmt: skip
def test_unusable_file_is_refused_or_leaves_no_verdict(gate, name, text, code, message):
    if text is not None:
        Path(name).write_text(text)
    assert message in gate(name, "--min-score=0", "--max-errors=0", code=code)


def test_map_file_selects_rows_and_fields(gate):
    rows = json.dumps({"out": [{"q": {"id": 1}, "ok": True, "s": [0.5]}, {"q": {"id": 2}, "ok": False}]})
    paths = "rows: $.out\ntest: $.q.id\npassed: $.ok\nscore: $.s[0]\n"
    gate("a.json", "--map=map.yaml", "--min-score=0", a_json=rows, map_yaml=paths)
    assert saved_results()["score"] == 25
    assert "unknown field 'foo'" in gate("a.json", "--map=map.yaml", code=2, map_yaml=paths + "foo: $.x\n")
    assert "--map has no effect" in gate("a.json", "--map=map.yaml", "--format=junit", code=2)


def test_path_of_map_file_that_finds_nothing_is_reported_with_keys_of_the_row(gate):
    rows = [{"id": "a", "ok": True, "note": None}, {"id": "b", "okay": True}]
    for paths, message in WRONG_PATHS:
        assert message in gate("a.json", "--map=map.yaml", code=2, a_json=json.dumps(rows), map_yaml=paths)
    paths = "test: $.id\npassed: $.ok\nerror: $.exception\nreason: $.note\n"
    error = gate("a.json", "--map=map.yaml", "--max-errors=1", "--min-score=0", code=0, map_yaml=paths)
    warning = "warning: a.json: --map: error: $.exception finds nothing in any row."
    assert f"{warning} Row 1: its keys: id, ok" in error
    assert "reason: $.note finds" not in error
    (_, wrong) = saved_results()["suites"][0]["tests"]
    assert "map: passed: $.ok finds nothing in it; its keys: id, okay" in wrong["trials"][0]["error"]


def test_gate_does_not_overwrite_an_input_file(gate):
    Path("results").mkdir()
    assert "would be overwritten" in gate("junit.xml", "--output-dir=.", code=2, junit_xml="<testsuite/>")


def test_empty_or_cut_file_among_good_files_is_refused(gate):
    # The tool of an empty file may have died before its first test.
    for other in ("<testsuites/>", "[]", "test,passed\n"):
        files = {"good_csv": "test,passed\na,true\n", "other": other}
        text = gate("good.csv", "other", "--min-score=0", code=2, **files)
        assert "has no rows, so there is nothing to gate" in text
    Path("map.yaml").write_text("rows: $.results[*]\ntest: $.id\npassed: $.ok\n")
    Path("good.json").write_text('{"results": [{"id": "a", "ok": true}]}')
    Path("cut.json").write_text('{"results": [{"id": "b", "ok": fal')
    message = gate("good.json", "cut.json", "--map=map.yaml", "--min-score=0", code=2)
    assert "cut.json: is no JSON, in which --map finds rows" in message


MOST = 30


def write_rows(name: str, passed: list[Any]) -> str:
    rows = [
        ok if isinstance(ok, dict) else {"test": f"case-{i:04}", "passed": ok, "reason": "" if ok else "why"}
        for i, ok in enumerate(passed)
    ]
    Path(name).write_text("\n".join(map(json.dumps, rows)))
    return name


@pytest.fixture
def gate_rows(tmp_path, monkeypatch, capsys):
    """Gates these outcomes against those of a baseline, and returns what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(listed_tests, "MOST_TESTS", MOST)

    def run(head, base):
        files = write_rows("head.jsonl", head), f"--baseline={write_rows('base.jsonl', base)}"
        return run_gate(capsys, *files)[1]

    return run


def test_changed_and_failed_tests_are_listed_first_and_others_counted(gate_rows):
    passed = [True] * (MOST + 10)
    printed = gate_rows([*passed[:-3], False, False, True], [*passed[:-2], False, False])
    broke, failed, fixed = (f"case-{len(passed) - i:04}" for i in (3, 2, 1))
    page, summary = (Path("results", name).read_text() for name in ("report.html", "summary.md"))
    for name in (broke, failed, fixed):
        assert f"{name}</a></th>" in page
        assert re.search(rf"^\| {name} ", summary, re.MULTILINE)
    assert len(re.findall(r"case-\d+</a></th>", page)) == MOST
    note = "10 tests not listed: 10 passed. All tests are in _results.json."
    assert (note in page, note in summary) == (True, True)
    assert ("and 10 more tests" in summary, "and 10 more tests" in printed) == (True, True)
    assert len(saved_results()["suites"][0]["tests"]) == len(passed)
    assert Path("results/junit.xml").read_text().count("<testcase ") == len(passed)
    count = MOST + 50
    printed = gate_rows([False] * count, [True] * count)
    page, summary = (Path("results", name).read_text() for name in ("report.html", "summary.md"))
    broke = f"{count:,} tests broke since the baseline"
    assert broke in printed
    dropped = f"{count:,} tests dropped, 0 rose"
    for text in (broke, dropped, "and 49 more in _results.json", "50 tests not listed: 50 failed."):
        assert text in page
    assert "and 50 more tests" in summary
    assert Path("results/junit.xml").read_text().count("<failure ") == count


def test_results_of_many_tests_round_trip_with_one_line_per_test(gate_rows):
    tests = MOST + 10
    gate_rows([False, *[True] * (tests - 1)], [True] * tests)
    text = Path("results/_results.json").read_text()
    results = report_files.load(text, "_results.json")
    assert sum('"name":"case-' in line for line in text.splitlines()) == tests
    assert "".join(results_json.render(results)) == text


def test_shared_trials_change_no_report(gate_rows):
    names = ["it's <b>", 'a "&quot;" b', "c > d"]
    outcomes = [{"passed": True}, {"passed": False, "reason": "why"}, {"passed": "skip"}, {"error": "gone"}]
    rows = [{"test": f"{names[i % 3]} {i}", **outcomes[i % 4]} for i in range(4 * MOST)]
    printed = gate_rows(rows, [{**row, "passed": number % 8 < 4} for number, row in enumerate(rows)])
    results = report_files.load(Path("results/_results.json").read_text(), "_results.json")
    shared = Path("results/junit.xml").read_text()
    assert "".join(junit.render(story_of(results))) == shared
    assert shared.count("It passed in the baseline") == MOST // 2
    assert console.render(story_of(results), color=False) in printed


PASSING = {"evaluations": [{"criterion": "c", "strict": "not_contains", "text": "no such words"}]}


@pytest.fixture
def gate_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *files: run_gate(capsys, *files, "--output-dir=again", "--min-score=0")


def write_tests(floors: dict[str, float] | None = None, **fields: float) -> None:
    """Write a suite of three tests, of which the first one fails and may have a floor."""
    write_demo_suite(floors or {}, PASSING, PASSING, **fields)


def play(*options: str) -> None:
    options = ("run", "suite.json", "--provider=offline", "--no-gate", "--min-score=0", *options)
    done = ci_evals(*options, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "suite", "code", "check"), [
    ({}, {}, 0, None),
    ({}, {"minScore": 60}, 0, "suite:S"),
    ({}, {"minScore": 90}, 1, "suite:S"),
    ({"minScore": 0}, {}, 0, "test:t0"),
    ({"minScore": 50}, {}, 1, "test:t0"),
    ({"critical": True}, {}, 1, "critical:t0"),
])  # fmt: skip
def test_gate_keeps_conversations_limits_and_critical_tests_of_own_results(
    gate_again, fields, suite, code, check
):
    write_tests(fields, **suite)
    play()
    assert gate_again("results/_results.json")[0] == code
    results = saved_results("again")
    assert results["suites"][0]["name"] == "S"
    assert results["suites"][0]["tests"][0]["trials"][0]["turns"]
    assert check in {None, *(one["name"] for one in results["gate"]["checks"])}


@pytest.mark.slow
def test_unmerged_shards_and_repeated_runs_are_refused(gate_again, tmp_path):
    write_tests()
    for shard in (1, 2, 3):
        play(f"--shard={shard}/3", f"--output-dir=s{shard}")
    for files in (["s2/_results.json"], ["s1/_results.json", "s2/_results.json", "s3/_results.json"]):
        code, printed = gate_again(*files)
        assert (code, "of 3 of a run. Merge all of them first: ci-evals merge" in printed) == (2, True)
    assert ci_evals("merge", "s1", "s2", "s3", "--no-gate", cwd=tmp_path).returncode == 0
    assert gate_again("results/_results.json")[0] == 0
    Path("again.json").write_text(json.dumps(saved_results() | {"odds": None}))
    code, printed = gate_again("results/_results.json", "again.json", "--max-errors=999")
    assert (code, "has the same run as results/_results.json" in printed) == (3, True)


@pytest.mark.slow
def test_weakened_suite_in_own_results_fails_gate(gate_again):
    """Neither rows of another tool nor removal of the record of the suites hides it."""
    write_tests({"minScore": 50})
    play("--output-dir=main")
    options = ("--weakened=fail", "--baseline=main")
    write_tests()
    play()
    Path("rows.csv").write_text("test,passed\nt0,true\nt1,true\nt2,true\n")
    for files in (["results/_results.json"], ["results/_results.json", "rows.csv"]):
        code, printed = gate_again(*files, *options)
        message = "minScore of “t0” of the suite “S”: 50 before, none now."
        assert (code, message in printed) == (1, True), printed
    results = saved_results()
    del results["run"]["definitions"]
    Path("results/_results.json").write_text(json.dumps(results))
    for file in ("results/_results.json", "rows.csv"):
        code, printed = gate_again(file, *options)
        assert (code, "this run does not record what its suites require" in printed) == (3, True), printed
