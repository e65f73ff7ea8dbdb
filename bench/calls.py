"""Counts the Python functions that a command calls: a measure of work that a busy machine does not change.

`python -m bench.calls FILE run suite.json …` runs a command of ci-evals and leaves its counts in the file.
"""

import _thread
import json
import mmap
import os
import runpy
import sys
import tempfile
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bench import spans, workload
from bench.processes import Field, environment, free_port, run, server
from bench.server import TURNS

_PROCESSES = 64
"""The most that a command may fork."""
CONVERSATIONS = 10
ROWS = 6_000, 8_000
"""Gated against as many of another tool: enough that no odds are simulated, which would cost more."""
BUDGET = Path(__file__).parent / "budget.json"
SLACK = 1.05
SPANS = 1.33
"""The most calls of a conversation with 20 spans a turn, over one without them: 3 % more than measured."""


def measure() -> dict[str, int]:
    """Return the calls of a start with one conversation, of one more, of reports, and of 1,000 gated rows."""
    with _field() as field:
        start, conversation = _margin(field, CONVERSATIONS)
        report = _count(field, "report", str(field.results))
        few, more = (_gate(field, rows) for rows in ROWS)
    rows = 1_000 * (more - few) // (ROWS[1] - ROWS[0])
    return {"start": start, "conversation": conversation, "report": report, "rows": rows}


def measure_spans() -> float:
    """Return the calls of one conversation more whose agent sends spans, over one whose agent sends none."""
    with _field() as field:
        port, count = free_port(), 3 * CONVERSATIONS
        _, without = _margin(field, count, text_only=True)
        options = ("--otlp", f"--otlp-port={port}")
        _, traced = _margin(field, count, *options, text_only=True, otlp=port, export=0.001)
        spans.check(field.results, TURNS * (1 + count))
    return traced / without


@contextmanager
def _field() -> Iterator[Field]:
    with server() as served, tempfile.TemporaryDirectory() as folder:
        yield Field(served, Path(folder))


def _margin(
    field: Field, count: int, *options: str, text_only: bool = False, **manners: float
) -> tuple[int, int]:
    """Return the calls of a run of one conversation, and of one more of so many."""
    counts = []
    for conversations in (1, 1 + count):
        field.server.forget(agent=0, llm=0, **manners)  # and the connection to the last run's receiver
        suite = field.folder / f"suite-{conversations}.json"
        loops = workload.write_suite(suite, conversations, text_only=text_only)
        urls = f"--base-url={field.server.url}", f"--output-dir={field.results}"
        counts.append(_count(field, "run", str(suite), *urls, f"--loops={loops}", "--parallel=1", *options))
    return counts[0], (counts[1] - counts[0]) // count


def _gate(field: Field, rows: int) -> int:
    files = {name: workload.write_rows(field.folder / name, rows, name) for name in ("head", "base")}
    return _count(
        field, "gate", str(files["head"]), f"--baseline={files['base']}", f"--output-dir={field.results}"
    )


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

    def start(function: Callable[..., object], args: tuple[Any, ...], start: Any = start_new_thread) -> int:
        def counted() -> None:
            sys.setprofile(called)
            function(*args)

        thread: int = start(counted, ())
        return thread

    os.register_at_fork(after_in_child=forked)
    threading.setprofile(called)
    _thread.start_new_thread = start  # `threading` does not see those of `ci_evals.threads`
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
