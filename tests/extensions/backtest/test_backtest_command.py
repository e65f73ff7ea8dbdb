"""`ci-evals backtest` as its users start it: a process, an exit code, and files or none."""

import json
from dataclasses import fields

import pytest
import stored
from commands import ci_evals
from doc_pages import page, table
from pydantic.alias_generators import to_camel

from ci_evals.extensions.backtest.figures import Backtest

REPORTS = {"_backtest.json", "backtest.md", "backtest.html"}
GOOD = (1.0,) * 4
BAD = (0.0, 1.0, 1.0, 1.0)


@pytest.fixture
def runs(tmp_path):
    """Four runs of an unchanged agent in the folder `runs`, of which the second is below its floor."""
    rates = [GOOD, BAD, GOOD, GOOD]
    stored.store(tmp_path / "runs", *(stored.run(number, own) for number, own in enumerate(rates)))
    return tmp_path


def reports_in(folder):
    return {file.name for file in folder.rglob("*") if file.name in REPORTS}


@pytest.mark.end_to_end
@pytest.mark.slow
def test_backtest_writes_the_false_alarm_rate_to_console_and_three_files(runs):
    done = ci_evals("backtest", "runs", "--output-dir=out", "--quiet", cwd=runs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "On main this gate failed an unchanged agent in 1 of 2 comparisons (50 %" in done.stdout
    assert reports_in(runs / "out") == REPORTS
    assert reports_in(runs / "runs") == set()
    result = json.loads((runs / "out/_backtest.json").read_text())
    interval = {"low": pytest.approx(0.0126, abs=1e-4), "high": pytest.approx(0.9874, abs=1e-4)}
    assert result["falseAlarms"] == {"count": 1, "of": 2, "interval": interval}


WRONG = {
    "no such folder": (("nowhere",), "nowhere"),
    "a folder without results": (("empty",), "contains no _results.json"),
    "no such file of gates": (("runs", "--settings=none.yaml"), "none.yaml"),
    "an unknown option of a gate": (("runs", "--settings=unknown.yaml"), "min-scores"),
    "gates that are no mapping": (("runs", "--settings=list.yaml"), "list.yaml"),
    "gates that are no YAML": (("runs", "--settings=broken.yaml"), "broken.yaml"),
    "a floor that is no number": (("runs", "--min-score=high"), "--min-score"),
    "a drop that is no number": (("runs", "--max-drop=some"), "--max-drop"),
    "too long a history": (("runs", "--history=101"), "--history"),
    "a repository without an owner": (("runs", "--from-github=agent"), "--from-github=agent"),
    "no token": (("runs", "--from-github=acme/agent"), "GITHUB_TOKEN"),
    "reports in the place of a file": (("runs", "--output-dir=list.yaml"), "list.yaml"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "named"), WRONG.values(), ids=WRONG.keys())
def test_invalid_input_is_refused_and_nothing_is_written(runs, options, named):
    (runs / "empty").mkdir()
    (runs / "unknown.yaml").write_text("strict: {min-scores: 88}\n")
    (runs / "list.yaml").write_text("- strict\n")
    (runs / "broken.yaml").write_text("strict: {min-score: [\n")
    done = ci_evals("backtest", *options, cwd=runs)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert reports_in(runs) == set()


HOSTILE = {
    "nothing": b"",
    "bytes": b"\xff\xfe\x00\x01" * 99,
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "no run": b'{"schemaVersion": 3}',
    "no numbers": b'{"schemaVersion": 3, "score": NaN}',
}


@pytest.mark.slow
def test_invalid_results_files_are_left_out_with_reason(runs):
    for name, data in HOSTILE.items():
        (runs / "hostile" / name).mkdir(parents=True)
        (runs / "hostile" / name / "_results.json").write_bytes(data)
    done = ci_evals("backtest", "hostile", cwd=runs)
    assert done.returncode == 3
    assert "no two runs can be compared" in done.stderr
    assert done.stderr.count("left out: ") == len(HOSTILE)
    assert "Traceback" not in done.stderr
    assert reports_in(runs) == set()
    (runs / "hostile").rename(runs / "runs" / "hostile")
    done = ci_evals("backtest", "runs", "--output-dir=out", cwd=runs)
    assert done.returncode == 0, done.stderr
    result = json.loads((runs / "out/_backtest.json").read_text())
    assert (result["falseAlarms"]["of"], len(result["leftOut"])) == (2, len(HOSTILE))


def test_docs_list_exactly_the_keys_of_the_backtest_file():
    rows = table("key", page("backtest.md"))
    named = {name.strip("` ") for row in rows for name in row[0].split(",")}
    assert named == {to_camel(field.name) for field in fields(Backtest)}
