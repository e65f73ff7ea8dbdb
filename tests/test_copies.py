"""Mypy checks the fields that a copy of a value changes, and refuses copies whose changes it cannot see."""

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_changed_field_must_exist_and_have_its_type(tmp_path):
    """Of a union, in each of its types; and a new value must have its own fields alone."""
    source = tmp_path / "copies.py"
    source.write_text(LINES)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(source)]  # by the cache of `make lint`
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert {int(line.removeprefix(str(source)).split(":")[1]) for line in errors} == REFUSED, checked
