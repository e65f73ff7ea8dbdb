"""Mypy checks the fields that a copy of a value changes, and refuses copies whose changes it cannot see."""

import sys
from pathlib import Path

import pytest
from programs import run_captured

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
LINES = """\
from ci_evals.domain.transcript import Integration, Reply, ToolCall

def changed(reply: Reply, call: ToolCall | Integration) -> None:
    reply.copy_with(agent="Hello", tool_calls=())
    call.copy_with(arguments=None)
    reply.copy_with(agnet="Hello")
    reply.copy_with(agent=None)
    call.copy_with(tools=())
    reply.model_copy(update={"agent": "Hello"})
    reply.model_copy(deep=True)
    Reply(agent="Hello", latency_seconds=1, agnet="Hello")
"""
REFUSED = {6, 7, 8, 9, 11}


def test_mypy_rejects_unknown_or_mistyped_field_in_copy(tmp_path):
    source = tmp_path / "copies.py"
    source.write_text(LINES)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(source)]  # by the cache of `make lint`
    checked = run_captured(command, cwd=ROOT, timeout=300)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert {int(line.removeprefix(str(source)).split(":")[1]) for line in errors} == REFUSED, checked
