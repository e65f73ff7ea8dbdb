"""Thresholds that were meant as a fraction: nearly every run would reach 0.9 of 100 points."""

import pytest
from commands import ci_evals, read_results, write_suite
from each_row import each_row
from exits import exits

pytestmark = pytest.mark.slow
IN_PROCESS = ("--provider=offline", "--agent-in-process")
JUNIT = '<testsuite tests="1"><testcase name="greets" classname="shop"/></testsuite>'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shop.py").write_text("def reply(message): return 'Hello'\n")
    (tmp_path / "rows.xml").write_text(JUNIT)
    return tmp_path


def suite(folder, **fields) -> str:
    test = {"evaluations": [{"criterion": "Greets", "strict": "contains", "text": "Hello"}]}
    test |= fields.pop("test", {})
    return write_suite(folder, test, adapter="python:shop:reply", agentId=None, apiKey=None, **fields)


TOO_LOW = "is at most 1 point: scores run from 0 to 100. For"
THRESHOLDS = [
    (["--min-score=0.9"], f"--min-score=0.9 {TOO_LOW} 90 % write 90"),
    (["--min-score=1"], f"--min-score=1 {TOO_LOW} 100 % write 100"),
    (["--thresholds=suite:Stub=0.95"], "--thresholds: suite:Stub=0.95 is at most 1 point"),
    (["--min-score=0"], None),
    (["--min-score=1.5"], None),
    (["--min-score=90"], None),
]


@each_row(("options", "warning"), THRESHOLDS)
def test_fractional_threshold_option_causes_warning_in_console_and_reports(folder, options, warning):
    ran = exits(0, "run", suite(folder), *IN_PROCESS, *options, cwd=folder)
    warned = [text for text in read_results(folder)["run"]["warnings"] if "0 to 100" in text]
    assert len(warned) == (warning is not None)
    assert ("0 to 100" in ran.stderr) is (warning is not None)
    if warning:
        assert warning in warned[0]
        assert warning in ran.stderr
        assert ran.stderr.count(warning) == 1
        assert warning.partition(":")[0] in (folder / "results/summary.md").read_text()


def test_fractional_threshold_variable_causes_warning_in_other_commands(folder):
    warning = "--min-score=0.9 is at most 1 point"
    floor = {"CI_EVALS_MIN_SCORE": "0.9"}
    ci_evals("run", suite(folder), *IN_PROCESS, "--output-dir=one", cwd=folder)
    for command in (["gate", "rows.xml"], ["merge", "one", "--output-dir=merged/results"], ["odds", "one"]):
        ran = ci_evals(*command, cwd=folder, env=floor)
        assert warning in ran.stderr, command
    assert any(warning in text for text in read_results(folder)["run"]["warnings"])
    assert any(warning in text for text in read_results(folder / "merged")["run"]["warnings"])


@each_row(
    ("fields", "where"),
    [
        ({"minScore": 0.95}, "minScore: 0.95 is at most 1 point"),
        ({"test": {"minScore": 0.8}}, "tests[0].minScore: 0.8 is at most 1 point"),
        ({"test": {"minScore": 1}}, "tests[0].minScore: 1 is at most 1 point"),
        ({"minScore": 0}, None),
        ({"minScore": 95, "test": {"minScore": 2}}, None),
    ],
)
@pytest.mark.parametrize("command", ["validate", "run"])
def test_fractional_threshold_in_suite_causes_warning_with_line(folder, command, fields, where):
    options = ["--provider=offline"] if command == "run" else []
    ran = exits(0, command, suite(folder, **fields), *options, cwd=folder)
    assert ("0 to 100" in ran.stderr) is (where is not None)
    if where:
        assert "warning: suite.json:1:" in ran.stderr
        assert where in ran.stderr
