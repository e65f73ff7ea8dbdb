"""Runs that exhaust files or memory: reports are written, and incomplete runs do not pass."""

import errno
import resource
import sys

import pytest
from commands import CLEAN_ENV, ci_evals, read_results
from each_row import each_row
from programs import run_captured

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

resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
threading.Thread(target=leak, daemon=True).start()
args = ["run", "demo:hr", "--provider=offline", "--parallel=4", "--loops=5", "--quiet"]
run_command(lambda: invoke(args, RunContext()), args)
"""


def run_with_limit(limit, *command, cwd=None):
    shell = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", *command]
    # A session that is lost while it is opened is waited for 120 s.
    return run_captured(shell, cwd=cwd, env=CLEAN_ENV, timeout=300)


def run_while_exhausting(folder, what):
    """Run evals in a process in which a thread exhausts a resource after the first trials."""
    (folder / "exhausting.py").write_text(RUN)
    ran = ci_evals(what, cwd=folder, program=str(folder / "exhausting.py"))
    return ran.returncode, ran.stderr


def test_reports_are_written_if_no_more_files_can_be_opened(tmp_path):
    code, text = run_while_exhausting(tmp_path, "files")
    results = read_results(tmp_path)
    # A run that has its connections already may need no more files.
    assert (code, results["run"]["status"]) in {(0, "completed"), (3, "stopped"), (3, "completed")}, text
    assert results["counts"]["trials"] >= 2
    folder = tmp_path / "results"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {"_results.json", "summary.md", "junit.xml", "ctrf.json", "report.html", "journal.jsonl"}
    assert "bug" not in text


def test_run_that_exhausts_memory_does_not_pass_unless_complete(tmp_path):
    code, items = run_while_exhausting(tmp_path, "memory")
    results = read_results(tmp_path)
    ended = (code, results["gate"]["passed"], results["run"]["status"])
    assert ended in {(0, True, "completed"), *((3, False, status) for status in FAILED)}, items[-2000:]


FAILED = ("stopped", "unfinished", "completed")
LIMITS = [
    *("-n 12", "-n 20", "-v 172000"),
    *(pytest.param(limit, marks=pytest.mark.endurance) for limit in ("-n 15", "-n 32", "-v 165000")),
]


@pytest.mark.parametrize("limit", LIMITS)
def test_run_under_resource_limit_is_complete_or_exits_3(tmp_path, limit):
    command = ["run", "demo:hr", "--provider=offline", "--parallel=4", "--quiet"]
    timeout = "--agent-timeout=20"  # the wait for a reply that is lost because memory is used up
    ran = run_with_limit(limit, sys.executable, "-m", "ci_evals", *command, timeout, cwd=tmp_path)
    names = {path.name for path in (tmp_path / "results").glob("*") if path.is_file()}
    if ran.returncode in {0, 1}:
        results = read_results(tmp_path)
        assert (results["run"]["status"], results["counts"]["trials"]) == ("completed", 12)
        assert names >= {"_results.json", "summary.md", "junit.xml", "report.html"}
        return
    assert ran.returncode == 3, ran.stderr[-2000:]
    assert ran.stdout + ran.stderr
    assert "bug in ci-evals" not in ran.stderr
    if "_results.json" in names:
        assert not read_results(tmp_path)["gate"]["passed"]


MEASURE = """
import os, re, resource
from ci_evals.adapters.reserve import Reserve

def memory():
    if not os.path.exists("/proc/self/status"):
        return 0, 0
    with open("/proc/self/status") as status:
        return map(int, re.findall(r"Vm(?:Size|RSS):\\s+(\\d+)", status.read()))

size, used = memory()
reserve = Reserve()
more, now = memory()
print(more - size, now - used, *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_reserve_takes_address_space_but_no_memory_and_raises_limit_of_open_files():
    """Addresses count against a limit. The usual limit of files is for programs that know no better."""
    ran = run_with_limit("-S -n 64", sys.executable, "-c", MEASURE)
    reserved, used, soft, hard = map(int, ran.stdout.split())
    assert soft == min(hard, 1 << 16)
    assert sys.platform != "linux" or (reserved > 20_000 and used < 4_000), (reserved, used)


def test_files_can_be_opened_again_after_reserve_is_released(tmp_path):
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


@each_row(
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
def test_exhausted_resource_is_identified_from_exception(error, words):
    result = exhausted(error)
    assert (result is None) if words is None else (words in result)
