"""Runs where Python lacks what Windows lacks. Real Windows and macOS runners play in our own workflow."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import ACTION_SCRIPT, CLEAN_ENV

pytestmark = pytest.mark.slow

LESS = Path(__file__).parent / "without_posix"
CODE_PAGE = {"PYTHONPATH": str(LESS), "PYTHONIOENCODING": "cp1252"}
AGENT = "def reply(message, **_): return 'hello ' + message\n"
SUITE = """\
name: Greets
adapter: python:greeter:reply
tests:
  - name: "Says hello \\u2713"
    guidelines: Say hello.
    maxTurns: 1
    turns: [{user: Hi}]
    evaluations: [{criterion: It greets, strict: contains, text: hello}]
"""


def start_run(folder, *args):
    command = [sys.executable, ACTION_SCRIPT, "run", *args, "--provider=offline"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "cp1252"}
    return subprocess.Popen(command, cwd=folder, env=CLEAN_ENV | CODE_PAGE, text=True, **streams)


def test_run_without_posix_ends_with_verdict(tmp_path):
    """An agent in Python has its own process there too, and names outside the code page break nothing."""
    (tmp_path / "greeter.py").write_text(AGENT)
    (tmp_path / "suite.yml").write_text(SUITE)
    run = start_run(tmp_path, "suite.yml", "demo:hr")
    out, _ = run.communicate(timeout=300)
    assert run.returncode == 0, out
    assert "Evals passed: 100 / 100" in out
    lines = (tmp_path / "results/journal.jsonl").read_bytes().splitlines()
    assert len(lines) > 13


def test_interrupted_run_without_posix_writes_reports(tmp_path):
    run = start_run(tmp_path, "demo:hr", "--loops=300")
    deadline = time.monotonic() + 300
    while not (tmp_path / "results/journal.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=300)
    assert run.returncode == 130, out
    assert "trials not run" in out
