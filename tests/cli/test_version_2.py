"""Results that the version before this one wrote: real files, read where a run is compared or shown."""

import json
import shutil
from pathlib import Path

import fakes
import pytest
import world
from commands import ci_evals, read_results

import ci_evals as library
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.support import dataclass_json

FILES = Path(__file__).parent / "version_2"
NAMES = sorted(file.stem for file in FILES.glob("*.json"))
REFUSED = (
    "schemaVersion 2 is of an earlier version of ci-evals, which only report, compare, rejudge, "
    "`baseline=` and `history=` read: run the evals again"
)
ON_COMMAND_LINE = REFUSED.replace("`baseline=`", "--baseline").replace("`history=`", "--history")
AGENT = """
def good(message):
    return f"Hello, you said: {message}"

def bad(message):
    return "No."
"""


def file_of(name: str) -> Path:
    return FILES / f"{name}.json"


def read(name: str) -> Results:
    return SavedRun.open(file_of(name), None, earlier_version=True).results


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with the suite of `plain`, its agents, and that run as `main`."""
    (tmp_path / "shop.py").write_text(AGENT)
    tests = [
        {
            "name": f"Greets {letter}",
            "guidelines": "Greet.",
            "turns": [{"user": f"{letter} please"}],
            "evaluations": [{"criterion": "It greets", "strict": "contains", "text": "Hello"}],
        }
        for letter in "abcd"
    ]
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


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_of_version_2_and_are_read_as_this_one(name):
    """All that this version still has is as it was written."""
    written = json.loads(file_of(name).read_text())
    assert written["schemaVersion"] == 2
    results = read(name)
    again = dataclass_json.to_value(results)
    assert again["schemaVersion"] == 3
    for key in ("score", "interval", "counts", "usage", "latency", "suites", "arms", "gate"):
        if key in written:
            assert without_new_keys(again[key], written[key]) == written[key], key


@pytest.mark.parametrize("name", NAMES)
def test_any_other_use_is_refused_with_one_sentence(name):
    """So no number is made of what this version would count otherwise."""
    with pytest.raises(UsageError) as refused:
        SavedRun.open(file_of(name), None)
    assert str(refused.value) == f"{file_of(name)}: {REFUSED}"


@pytest.mark.parametrize(
    "command",
    [
        ("odds", "main"),
        ("show", "main"),
        ("merge", "main"),
        ("comment", "main", "--pr-number=1"),
        ("run", "suite.json", "--provider=offline", "--only-failed=main", "--output-dir=results"),
    ],
)
def test_other_commands_refuse_it(folder, command):
    """Before they do anything."""
    ran = ci_evals(*command, cwd=folder)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert ON_COMMAND_LINE in ran.stderr
    assert not (folder / "results").exists()


def test_gate_refuses_it(folder):
    """As a file, and as its baseline."""
    for arguments in (("main/_results.json",), ("rows.jsonl", "--baseline=main/_results.json")):
        (folder / "rows.jsonl").write_text('{"id": "a", "passed": true}\n')
        ran = ci_evals("gate", *arguments, cwd=folder)
        assert (ran.returncode, "another version of ci-evals" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize(("agent", "code", "delta"), [("good", 0, 0.0), ("bad", 1, -100.0)])
def test_a_run_is_compared_with_it(folder, agent, code, delta):
    """A drop since then fails the gate as one since a run of this version does."""
    options = ("--provider=offline", "--loops=3", "--min-score=0", "--regression=significant")
    ran = ci_evals(
        "run", "suite.json", *options, f"--adapter=python:shop:{agent}", "--baseline=main", cwd=folder
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    comparison = read_results(folder)["comparison"]
    assert (comparison["comparable"], comparison["delta"], comparison["tests"]) == (True, delta, 4)


def test_it_is_part_of_a_history(folder):
    """Beside runs of this version."""
    for name in ("one", "two"):
        shutil.copytree(folder / "main", folder / "runs" / name)
        file = folder / "runs" / name / "_results.json"
        file.write_text(file.read_text().replace('"run":{"id":"', f'"run":{{"id":"{name}'))
    options = ("--provider=offline", "--loops=3", "--regression=significant", "--baseline=main")
    ran = ci_evals("run", "suite.json", *options, "--history=runs", cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert read_results(folder)["comparison"]["history"]["runs"] == 3


def test_compare_reads_it_on_both_sides(folder):
    """The same run does not differ from itself."""
    ran = ci_evals("compare", "main", "main", "--max-drop=1", cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "change 0.0" in ran.stdout


@pytest.mark.parametrize("name", NAMES)
def test_report_shows_it(tmp_path, name):
    """With its own decision; the file itself stays as it is."""
    shutil.copy(file_of(name), tmp_path / "_results.json")
    before = (tmp_path / "_results.json").read_bytes()
    ran = ci_evals("report", "_results.json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "_results.json").read_bytes() == before
    verdict = "Evals passed" if read(name).gate.passed else "Evals failed"
    assert verdict in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "report.html").exists()


def test_a_report_says_that_only_the_worst_tests_were_compared(tmp_path):
    """This version compares all tests."""
    shutil.copy(file_of("worst_quarter"), tmp_path / "_results.json")
    assert ci_evals("report", "_results.json", cwd=tmp_path).returncode == 0
    summary = (tmp_path / "summary.md").read_text()
    assert "Only the tests that looked worst were compared with the base agent" in summary


def test_a_base_agent_that_was_never_played_is_none():
    """It saved no conversations."""
    results = read("never")
    assert (results.run.config["against"], results.arms) == (False, ())


def test_rejudge_reads_it_and_writes_this_version(tmp_path):
    """Its conversations are judged again; a judge that fails them fails the gate."""
    shutil.copy(file_of("judged"), tmp_path / "_results.json")
    with world.llm(lambda _: fakes.judge_answer("fail", "It does not.")) as llm:
        options = ("--output-dir=again", "--judge-check=off")
        ran = ci_evals("rejudge", "_results.json", *options, cwd=tmp_path, env=llm.env)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    again = json.loads((tmp_path / "again/_results.json").read_text())
    assert (again["schemaVersion"], again["score"]) == (3, 50.0)


def test_the_library_reads_it_as_a_baseline():
    """`load_results`, as the command line does."""
    assert library.load_results(file_of("plain")).score == 100.0


@pytest.mark.parametrize("damage", [{"run": None}, {"run": []}, {"run": {"config": 3}}, {"suites": 3}])
def test_a_damaged_file_is_refused(tmp_path, damage):
    """In one message, not by a crash."""
    data = json.loads(file_of("worst_quarter").read_text())
    (tmp_path / "_results.json").write_text(json.dumps(data | damage))
    with pytest.raises(UsageError, match="_results"):
        library.load_results(tmp_path)
