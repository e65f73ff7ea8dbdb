"""Counts the Python functions that a command calls: a measure of work that a busy machine does not change.

`python -m bench.calls FOLDER run suite.json …` runs a command and leaves its counts in the folder.
"""

import _thread
import atexit
import cProfile
import json
import os
import runpy
import shutil
import sys
import tempfile
import threading
from _thread import start_new_thread
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from bench import spans, workload
from bench.processes import Field, environment, free_port, run, server
from bench.server import TURNS

CONVERSATIONS = 10
ROWS = 200
"""Gated against as many of another tool. The odds of the next run are simulated too."""
BUDGET = Path(__file__).parent / "budget.json"
SLACK = 1.05


def measure() -> dict[str, int]:
    """Return the calls of a start, one conversation more, one with 20 spans a turn, reports, and rows."""
    with server() as served, tempfile.TemporaryDirectory() as folder:
        field = Field(served, Path(folder))
        start, conversation = _margin(field, CONVERSATIONS)
        report = _count(field, "report", str(field.results))
        port = free_port()
        options = ("--otlp", f"--otlp-port={port}")
        _, traced = _margin(field, CONVERSATIONS, *options, text_only=True, otlp=port, export=0.001)
        spans.check(field.results, TURNS * (1 + CONVERSATIONS))
        gate = _gate(field, ROWS)
    return {"start": start, "conversation": conversation, "traced": traced, "report": report, "gate": gate}


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
    folder = field.folder / "calls"
    folder.mkdir(exist_ok=True)
    env = environment() | {"LLM_API_KEY": "bench-llm-key", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    env |= {"OPENAI_BASE_URL": f"{field.server.url}/v1"}
    run([sys.executable, "-m", "bench.calls", str(folder), *arguments], env)
    counts = [int(file.read_text()) for file in folder.iterdir()]
    shutil.rmtree(folder)
    return sum(counts)


def _counted(folder: Path) -> None:
    """Run the command that this process was started with; each process leaves its count in the folder."""
    profiles: list[cProfile.Profile] = []

    def begin() -> None:
        profiles.append(cProfile.Profile(builtins=False, subcalls=False))
        profiles[-1].enable()

    def forked() -> None:
        profiles.clear()  # what was called so far is its parent's, which has one thread
        begin()

    def write() -> None:
        calls = sum(entry.callcount for profile in [*profiles] for entry in profile.getstats())
        (folder / str(os.getpid())).write_text(str(calls))

    def exit_counted(status: int, end: Callable[[int], NoReturn] = os._exit) -> NoReturn:
        write()
        end(status)

    def start(function: Callable[..., object], args: tuple[Any, ...], start: Any = start_new_thread) -> int:
        def counted() -> None:
            begin()
            function(*args)

        thread: int = start(counted, ())
        return thread

    os.register_at_fork(after_in_child=forked)
    os._exit = exit_counted
    atexit.register(write)
    threading.setprofile(lambda *_: begin())
    _thread.start_new_thread = start  # `threading` does not see those of `ci_evals.threads`
    begin()
    runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)


def main() -> None:
    """Record a new budget, or count one command."""
    if len(sys.argv) == 1:
        budget = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "calls": measure()}
        BUDGET.write_text(json.dumps(budget, indent=2) + "\n")
        print(BUDGET.read_text())
        return
    _, folder, *arguments = sys.argv
    sys.argv = ["ci-evals", *arguments]
    _counted(Path(folder))


if __name__ == "__main__":
    main()
