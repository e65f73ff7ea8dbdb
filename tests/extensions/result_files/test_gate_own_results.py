"""Results of ours that are gated again keep the rules of their suites, and need to be whole."""

import json
from pathlib import Path

import pytest
from commands import ci_evals
from gate_command import run_gate, saved_results, write_demo_suite

pytestmark = pytest.mark.slow


PASSING = {"evaluations": [{"criterion": "c", "strict": "not_contains", "text": "no such words"}]}


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *files: run_gate(capsys, *files, "--output-dir=again", "--min-score=0")


def write_tests(floors: dict[str, float] | None = None, **fields: float) -> None:
    """Write a suite of three tests, of which the first one fails and may have a floor."""
    write_demo_suite(floors or {}, PASSING, PASSING, **fields)


def play(*options: str) -> None:
    options = ("run", "suite.json", "--provider=offline", "--no-gate", "--min-score=0", *options)
    done = ci_evals(*options, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("fields", "suite", "code", "check"), [
    ({}, {}, 0, None),
    ({}, {"minScore": 60}, 0, "suite:S"),
    ({}, {"minScore": 90}, 1, "suite:S"),
    ({"minScore": 0}, {}, 0, "test:t0"),
    ({"minScore": 50}, {}, 1, "test:t0"),
    ({"critical": True}, {}, 1, "critical:t0"),
])  # fmt: skip
def test_conversations_limits_and_critical_tests_are_kept(gate, fields, suite, code, check):
    write_tests(fields, **suite)
    play()
    assert gate("results/_results.json")[0] == code
    results = saved_results("again")
    assert results["suites"][0]["name"] == "S"
    assert results["suites"][0]["tests"][0]["trials"][0]["turns"]
    assert check in {None, *(one["name"] for one in results["gate"]["checks"])}


def test_unmerged_shards_and_repeated_runs_are_refused(gate, tmp_path):
    write_tests()
    for shard in (1, 2, 3):
        play(f"--shard={shard}/3", f"--output-dir=s{shard}")
    for files in (["s2/_results.json"], ["s1/_results.json", "s2/_results.json", "s3/_results.json"]):
        code, printed = gate(*files)
        assert (code, "of 3 of a run. Merge all of them first: ci-evals merge" in printed) == (2, True)
    assert ci_evals("merge", "s1", "s2", "s3", "--no-gate", cwd=tmp_path).returncode == 0
    assert gate("results/_results.json")[0] == 0
    Path("again.json").write_text(json.dumps(saved_results() | {"odds": None}))
    code, printed = gate("results/_results.json", "again.json", "--max-errors=999")
    assert (code, "has the same run as results/_results.json" in printed) == (3, True)


def test_weakened_suite_in_own_results_fails_gate(gate):
    """By what the results record of their suites: rows of another tool hide it as little as its removal."""
    write_tests({"minScore": 50})
    play("--output-dir=main")
    options = ("--weakened=fail", "--baseline=main")
    write_tests()
    play()
    Path("rows.csv").write_text("test,passed\nt0,true\nt1,true\nt2,true\n")
    for files in (["results/_results.json"], ["results/_results.json", "rows.csv"]):
        code, printed = gate(*files, *options)
        message = "minScore of “t0” of the suite “S”: 50 before, none now."
        assert (code, message in printed) == (1, True), printed
    results = saved_results()
    del results["run"]["definitions"]
    Path("results/_results.json").write_text(json.dumps(results))
    for file in ("results/_results.json", "rows.csv"):
        code, printed = gate(file, *options)
        assert (code, "this run does not record what its suites require" in printed) == (3, True), printed
