"""Results of schema version 2: real files, read by commands that compare and show runs."""

import json
import shutil
from pathlib import Path

import fakes
import pytest
import world
from commands import ci_evals, read_results
from each_row import each_row

import ci_evals as library
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.support import dataclass_json

FILES = Path(__file__).parent / "version_2"
NAMES = sorted(file.stem for file in FILES.glob("*.json"))
REJECTION = (
    "schemaVersion 2 is of an earlier version of ci-evals, which only report, compare, rejudge, "
    "`baseline=` and `history=` read: run the evals again"
)
ON_COMMAND_LINE = REJECTION.replace("`baseline=`", "--baseline").replace("`history=`", "--history")
AGENT = """
def good(message):
    return f"Hello, you said: {message}"

def bad(message):
    return "No."
"""


def file_of(name: str) -> Path:
    return FILES / f"{name}.json"


def run(folder: Path, *args: str, code: int = 0, **options):
    ran = ci_evals(*args, cwd=folder, **options)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def read(name: str) -> Results:
    return SavedRun.open(file_of(name), None, earlier_version=True).results


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with the suite of `plain`, its agents, and that run as `main`."""
    (tmp_path / "shop.py").write_text(AGENT)
    check = {"criterion": "It greets", "strict": "contains", "text": "Hello"}
    test = {"guidelines": "Greet.", "evaluations": [check]}
    tests = [test | {"name": f"Greets {each}", "turns": [{"user": f"{each} please"}]} for each in "abcd"]
    suite = {"name": "Shop", "adapter": "python:shop:good", "tests": tests}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    (tmp_path / "main").mkdir()
    shutil.copy(file_of("plain"), tmp_path / "main" / "_results.json")
    return tmp_path


def without_new_keys(value: object, written: object) -> object:
    """Return a value without the keys that were not written: later ones have defaults."""
    if isinstance(value, dict) and isinstance(written, dict):
        return {key: without_new_keys(item, written[key]) for key, item in value.items() if key in written}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return [without_new_keys(*pair) for pair in zip(value, written, strict=True)]
    return value


@each_row("name", NAMES)
def test_version_2_results_are_read_without_loss_but_only_if_allowed(name):
    written = json.loads(file_of(name).read_text())
    assert written["schemaVersion"] == 2
    again = dataclass_json.to_value(read(name))
    assert again["schemaVersion"] == 3
    for key in ("score", "interval", "counts", "usage", "latency", "suites", "arms", "gate"):
        if key in written:
            assert without_new_keys(again[key], written[key]) == written[key], key
    with pytest.raises(UsageError) as refused:
        SavedRun.open(file_of(name), None)
    assert str(refused.value) == f"{file_of(name)}: {REJECTION}"


def test_odds_show_merge_comment_gate_and_only_failed_reject_version_2_results(folder):
    for command in (
        ("odds", "main"),
        ("show", "main"),
        ("merge", "main"),
        ("comment", "main", "--pr-number=1"),
        ("run", "suite.json", "--provider=offline", "--only-failed=main", "--output-dir=results"),
    ):
        assert ON_COMMAND_LINE in run(folder, *command, code=2).stderr
        assert not (folder / "results").exists()
    (folder / "rows.jsonl").write_text('{"id": "a", "passed": true}\n')
    for arguments in (("main/_results.json",), ("rows.jsonl", "--baseline=main/_results.json")):
        assert "another version of ci-evals" in run(folder, "gate", *arguments, code=2).stderr


def test_run_is_compared_with_version_2_baseline_and_history(folder):
    for name in ("one", "two"):
        shutil.copytree(folder / "main", folder / "runs" / name)
        file = folder / "runs" / name / "_results.json"
        file.write_text(file.read_text().replace('"run":{"id":"', f'"run":{{"id":"{name}'))
    options = ("--provider=offline", "--loops=3", "--min-score=0", "--regression=significant")
    for agent, code, delta in (("good", 0, 0.0), ("bad", 1, -100.0)):
        given = (*options, f"--adapter=python:shop:{agent}", "--baseline=main")
        run(folder, "run", "suite.json", *given, code=code)
        comparison = read_results(folder)["comparison"]
        assert (comparison["comparable"], comparison["delta"], comparison["tests"]) == (True, delta, 4)
    run(folder, "run", "suite.json", *options, "--baseline=main", "--history=runs")
    assert read_results(folder)["comparison"]["history"]["runs"] == 3
    assert "change 0.0" in run(folder, "compare", "main", "main", "--max-drop=1").stdout


@pytest.mark.parametrize("name", NAMES)
def test_report_shows_version_2_results_with_their_decision(tmp_path, name):
    shutil.copy(file_of(name), tmp_path / "_results.json")
    before = (tmp_path / "_results.json").read_bytes()
    run(tmp_path, "report", "_results.json")
    assert (tmp_path / "_results.json").read_bytes() == before
    summary = (tmp_path / "summary.md").read_text()
    assert ("Evals passed" if read(name).gate.passed else "Evals failed") in summary
    # Version 3 compares all.
    only_worst = "Only the tests that looked worst were compared with the base agent"
    assert (only_worst in summary) == (name == "worst_quarter")
    assert (tmp_path / "report.html").exists()


def test_rejudge_reads_version_2_results_and_writes_current_version(tmp_path):
    shutil.copy(file_of("judged"), tmp_path / "_results.json")
    with world.llm(lambda _: fakes.judge_answer("fail", "It does not.")) as llm:
        options = ("--output-dir=again", "--judge-check=off")
        run(tmp_path, "rejudge", "_results.json", *options, code=1, env=llm.env)
    again = json.loads((tmp_path / "again/_results.json").read_text())
    assert (again["schemaVersion"], again["score"]) == (3, 50.0)


def test_library_reads_version_2_results_unless_damaged(tmp_path):
    assert library.load_results(file_of("plain")).score == 100.0
    results = read("never")
    assert (results.run.config["against"], results.arms) == (False, ())
    data = json.loads(file_of("worst_quarter").read_text())
    for damage in ({"run": None}, {"run": []}, {"run": {"config": 3}}, {"suites": 3}):
        (tmp_path / "_results.json").write_text(json.dumps(data | damage))
        with pytest.raises(UsageError, match="_results"):
            library.load_results(tmp_path)
