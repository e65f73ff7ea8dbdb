"""A run on a machine whose files or memory run out: its reports are written, and nothing passes."""

import errno
import resource
import subprocess
import sys

import pytest
from commands import CLEAN_ENV, read_results

from ci_evals.adapters.reserve import Reserve
from ci_evals.domain.errors import exhausted

pytestmark = pytest.mark.slow

RUN = """
import os, resource, sys, threading, time
from pathlib import Path
from ci_evals.cli.app import invoke
from ci_evals.cli.process.guard import run_command
from ci_evals.cli.run_context import RunContext

kept = []

def files():
    while True:
        try:
            kept.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            time.sleep(0.001)

def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (pages + 2**24, resource.RLIM_INFINITY))
    while True:
        try:
            kept.append(bytearray(2**16))
        except MemoryError:
            return

def leak():
    journal = Path("results/journal.jsonl")
    while not journal.exists() or journal.read_bytes().count(b"\\n") < 3:
        time.sleep(0.005)
    {"files": files, "memory": memory}[sys.argv[1]]()

threading.Thread(target=leak, daemon=True).start()
args = ["run", "demo:hr", "--provider=offline", "--parallel=4", "--loops=10", "--quiet"]
run_command(lambda: invoke(args, RunContext()), args)
"""


PLANNED = 12
"""Trials of the suite that is played."""


def ends(folder, what):
    """A run in whose process, once it has begun, something takes all that there is."""
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", sys.executable, "-c", RUN, what],
        cwd=folder,
        env=CLEAN_ENV,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stderr


def test_reports_are_written_if_no_more_files_can_be_opened(tmp_path):
    """Whatever leaks them: what had finished is reported, and the run has no verdict."""
    code, text = ends(tmp_path, "files")
    results = read_results(tmp_path)
    # A run that has its connections already may need no more files.
    assert (code, results["run"]["status"]) in {(0, "completed"), (3, "stopped"), (3, "completed")}, text
    assert results["counts"]["trials"] >= 2
    folder = tmp_path / "results"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {"_results.json", "summary.md", "junit.xml", "ctrf.json", "report.html", "journal.jsonl"}
    assert "bug" not in text


def test_exhausted_memory_passes_nothing(tmp_path):
    """The reports are of this run, or say that it has not finished; no earlier one's are left."""
    code, items = ends(tmp_path, "memory")
    results = read_results(tmp_path)
    ended = (code, results["run"]["status"], results["gate"]["passed"])
    lost = {(3, "stopped", False), (3, "unfinished", False), (3, "completed", False)}
    assert ended in {(0, "completed", True), *lost}, items[-2000:]


LIMITS = [
    *("-n 12", "-n 20", "-n 32", "-v 172000"),
    *(pytest.param(limit, marks=pytest.mark.endurance) for limit in ("-n 15", "-v 165000")),
]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_run_within_a_limit_ends_with_reports_or_with_words(tmp_path, limit):
    """It never waits for what could not begin; it passes only where all was played and is reported."""
    command = [sys.executable, "-m", "ci_evals", "run", "demo:hr", "--provider=offline"]
    ran = subprocess.run(
        [
            "sh",
            "-c",
            f'ulimit {limit}; exec "$@"',
            "sh",
            *command,
            "--parallel=4",
            "--quiet",
            "--agent-timeout=20",  # the wait for a reply that is lost because memory is used up
        ],
        cwd=tmp_path,
        env=CLEAN_ENV,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,  # a session that is lost while it is opened is waited for 120 s
    )
    names = {path.name for path in (tmp_path / "results").glob("*") if path.is_file()}
    if ran.returncode in {0, 1}:
        results = read_results(tmp_path)
        assert results["run"]["status"] == "completed"
        assert results["counts"]["trials"] == PLANNED
        assert names >= {"_results.json", "summary.md", "junit.xml", "report.html"}
        return
    assert ran.returncode == 3, ran.stderr[-2000:]
    assert ran.stdout + ran.stderr
    assert "bug in ci-evals" not in ran.stderr
    if "_results.json" in names:
        assert not read_results(tmp_path)["gate"]["passed"]


def test_as_many_files_may_be_open_as_the_system_allows(tmp_path):
    """The usual soft limit is for programs that know no better."""
    script = "import resource; from ci_evals.adapters.reserve import Reserve; Reserve(); print("
    script += "*resource.getrlimit(resource.RLIMIT_NOFILE))"
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh", sys.executable, "-c", script],
        env=CLEAN_ENV,
        check=True,
        capture_output=True,
        text=True,
    )
    soft, hard = map(int, ran.stdout.split())
    assert soft == min(hard, 1 << 16)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_kept_back_without_being_used():
    """It counts against a limit of addresses, as Python hears of one, and takes none of the machine's."""
    script = """
import re
from ci_evals.adapters.reserve import Reserve

def told():
    with open("/proc/self/status") as status:
        return map(int, re.findall(r"Vm(?:Size|RSS):\\s+(\\d+)", status.read()))

size, used = told()
reserve = Reserve()
more, now = told()
print(more - size, now - used)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], env=CLEAN_ENV, check=True, capture_output=True, text=True
    )
    reserved, used = map(int, ran.stdout.split())
    assert reserved > 20_000
    assert used < 4_000


def test_what_was_kept_back_can_be_used(tmp_path):
    """Where nothing more can be opened, it can again."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    reserve, opened = Reserve(), []
    now = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), now[1]))
        with pytest.raises(OSError) as refused:  # noqa: PT012  # until it is refused
            while True:
                opened.append((tmp_path / str(len(opened))).open("w"))
        assert exhausted(refused.value)
        reserve.release()
        (tmp_path / "report").write_text("there")
    finally:
        for file in opened:
            file.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, now[1]))
    reserve.release()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "x"), "no more files"),
        (MemoryError(), "memory"),
        (OSError(errno.ENOMEM, "x"), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
        (ExceptionGroup("several", [ValueError(), MemoryError()]), "memory"),
        (ValueError("x"), None),
        (OSError(errno.ENOENT, "x"), None),
    ],
)
def test_error_names_the_resource_that_ran_out(error, words):
    """All else is a bug, or somebody else's fault."""
    found = exhausted(error)
    assert (found is None) if words is None else (words in found)
