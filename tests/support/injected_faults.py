"""A run whose system calls fail, one at a time, and what must be true of it whichever it was.

    with prepared_runs(folder) as play:
        writes = play().counts["write"]
        faulty = play(Injected("write", writes // 2))
        assert not problems(faulty)

The calls fail in the C library (`system_faults.c`, preloaded): for Python, for its libraries and for ours.
"""

import errno
import json
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import fakes
import world
from commands import CLEAN_ENV, ci_evals, write_suite

KINDS = ("open", "write", "sync", "rename", "mkdir", "unlink", "connect", "spawn", "thread")
ERRORS = {
    "open": errno.EMFILE, "write": errno.ENOSPC, "sync": errno.EIO, "rename": errno.EIO,
    "mkdir": errno.ENOSPC, "unlink": errno.EIO, "connect": errno.ECONNREFUSED, "spawn": errno.EAGAIN,
    "thread": errno.EAGAIN,
}  # fmt: skip
"""What such a call fails with where a machine is full, worn out or badly connected."""
SOURCE = Path(__file__).with_name("system_faults.c")
AGENT = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["type"] == "message":
        reply = {"text": "Your table is booked.", "workflows": ["BOOK_TABLE"], "trace": {}}
        print(json.dumps(reply), flush=True)
"""
TESTS = 6


@dataclass(frozen=True)
class Injected:
    """The call that fails: the `at`-th of its kind since play began, and with `lasts` all that follow."""

    kind: str
    at: int
    lasts: bool = False

    @property
    def environment(self) -> dict[str, str]:
        lasting = {"FAULTS_LASTS": "1"} if self.lasts else {}
        number = {"FAULTS_ERRNO": str(ERRORS[self.kind]), "FAULTS_AT": str(self.at)}
        return {"FAULTS_KIND": self.kind} | number | lasting


@dataclass
class FinishedRun:
    """What a run left behind."""

    folder: Path
    code: int
    out: str
    err: str
    fault: Injected | None
    counts: Counter[str]
    failed: int
    """Calls that were made to fail."""
    about: str
    """The file of the first of them."""
    again: "FinishedRun | None" = None
    """The same run, resumed without a fault."""
    conversations: int = 0
    """Conversations that the agents were asked for."""

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def has_invalid_trial(self) -> bool:
        """Whether a trial in the journal suffered from a fault of others; no resumed run plays it again."""
        results = [one["result"] for one in self._entries()]
        undecided = any(result["outcome"] == "undecided" for one in results for result in one["findings"])
        return undecided or any(one["status"] == "failed" for one in results)

    def journal(self) -> list[tuple[int, int, int]]:
        """The trials in the journal's whole lines."""
        return [(one["suite"], one["test"], one["index"]) for one in self._entries()]

    def _entries(self) -> list[dict[str, Any]]:
        path = self.results / "journal.jsonl"
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        records = [json.loads(line) for line in lines[1:] if line.endswith(b"\n")]
        return [one for one in records if "result" in one]


@cache
def library(folder: Path) -> Path | None:
    """The preloaded library, compiled; None without a compiler, or on a system that does not preload."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        return None
    built = folder / "system_faults.so"
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", built, SOURCE, "-ldl"], check=True)
    return built


def _verdict(_asked: world.ModelRequest) -> str:
    return fakes.judge_answer("pass", "It greets.", (1, "Good day"))


def _answer(heard: world.AgentMessage) -> dict[str, object]:
    """A reply that carries the run's keys, as a careless agent's may."""
    return world.message(
        f"Good day. My key is {world.AGENT_KEY}, yours {world.LLM_KEY}.", workflows=["GREET"], trace={}
    )


def _test(name: str, *, judged: bool = False, tool: str = "GREET", **fields: object) -> dict[str, object]:
    strict = {"criterion": f"{tool} is used", "strict": "tool_used", "toolName": tool}
    criteria = [strict, {"criterion": "The agent greets"}] if judged else [strict]
    return {"name": name, "guidelines": "You greet.", "evaluations": criteria, **fields}


def write_suites(folder: Path) -> tuple[str, ...]:
    """Two suites, one test of which the agent never passes: no run of them may succeed."""
    turns = {"turns": [{"user": "Hello"}, {"user": "And again"}], "maxTurns": 2}
    (folder / "agent.py").write_text(AGENT)
    return (
        write_suite(
            folder,
            _test("Greets", judged=True, **turns),
            _test("Never escalates", tool="ESCALATE_NEVER", critical=True, **turns),
            _test("Greets again", judged=True, **turns),
            _test("Greets quietly", **turns),
            name="greetings.json",
        ),
        write_suite(
            folder,
            _test("Books a table", tool="BOOK_TABLE", **turns),
            _test("Books another", tool="BOOK_TABLE", **turns),
            name="bookings.json",
            adapter=f"command: {sys.executable} -I -S agent.py",
        ),
    )


@contextmanager
def prepared_runs(root: Path) -> Iterator[Callable[..., FinishedRun]]:
    """Gives what plays the run in a folder of its own, with or without a fault."""
    preload = library(root)
    assert preload, "there is no C compiler"
    with world.llm(_verdict) as models, world.agent(_answer) as agent:
        number = 0

        def play(fault: Injected | None = None, *, resumed: Path | None = None) -> FinishedRun:
            nonlocal number
            number += 1
            folder = resumed or root / f"run-{number}"
            folder.mkdir(exist_ok=True)
            suites = write_suites(folder)
            before = len(agent.tasks)
            environment = models.env | {
                "CI_EVALS_BASE_URL": agent.url, "CI_EVALS_JUDGE_CHECK": "off", "AGENT_KEY": world.AGENT_KEY,
                "GITHUB_OUTPUT": str(folder / "outputs.txt"),
                "GITHUB_STEP_SUMMARY": str(folder / "step-summary.md"), "TMPDIR": str(folder),
            }  # fmt: skip
            options = [
                "--parallel=2", "--junit=tests.xml", "--record=recording", f"--judge-cache={folder}/cache",
            ]  # fmt: skip
            if resumed:
                ended = ci_evals("run", *suites, *options, "--resume=results", cwd=folder, env=environment)
            else:
                environment |= {"LD_PRELOAD": str(preload), "FAULTS_FROM": "journal.jsonl"}
                environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
                environment |= {"FAULTS_BOOK": str(folder / "book")} | (fault.environment if fault else {})
                ended = _started([*suites, *options], folder, environment)
            counts, failed, about = _read_book(folder / "book")
            run = FinishedRun(
                folder, ended.returncode, ended.stdout, ended.stderr, fault, counts, failed, about
            )
            run.conversations = len(agent.tasks) - before
            return run

        yield play


def _started(arguments: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Run in a Python of its own: the system preloads the library only where a program is started."""
    return subprocess.run(
        [sys.executable, "-m", "ci_evals", "run", *arguments],
        cwd=folder,
        env=CLEAN_ENV | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _read_book(path: Path) -> tuple[Counter[str], int, str]:
    if not path.is_file():
        return Counter(), 0, ""
    data = path.read_bytes()
    *counts, failed = struct.unpack_from(f"{len(KINDS) + 1}Q", data)
    about = data[8 * (len(KINDS) + 1) :].split(b"\0")[0].decode(errors="replace")
    return Counter(dict(zip(KINDS, counts, strict=True))), failed, about


def problems(run: FinishedRun) -> list[str]:
    """Everything that is wrong with a run one of whose tests must fail."""
    return [*_exit_code_problems(run), *_trial_problems(run), *_file_problems(run), *_secret_problems(run)]


def _exit_code_problems(run: FinishedRun) -> Iterator[str]:
    refused = run.code == 2 and not run.journal() and not run.conversations
    if run.code not in (1, 3) and not refused:
        yield f"exit code {run.code}"
    if "Traceback" in run.err:
        yield "a traceback"
    outputs = run.folder / "outputs.txt"
    written = outputs.read_text() if outputs.is_file() else ""
    if re.search(
        r"^passed=true$|^result=(passed|skipped)$|^passed<<(\S+)\n true\n\2$", written, re.MULTILINE
    ):
        yield "the outputs say that it passed"


def _trial_problems(run: FinishedRun) -> Iterator[str]:
    twice = [trial for trial, number in Counter(run.journal()).items() if number > 1]
    if twice:
        yield f"in the journal twice: {twice}"
    report = run.results / "_results.json"
    reports = [report] if report.is_file() else list(run.folder.glob("ci-evals-*/_results.json"))
    for path in reports:
        results = _json(path)
        if results is None:
            continue  # told by _file_problems
        if results["run"]["status"] == "unfinished":
            if run.code == 1:
                yield "exit code 1, and the report says that the run is unfinished"
            continue
        tests = [test for suite in results["suites"] for test in suite["tests"]]
        counted = sum(len(test["trials"]) + test["notRun"] for test in tests)
        if counted != TESTS:
            yield f"{counted} of {TESTS} trials in the results"
        if results["gate"]["passed"] or results["gate"]["exitCode"] == 0:
            yield "the results say that the gate passed"
        if results["gate"]["exitCode"] == 1 != run.code and run.code != 3:
            yield "another exit code than in the results"
        finished = [t for test in tests for t in test["trials"] if t["status"] != "interrupted"]
        kept = len({*run.journal()})
        if len(finished) < kept:
            yield f"{kept} trials in the journal, {len(finished)} in the results"
    if not reports and run.code == 1:
        yield "exit code 1 without results"


def _file_problems(run: FinishedRun) -> Iterator[str]:
    for path in sorted(run.folder.rglob("*")):
        if not path.is_file() or "cache" in path.parts or path.name in {"book", "agent.py"}:
            continue
        name = path.relative_to(run.folder).as_posix()
        match path.suffix:
            case ".tmp" if not (run.fault and run.fault.kind == "unlink"):
                yield f"{name} is left"
            case ".json":
                if _json(path) is None:
                    yield f"{name} is partial"
            case ".xml":
                try:
                    ET.fromstring(path.read_text())
                except (ET.ParseError, ValueError):
                    yield f"{name} is partial"
            case ".html" if not path.read_text().rstrip().endswith("</html>"):
                yield f"{name} is partial"
            case ".md" if not path.read_text().endswith("\n") and path.name != "step-summary.md":
                yield f"{name} is partial"


def _secret_problems(run: FinishedRun) -> Iterator[str]:
    texts = {"stdout": run.out, "stderr": run.err}
    for path in run.folder.rglob("*"):
        if path.is_file() and path.name != "book":
            texts[path.relative_to(run.folder).as_posix()] = path.read_text(errors="replace")
    for name, text in texts.items():
        for secret in (world.AGENT_KEY, world.LLM_KEY):
            if secret in text:
                yield f"a key in {name}"


def _json(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def resume_problems(play: Callable[..., FinishedRun], faulty: FinishedRun) -> list[str]:
    """What is wrong when the run is resumed where it stopped, with nothing that fails any more."""
    kept = len(faulty.journal())
    again = play(resumed=faulty.folder)
    if again.code == 2 and "resume" in again.err:  # it had come to its end, or nothing was kept
        return [] if faulty.code == 1 or "journal" in again.err else [f"cannot be resumed: {again.err}"]
    wrong = [f"resumed: {one}" for one in problems(again)]
    if again.code != (3 if faulty.has_invalid_trial else 1):
        wrong.append(f"resumed: exit code {again.code}: {again.err[-600:]}")
    if kept and again.conversations > TESTS - kept:
        wrong.append(f"{kept} trials were kept, and {again.conversations} conversations were opened")
    return wrong
