"""Counts the Python functions that a command calls: a measure of work that a busy machine does not change.

`python -m bench.calls FILE run suite.json …` runs a command of ci-evals and leaves its counts in the file.
"""

import json
import mmap
import os
import runpy
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from bench import workload
from bench.processes import Field, environment, run, server

_PROCESSES = 64
"""The most that a command may fork."""
CONVERSATIONS = 10
BUDGET = Path(__file__).parent / "budget.json"
SLACK = 1.05


def measure() -> dict[str, int]:
    """Return the calls of a start with one conversation, of one conversation more, and of its reports."""
    with server() as served, tempfile.TemporaryDirectory() as folder:
        field = Field(served, Path(folder))
        served.forget(agent=0, llm=0)
        one, many = (_play(field, conversations) for conversations in (1, 1 + CONVERSATIONS))
        report = _count(field, "report", str(field.results))
    return {"start": one, "conversation": (many - one) // CONVERSATIONS, "report": report}


def _play(field: Field, conversations: int) -> int:
    suite = field.folder / f"suite-{conversations}.json"
    loops = workload.write_suite(suite, conversations)
    urls = f"--base-url={field.server.url}", f"--output-dir={field.results}"
    return _count(field, "run", str(suite), *urls, f"--loops={loops}", "--parallel=1")


def _count(field: Field, *arguments: str) -> int:
    file = field.folder / "calls"
    file.write_bytes(bytes(8 * _PROCESSES))
    env = environment() | {"LLM_API_KEY": "bench-llm-key", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    env |= {"OPENAI_BASE_URL": f"{field.server.url}/v1"}
    run([sys.executable, "-m", "bench.calls", str(file), *arguments], env)
    return sum(memoryview(file.read_bytes()).cast("Q"))


def _counted(file: Path) -> None:
    """Run the command that this process was started with, and count its calls."""
    with file.open("r+b") as opened:
        counts = memoryview(mmap.mmap(opened.fileno(), 0)).cast("Q")
    process = 0

    def called(_frame: FrameType, event: str, _value: Any) -> None:
        if event == "call":
            counts[process] += 1

    def forked() -> None:
        nonlocal process
        process += 1 + next(index for index, count in enumerate(counts[process + 1 :]) if not count)

    os.register_at_fork(after_in_child=forked)
    threading.setprofile(called)
    sys.setprofile(called)
    runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)


def main() -> None:
    """Record a new budget, or count one command."""
    if len(sys.argv) == 1:
        budget = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "calls": measure()}
        BUDGET.write_text(json.dumps(budget, indent=2) + "\n")
        print(BUDGET.read_text())
        return
    _, file, *arguments = sys.argv
    sys.argv = ["ci-evals", *arguments]
    _counted(Path(file))


if __name__ == "__main__":
    main()
