"""Results of ours that are gated again keep the rules of their suites, and need to be whole."""

import json
import os
from pathlib import Path

import pytest
from commands import ci_evals

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

pytestmark = pytest.mark.slow


def write_suite(*, suite_floor: float | None = None, test_floor: float | None = None) -> None:
    """Write a suite of three tests, of which the demo agent passes the last two."""
    tests = [
        {
            "name": f"t{number}",
            "guidelines": "-",
            "turns": [{"user": "Hello"}],
            "evaluations": [{"criterion": "c", "strict": strict, "text": "no such words"}],
        }
        for number, strict in enumerate(("contains", "not_contains", "not_contains"))
    ]
    if test_floor is not None:
        tests[0]["minScore"] = test_floor
    suite = {"name": "S", "adapter": "demo", "agentId": "demo-retail", "tests": tests}
    if suite_floor is not None:
        suite["minScore"] = suite_floor
    Path("suite.json").write_text(json.dumps(suite))


def play(*options: str) -> None:
    done = ci_evals(
        *("run", "suite.json", "--provider=offline", "--no-gate", "--min-score=0", *options), cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr


def gate(capsys, *files: str) -> tuple[int, str]:
    with pytest.raises((SystemExit, UsageError)) as ended:
        invoke(
            ["gate", *files, "--output-dir=again", "--min-score=0"], RunContext({"PATH": os.environ["PATH"]})
        )
    printed = "".join(capsys.readouterr())
    if isinstance(ended.value, UsageError):
        return 2, str(ended.value)
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed


@pytest.mark.parametrize(
    ("floors", "code", "check"),
    [
        ({}, 0, None),
        ({"suite_floor": 60}, 0, "suite:S"),
        ({"suite_floor": 90}, 1, "suite:S"),
        ({"test_floor": 0}, 0, "test:t0"),
        ({"test_floor": 50}, 1, "test:t0"),
    ],
)
def test_floors_of_suites_and_tests_are_kept(tmp_path, monkeypatch, capsys, floors, code, check):
    monkeypatch.chdir(tmp_path)
    write_suite(**floors)
    play()
    assert gate(capsys, "results/_results.json")[0] == code
    checks = {one["name"] for one in json.loads(Path("again/_results.json").read_text())["gate"]["checks"]}
    assert check is None or check in checks


def test_a_single_shard_is_refused_with_the_cure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_suite()
    for shard in (1, 2, 3):
        play(f"--shard={shard}/3", f"--output-dir=s{shard}")
    for files in (["s2/_results.json"], ["s1/_results.json", "s2/_results.json", "s3/_results.json"]):
        code, captured = gate(capsys, *files)
        assert code == 2
        assert "of 3 of a run. Merge all of them first: ci-evals merge" in captured
    assert ci_evals("merge", "s1", "s2", "s3", "--no-gate", cwd=tmp_path).returncode == 0
    assert gate(capsys, "results/_results.json")[0] == 0


def test_their_suites_may_not_be_weakened_unseen(tmp_path, monkeypatch, capsys):
    """They say what they require, as the baseline does; rows of another tool beside them hide nothing."""
    monkeypatch.chdir(tmp_path)
    write_suite(test_floor=50)
    play("--output-dir=main")
    options = ("--weakened=fail", "--baseline=main")
    write_suite()
    play()
    Path("rows.csv").write_text("test,passed\na,true\n")
    for files in (["results/_results.json"], ["results/_results.json", "rows.csv"]):
        code, printed = gate(capsys, *files, *options)
        assert code == 1, printed
        assert "minScore of “t0” of the suite “S”: 50 before, none now." in printed


def test_results_that_do_not_say_what_their_suites_require_pass_no_gate(tmp_path, monkeypatch, capsys):
    """Neither without the key nor as rows of another tool, if the baseline has it."""
    monkeypatch.chdir(tmp_path)
    write_suite(test_floor=50)
    play("--output-dir=main")
    write_suite()
    play()
    file = Path("results/_results.json")
    results = json.loads(file.read_text())
    del results["run"]["definitions"]
    file.write_text(json.dumps(results))
    Path("rows.csv").write_text("test,passed\nt0,true\nt1,true\nt2,true\n")
    for given in (str(file), "rows.csv"):
        code, printed = gate(capsys, given, "--weakened=fail", "--baseline=main")
        assert code == 3, printed
        assert "this run does not record what its suites require" in printed
