"""`ci-evals gate`: results of other tools get what a run gets, and nothing missing becomes a pass."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import ci_evals

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

HEADER = "test,passed,score,group,error,cost,tokens,seconds\n"
MAIN = (
    HEADER
    + "refund,true,,billing,,0.1,10,1\nlogin,true,,access,,0.1,10,1\ncancel,false,0.5,billing,,0.1,10,1\n"
)
WORSE = MAIN.replace("login,true", "login,false")


def saved(folder: str = "results") -> dict[str, Any]:
    return json.loads(Path(folder, "_results.json").read_text())


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Writes files, gates them, and returns what is printed, or the message that refuses them."""
    monkeypatch.chdir(tmp_path)

    def run(*options: str, code: int = 0, **files: str) -> str:
        for name, text in files.items():
            Path(name.replace("_", ".")).write_text(text)
        context = RunContext({"PATH": os.environ["PATH"]})
        with pytest.raises((SystemExit, UsageError)) as ended:
            invoke(["gate", *options], context)
        printed = "".join(capsys.readouterr())
        refused = isinstance(ended.value, UsageError)
        assert (2 if refused else ended.value.code) == code, (printed, ended.value)
        return context.spell(str(ended.value)) if refused else printed

    return run


def test_rows_become_a_run_with_scores_groups_cost_and_tokens(gate):
    gate("a.csv", "--min-score=83", a_csv=MAIN)
    results = saved()
    assert results["score"] == pytest.approx(250 / 3)
    assert {group["name"]: group["score"] for group in results["suites"][0]["categories"]} == {
        "billing": 75,
        "access": 100,
    }
    assert results["usage"]["costUsd"] == pytest.approx(0.3)
    assert results["usage"]["tokens"]["input"] == 30
    assert results["official"] is None
    assert Path("results/report.html").is_file()


def test_a_worse_run_is_compared_and_its_broken_test_named(gate):
    text = gate("b.csv", "--baseline=a.csv", "--regression=any", code=1, a_csv=MAIN, b_csv=WORSE)
    assert "1 test broke since the baseline" in text
    comparison = saved()["comparison"]
    assert [test["name"] for test in comparison["regressed"]] == ["login"]
    assert "login" in Path("results/summary.md").read_text()


def test_an_earlier_gated_run_is_a_baseline_too(gate):
    gate("a.csv", "--output-dir=main", "--min-score=50", a_csv=MAIN)
    for baseline in ("main", "main/_results.json"):
        text = gate("b.csv", f"--baseline={baseline}", "--max-drop=1", code=1, b_csv=WORSE)
        assert "at most 1 allowed" in text


MAP = "test: $.test\npassed: $.passed\nscore: $.score\n"


@pytest.mark.parametrize("option", ["--format=rows", "--map=map.yaml"])
def test_options_of_format_are_not_about_a_baseline_of_ours(gate, option):
    Path("map.yaml").write_text(MAP)
    gate("a.csv", "--output-dir=main", "--min-score=50", a_csv=MAIN)
    for baseline in ("main", "main/_results.json"):
        text = gate("b.csv", option, f"--baseline={baseline}", "--max-drop=1", code=1, b_csv=WORSE)
        assert "at most 1 allowed" in text
    decision = gate(
        "b.csv", option, "--baseline=a.csv", "--max-drop=1", code=1
    )  # one of another tool is like FILE
    assert "at most 1 allowed" in decision
    old = json.loads(Path("main/_results.json").read_text()) | {"schemaVersion": 0}
    Path("old.json").write_text(json.dumps(old))
    decision = gate("b.csv", option, "--baseline=old.json", code=2)
    assert decision.startswith("--baseline: old.json: was written by another version")


UNKNOWN_COLUMNS = [
    (
        "question_id,verdict\nq1,true\n",
        "question_id, verdict",
        {"test": "$.question_id", "passed": "$.verdict"},
    ),
    ('{"case": "a", "reward": 0.5}\n', "case, reward", {"test": "$.case", "score": "$.reward"}),
    (
        '[{"task": {"id": 1}, "my \'mark\'": 0.25, "cost": 1}]',
        "task, my 'mark', cost",
        {"test": "$.task.id", "score": "$['my \\\\'mark\\\\'']", "cost": "$.cost"},
    ),
    (
        '{"when": 1, "results": [{"task_id": "a", "reached": true}]}',
        "task_id, reached",
        {"rows": "$.results[*]", "test": "$.task_id", "passed": "$.reached"},
    ),
]


@pytest.mark.parametrize(("text", "keys", "fields"), UNKNOWN_COLUMNS)
def test_rows_that_need_a_map_are_shown_one(gate, text, keys, fields):
    """It is for the columns seen, and works as it is shown."""
    decision = gate("a.txt", "--format=rows", code=2, a_txt=text)
    assert "--map is missing" in decision
    assert f"its keys: {keys}. " in decision
    shown = decision.partition("\n\n")[2]
    assert yaml.safe_load(shown) == {name: path.replace("\\\\", "\\") for name, path in fields.items()}
    assert gate("a.txt", "--map=map.yaml", "--min-score=0", "--max-errors=1", map_yaml=shown) != ""
    assert saved()["score"] is not None


WRONG_PATHS = [
    (
        "test: $.task.id\npassed: $.ok",
        "row 1: map: test: $.task.id finds nothing in it; its keys: id, ok, note",
    ),
    (
        "test: $.id\npassed: $.done\nscore: $.s[0]",
        "row 1: map: passed: $.done and score: $.s[0] find nothing in it; its keys: id, ok, note",
    ),
    (
        "rows: $.items\ntest: $.id\npassed: $.ok",
        "has no list at $.items (--map, rows): it is not an object but a list",
    ),
]


def test_the_path_of_a_map_that_finds_nothing_is_named_with_the_keys_of_the_row(gate):
    rows = [{"id": "a", "ok": True, "note": None}, {"id": "b", "okay": True}]
    for paths, message in WRONG_PATHS:
        assert message in gate("a.json", "--map=map.yaml", code=2, a_json=json.dumps(rows), map_yaml=paths)
    paths = "test: $.id\npassed: $.ok\nerror: $.exception\nreason: $.note\n"
    error = gate("a.json", "--map=map.yaml", "--max-errors=1", "--min-score=0", code=0, map_yaml=paths)
    assert (
        "warning: a.json: --map: error: $.exception finds nothing in any row. Row 1: its keys: id, ok"
        in error
    )
    assert "reason: $.note finds" not in error
    (_, wrong) = saved()["suites"][0]["tests"]
    assert "map: passed: $.ok finds nothing in it; its keys: id, okay" in wrong["trials"][0]["error"]


def test_the_same_files_give_the_same_numbers(gate):
    runs = []
    for name in ("one", "two"):
        gate(
            *("b.csv", "--baseline=a.csv", "--min-score=0", f"--output-dir={name}"),
            a_csv=MAIN,
            b_csv=WORSE,
        )
        runs.append(saved(name)["comparison"]["p"])
    assert runs[0] == runs[1] is not None


def test_several_files_of_a_test_are_its_trials(gate):
    gate("*.csv", "--min-score=0", a_csv=MAIN, b_csv=WORSE)
    tests = {test["name"]: test for test in saved()["suites"][0]["tests"]}
    assert tests["login"]["flaky"] is True
    assert len(tests["refund"]["trials"]) == 2


def test_thresholds_of_groups_are_gated(gate):
    text = gate("a.csv", "--min-score=0", "--thresholds=category:billing=80", code=1, a_csv=MAIN)
    assert "billing" in text


def test_skipped_tests_are_listed_and_count_neither_for_nor_against(gate):
    text = gate("a.csv", "--min-score=83", a_csv=MAIN + "later,skipped,,billing,,,,\n")
    assert "1 row skipped, and not counted" in text
    results = saved()
    assert results["counts"]["tests"] == 4
    assert results["counts"]["errors"] == 0
    assert results["score"] == pytest.approx(250 / 3)


def test_errors_are_undecided_and_count_against_the_limit(gate):
    broken = MAIN + "slow,false,,billing,timeout,,,\n"
    text = gate("a.csv", "--min-score=0", code=3, a_csv=broken)
    assert "timeout" in text
    gate("a.csv", "--min-score=0", "--max-errors=1", a_csv=broken)


@pytest.mark.parametrize(
    ("name", "text", "code", "message"),
    [
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
        ("none.junit.xml", "<testsuites/>", 2, "has no rows, so there is nothing to gate"),
        ("missing", None, 2, "cannot be read: No such file"),
        ("*.nothing", None, 2, "no file matches"),
    ],
)
def test_bad_files_get_one_message_and_never_a_pass(gate, name, text, code, message):
    if text is not None:
        Path(name).write_text(text)
    output = gate(name, "--min-score=0", "--max-errors=0", code=code)
    assert message in output


@pytest.mark.slow
def test_a_critical_test_of_ours_stays_critical(gate, tmp_path):
    """Whatever the score."""
    suite = {
        "name": "S",
        "adapter": "demo",
        "agentId": "demo-retail",
        "tests": [
            {
                "name": "t",
                "critical": True,
                "guidelines": "-",
                "turns": [{"user": "Hello"}],
                "evaluations": [{"criterion": "c", "strict": "contains", "text": "no such words"}],
            }
        ],
    }
    Path("suite.json").write_text(json.dumps(suite))
    assert ci_evals("run", "suite.json", "--provider=offline", "--min-score=0", cwd=tmp_path).returncode == 1
    assert "critical" in gate("results/_results.json", "--output-dir=again", "--min-score=0", code=1)


@pytest.mark.parametrize("other", ["<testsuites/>", "[]", "test,passed\n"])
def test_a_file_without_rows_among_others_is_an_error(gate, other):
    """Its tool may have died before its first test."""
    Path("good.csv").write_text("test,passed\na,true\n")
    Path("other").write_text(other)
    assert "has no rows, so there is nothing to gate" in gate("good.csv", "other", "--min-score=0", code=2)


def test_a_cut_file_among_those_of_a_map_is_an_error(gate):
    Path("map.yaml").write_text("rows: $.results[*]\ntest: $.id\npassed: $.ok\n")
    Path("good.json").write_text('{"results": [{"id": "a", "ok": true}]}')
    Path("cut.json").write_text('{"results": [{"id": "b", "ok": fal')
    decision = gate("good.json", "cut.json", "--map=map.yaml", "--min-score=0", code=2)
    assert "cut.json: is no JSON, in which --map finds rows" in decision


def test_arms_of_one_file_are_chosen_and_compared(gate):
    rows = "test,passed,model\n" + "".join(
        f"t{i},true,new\nt{i},{str(i < 2).lower()},old\n" for i in range(4)
    )
    assert "'new', 'old'" in gate("a.csv", code=2, a_csv=rows)
    assert "--arm=mid" in gate("a.csv", "--arm=mid", code=2)
    gate("a.csv", "--arm=new", "--baseline-arm=old", "--max-drop=0")
    comparison = saved()["comparison"]
    assert (comparison["head"], comparison["base"]) == (100, 50)


def test_a_map_names_the_fields_of_rows(gate):
    rows = json.dumps({"out": [{"q": {"id": 1}, "ok": True, "s": [0.5]}, {"q": {"id": 2}, "ok": False}]})
    paths = "rows: $.out\ntest: $.q.id\npassed: $.ok\nscore: $.s[0]\n"
    gate("a.json", "--map=map.yaml", "--min-score=0", a_json=rows, map_yaml=paths)
    assert saved()["score"] == 25
    assert "unknown field 'foo'" in gate("a.json", "--map=map.yaml", code=2, map_yaml=paths + "foo: $.x\n")
    assert "--map has no effect" in gate("a.json", "--map=map.yaml", "--format=junit", code=2)


def test_junit_shows_the_runners_own_score_beside_ours(gate):
    cases = (
        '<testcase name="a"/>' * 2 + '<testcase name="b"/><testcase name="c"><error message="x"/></testcase>'
    )
    junit = f'<testsuite name="s" tests="3">{cases}</testsuite>'
    text = gate("j.xml", "--max-errors=1", "--min-score=0", j_xml=junit)
    results = saved()
    assert results["official"] == results["suites"][0]["official"]
    assert (results["official"]["name"], results["official"]["of"]) == ("tests passed", 3)
    assert results["official"]["value"] == pytest.approx(2 / 3)
    assert "Official score: tests passed 66.6 % of 3. Ours is 75.0. Errors count as failures" in text
    assert "Official score" in Path("results/summary.md").read_text()


@pytest.mark.slow
def test_results_of_ours_are_gated_again(gate):
    done = ci_evals("run", "demo:hr", "--provider=offline", "--no-gate", "--quiet", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    gate("results/_results.json", "--output-dir=again", "--min-score=0", "--max-errors=1000")
    again = saved("again")
    assert again["suites"][0]["name"] == saved()["suites"][0]["name"]
    assert again["suites"][0]["tests"][0]["trials"][0]["turns"]


def test_the_files_that_are_read_are_not_written_over(gate):
    Path("results").mkdir()
    text = gate("junit.xml", "--output-dir=.", code=2, junit_xml="<testsuite/>")
    assert "would be overwritten" in text


@pytest.mark.parametrize(
    ("tool", "base", "options", "broken"),
    [
        ("swe-bench", "demo__agent.base.json", [], ["demo__shop-2", "demo__shop-3", "demo__shop-4"]),
        ("gaia", "base.jsonl", ["--answers={}/metadata.jsonl"], ["q1", "q2"]),
        ("promptfoo", "shop.json", ["--arm=base · plain"], None),
    ],
)
def test_a_worse_run_of_a_tool_is_compared_and_its_broken_tests_named(gate, tool, base, options, broken):
    folder = Path(__file__).parent / "files" / tool
    worse = next(folder.glob("*worse*")).as_posix()
    options = [option.format(folder) for option in options]
    limits = ("--min-score=0", "--max-errors=9", "--regression=any")
    gate(worse, f"--baseline={folder / base}", *limits, *options, code=1)
    named = [test["name"] for test in saved()["comparison"]["regressed"]]
    assert named == broken if broken else named
    summary = Path("results/summary.md").read_text().replace("\\", "")
    assert all(name in summary for name in named)
