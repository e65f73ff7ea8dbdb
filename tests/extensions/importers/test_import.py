"""`import` as its users start it."""

import json

import pytest
from commands import ci_evals

pytestmark = pytest.mark.slow

QUESTION = {"task_id": "q-1", "Question": "What is 6 times 7?", "Level": 1, "Final answer": "42"}
QUESTION |= {"file_name": ""}


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


def test_import_prints_suite_or_writes_new_file_without_overwriting(tmp_path):
    (tmp_path / "m.jsonl").write_text(json.dumps(QUESTION))
    done = ci_evals("import", "gaia", "m.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    (tmp_path / "printed.yaml").write_text(done.stdout)
    assert ci_evals("validate", "printed.yaml", "--adapter=demo", cwd=tmp_path).returncode == 0
    (tmp_path / "t.csv").write_text("user,criterion\nHello,The agent greets\n")
    assert ci_evals("import", "csv", "t.csv", "--output=t.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "t.json").read_text())["tests"][0]["name"] == "Hello"
    (tmp_path / "t.csv").write_text("user\nHello\n")
    (tmp_path / "t.yaml").write_text("mine")
    assert "exists already and is not overwritten" in error_of(tmp_path, "csv", "t.csv", "--output=t.yaml")
    assert (tmp_path / "t.yaml").read_text() == "mine"


def error_of(folder, *args):
    done = ci_evals("import", *args, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_unreadable_input_is_reported_without_a_traceback(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"user\nOl\xe9\n")
    (tmp_path / "long.csv").write_bytes(b"a" * 20_000_001)
    (tmp_path / "t.csv").write_text("user\nHello\n")
    assert "no.csv: cannot be read: No such file or directory" in error_of(tmp_path, "csv", "no.csv")
    assert "cannot be read: Is a directory" in error_of(tmp_path, "csv", ".")
    assert "latin.csv:2: not UTF-8" in error_of(tmp_path, "csv", "latin.csv")
    assert "larger than 20 MB" in error_of(tmp_path, "csv", "long.csv")
    assert "is not a suite's name" in error_of(tmp_path, "csv", "t.csv", "--output=t.txt")
    assert "'xls' is not one of" in error_of(tmp_path, "xls", "t.csv")


def test_omissions_are_listed_first_and_long_notes_are_cut(tmp_path):
    (tmp_path / "tests.csv").write_text("question,__expected\nOpen?,icontains: 9 am\nWho?,\n")
    notes = [{"vars": {"question": "Hi"}, "assert": [{"type": "javascript", "value": "x"}] * 30}]
    config = {"prompts": ["{{question}}"], "tests": ["file://tests.csv", "file://tests.py", *notes]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    done = ci_evals("import", "promptfoo", "c.json", "--output=s.yaml", cwd=tmp_path)
    assert done.returncode == 0
    stderr = done.stderr.splitlines()
    assert stderr[0] == "3 tests from c.json, written to s.yaml; 1 left out"
    assert stderr[1].startswith("  c.json:1:")
    assert "'file://tests.py' is code, which is not run" in stderr[1]
    assert stderr[2] == "  2 tests check only that the agent answers: 'Who?', 'Hi'"
    assert "[0]: 'javascript' has no counterpart" in stderr[3]
    assert done.stderr.count("has no counterpart") == 20
    assert "and 10 more" in done.stderr


def test_file_without_usable_tests_is_refused_with_the_reasons(tmp_path):
    (tmp_path / "t.csv").write_text("user,max_turns\nHi,many\n")
    (tmp_path / "c.yaml").write_text("tests: file://none.yaml\n")
    message = error_of(tmp_path, "csv", "t.csv")
    assert "t.csv:2:1: max_turns: max_turns: 'many' is not a number of turns" in message
    message = error_of(tmp_path, "promptfoo", "c.yaml")
    assert "c.yaml:1:8: tests: 'file://none.yaml' cannot be read: No such file or directory" in message
