"""`import` as its users start it."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from commands import ci_evals
from each_row import each_row

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.importing import import_suite
from ci_evals.extensions.importers.settings import ImportSettings

QUESTION = {"task_id": "q-1", "Question": "What is 6 times 7?", "Level": 1, "Final answer": "42"}
QUESTION |= {"file_name": ""}


@pytest.mark.slow
@pytest.mark.end_to_end
def test_imported_suite_is_written_and_valid(tmp_path):
    (tmp_path / "metadata.jsonl").write_text(json.dumps(QUESTION) + "\n")
    done = ci_evals("import", "gaia", "metadata.jsonl", "--output=evals/gaia.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "1 test from metadata.jsonl, written to evals/gaia.yaml" in done.stderr
    done = ci_evals("validate", "evals/gaia.yaml", "--agent-id=a", "--agent-key=key-123456", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == (
        "ok  evals/gaia.yaml: GAIA: 1 test, 1 evaluation, 1 turn\n"
        "    an agent that refuses everything would score 0.0 by strict checks\n"
    )


@pytest.mark.slow
def test_import_prints_suite_or_writes_new_file_without_overwriting(tmp_path):
    (tmp_path / "m.jsonl").write_text(json.dumps(QUESTION))
    done = ci_evals("import", "gaia", "m.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    (tmp_path / "printed.yaml").write_text(done.stdout)
    assert ci_evals("validate", "printed.yaml", "--adapter=demo", cwd=tmp_path).returncode == 0
    (tmp_path / "t.csv").write_text("user,criterion\nHello,The agent greets\n")
    run_import(tmp_path, "csv", "t.csv", "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["tests"][0]["name"] == "Hello"
    (tmp_path / "t.yaml").write_text("mine")
    done = ci_evals("import", "csv", "t.csv", "--output=t.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "exists already and is not overwritten" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "t.yaml").read_text() == "mine"


def run_import(folder, kind, name, output=None):
    """Import a file as the command does, from its folder."""
    with contextlib.chdir(folder):
        settings = ImportSettings(format=kind, file=Path(name), output=output and Path(output))
        import_suite(settings, RunContext({}))


@each_row(("kind", "name", "output", "reason"), [
    ("csv", "no.csv", None, "no.csv: cannot be read: No such file or directory"),
    ("csv", ".", None, "cannot be read: Is a directory"),
    ("csv", "latin.csv", None, "latin.csv:2: not UTF-8"),
    ("csv", "long.csv", None, "larger than 20 MB"),
    ("csv", "t.csv", "t.txt", "is not a suite's name"),
    ("xls", "t.csv", None, "'xls' is not one of"),
    ("csv", "many.csv", None, "many.csv:2:1: max_turns: max_turns: 'many' is not a number of turns"),
    ("promptfoo", "c.yaml", None,
     "c.yaml:1:8: tests: 'file://none.yaml' cannot be read: No such file or directory"),
])  # fmt: skip
def test_unreadable_file_or_file_without_usable_tests_is_refused_with_the_reason(
    tmp_path, capsys, kind, name, output, reason
):
    (tmp_path / "latin.csv").write_bytes(b"user\nOl\xe9\n")
    (tmp_path / "long.csv").touch()
    os.truncate(tmp_path / "long.csv", 20_000_001)
    (tmp_path / "t.csv").write_text("user\nHello\n")
    (tmp_path / "many.csv").write_text("user,max_turns\nHi,many\n")
    (tmp_path / "c.yaml").write_text("tests: file://none.yaml\n")
    with pytest.raises(UsageError) as refused:
        run_import(tmp_path, kind, name, output)
    assert reason in str(refused.value)
    assert capsys.readouterr().out == ""


def test_omissions_are_listed_first_and_long_notes_are_cut(tmp_path, capsys):
    (tmp_path / "tests.csv").write_text("question,__expected\nOpen?,icontains: 9 am\nWho?,\n")
    notes = [{"vars": {"question": "Hi"}, "assert": [{"type": "javascript", "value": "x"}] * 30}]
    config = {"prompts": ["{{question}}"], "tests": ["file://tests.csv", "file://tests.py", *notes]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    run_import(tmp_path, "promptfoo", "c.json", "s.yaml")
    stderr = capsys.readouterr().err
    heading, omitted, unchecked, noted, *_ = stderr.splitlines()
    assert heading == "3 tests from c.json, written to s.yaml; 1 left out"
    assert omitted.startswith("  c.json:1:")
    assert "'file://tests.py' is code, which is not run" in omitted
    assert unchecked == "  2 tests check only that the agent answers: 'Who?', 'Hi'"
    assert "[0]: 'javascript' has no counterpart" in noted
    assert stderr.count("has no counterpart") == 20
    assert "and 10 more" in stderr
