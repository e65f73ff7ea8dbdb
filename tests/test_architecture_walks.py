"""A real run takes each step of the two walks in ARCHITECTURE.md, in the order that is written."""

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import action, ci_evals
from doc_pages import ROOT

pytestmark = pytest.mark.slow

PACKAGE = ROOT / "ci_evals"
MOST_STEPS = 16

# Writes every call of the functions named, also in the processes that the command forks.
FOLLOWED = """
import os, runpy, sys
calls = os.open(os.environ["CALLS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
steps = set(os.environ["STEPS"].splitlines())
def follow(frame, event, _):
    if event == "call":
        code = frame.f_code
        name = f"{code.co_filename} {code.co_qualname}"
        if name in steps:
            os.write(calls, f"{name}\\n".encode())
sys.setprofile(follow)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Step(NamedTuple):
    module: str
    name: str


def walks() -> list[list[Step]]:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Two walks")[1].split("\n## ")[0]
    lists = re.split(r"^\*\*.*\*\*$", section, flags=re.MULTILINE)[1:]
    return [
        [Step(*step) for step in re.findall(r"^\d+\. `(\S+)` `(\S+)`:", text, re.MULTILINE)] for text in lists
    ]


def test_run_takes_steps_of_architecture_walks_in_documented_order(tmp_path: Path) -> None:
    """In a run of the action that is compared with a baseline."""
    inputs = {
        "CALLS": str(tmp_path / "calls"), "INPUT_SUITES": "demo:hr", "INPUT_TEST": "Refuses",
        "INPUT_PROVIDER": "offline", "INPUT_MAX-DROP": "5", "INPUT_OUTPUT-DIR": "results",
    }  # fmt: skip
    inputs["STEPS"] = "\n".join(f"{PACKAGE / step.module} {step.name}" for walk in walks() for step in walk)
    baseline = action(cwd=tmp_path, env=inputs)
    assert baseline.returncode == 0, baseline.stderr
    inputs |= {"INPUT_BASELINE": "results/_results.json", "INPUT_OUTPUT-DIR": "again"}
    program = tmp_path / "followed.py"
    program.write_text(FOLLOWED)
    followed = ci_evals(str(ROOT / "entrypoint.py"), cwd=tmp_path, env=inputs, program=str(program))
    assert followed.returncode in {0, 1}, followed.stderr
    lines = (line.split() for line in (tmp_path / "calls").read_text().splitlines())
    calls = [Step(Path(file).relative_to(PACKAGE).as_posix(), name) for file, name in lines]
    from_check, from_input = walks()
    for steps in (from_check, from_input):
        assert 10 <= len(steps) <= MOST_STEPS
        remaining = iter(calls)
        for step in steps:
            named = attrgetter(step.name)(import_module(f"ci_evals.{step.module[:-3].replace('/', '.')}"))
            assert isinstance(named, type) or step in remaining, step
