"""Progress of a run in the console: trials, score and cost so far, time left, and waits."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from io import StringIO
from pathlib import Path

import plans
import pytest
from commands import start
from each_row import each_row
from rich.cells import cell_len

from ci_evals.adapters import prices
from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import ModelAnswered, RunResumed, StillWaiting, TrialFinished
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.support.redaction import Redactor


def trial_finished(number: int, *outcomes: str) -> TrialFinished:
    return TrialFinished(Trial(0, number, 1), plans.trial(*outcomes))


def test_tally_shows_score_cost_and_time_left_which_ignores_resumed_trials():
    now = iter([0.0, 30.0, 60.0, 90.0])
    plan = plans.make_plan(*({"name": str(n)} for n in range(4)))
    tally = progress.Tally(plan, prices.bundled, lambda: next(now))
    assert (tally.progress, tally.summary) == ("0 of 4 trials", "")
    tally.hear(trial_finished(0, "passed"))
    assert (tally.progress, tally.summary) == ("1 of 4 trials", "score 100 so far, about 2 m left")
    tally.hear(ModelAnswered(Trial(0, 1, 1), RoleUsage(role="judge", calls=1, cost_usd=0.25)))
    tally.hear(trial_finished(1, "failed"))
    assert tally.summary == "score 50 so far, $0.25, about 1 m left"
    now = iter([0.0, 10.0])
    plan = plans.make_plan({"name": "a"}, {"name": "b"}, {"name": "c"})
    tally = progress.Tally(plan, prices.bundled, lambda: next(now))
    tally.hear(RunResumed(1, plans.build.results().run.started_at))
    tally.hear(trial_finished(1, "passed"))
    assert (tally.progress, tally.summary) == ("2 of 3 trials", "score 100 so far, about 10 s left")


def test_log_has_line_per_trial_with_its_number_and_occasional_tally():
    log = StringIO()
    plan = plans.make_plan(*({"name": f"test {n}"} for n in range(20)))
    listen = progress.lines(plan, Console(log, Redactor()), prices.bundled)
    listen(StillWaiting("the agent", 30, "too many requests"))
    listen(trial_finished(0, "no_judge"))
    for number in range(1, 20):
        listen(trial_finished(number, "passed"))
    waiting, first, *others = log.getvalue().splitlines()
    assert waiting == "waiting for the agent for 30 s: too many requests"
    assert first == "[1/20] S › test 0  not scored (1 not judged)  1 turn, 3.5 s"
    assert [line for line in others if line.startswith("10 of 20 trials, score 100 so far, about ")]
    assert others[-1] == "20 of 20 trials, score 100 so far"
    plan = plans.make_plan({"name": "A test with quite a long name"}, loops=3)
    name = progress.name_of(plan, Trial(0, 0, 2), Console(StringIO(), Redactor()), 30)
    assert name == "S › A test with quite a lo… #2"


@each_row(
    ("trial", "words"),
    [
        (plans.trial("passed", "failed", "passed"), "2 passed, 1 failed"),
        (plans.trial("passed", "no_judge", "cannot_tell"), "1 passed, 1 undecided, 1 not judged"),
        (plans.trial("passed", status="agent_error"), "the agent answered with an error, 1 passed"),
        (plans.trial("passed", status="interrupted"), "interrupted, 1 passed"),
        (plans.trial(), "no checks"),
    ],
)
def test_progress_line_counts_verdicts_of_trial(trial, words):
    """A criterion without a judge is not undecided."""
    log = StringIO()
    plan = plans.make_plan({"name": "a"})
    progress.lines(plan, Console(log, Redactor()), prices.bundled)(TrialFinished(Trial(0, 0, 1), trial))
    assert f"({words})  1 turn" in log.getvalue()


IN_TERMINAL = """
import os, runpy, sys
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
"""


def on_a_terminal(columns: int, *args: str, cwd: Path, env: dict[str, str]) -> str:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    (cwd / "in_terminal.py").write_text(IN_TERMINAL)
    process = start(os.ttyname(its), *args, cwd=cwd, env=env, program=str(cwd / "in_terminal.py"))
    seen = b""
    reads = True
    while reads or select.select([ours], [], [], 0)[0]:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            reads = False
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 65536)
    process.communicate()
    for terminal in (ours, its):
        os.close(terminal)
    return seen.decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
@pytest.mark.parametrize(("columns", "encoding"), [(60, "utf-8"), (80, "ascii"), (120, "utf-8")])
def test_no_line_is_wider_than_terminal(tmp_path, columns, encoding):
    command = ("run", "demo:hr", "--provider=offline", "--parallel=3", "--test=Refuses,Books,Never")
    env = {"TERM": "xterm-256color", "NO_COLOR": "1"}
    env |= {"PYTHONIOENCODING": encoding} if encoding == "ascii" else {}
    shown = on_a_terminal(columns, *command, cwd=tmp_path, env=env)
    assert ("4 trials" in shown, "Evals passed" in shown) == (True, True)
    assert not re.search(r"\x1b\[(3[0-7]|38)", shown)  # no colors
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(cell_len(line) for line in re.split(r"[\r\n]+", plain)) <= columns
    assert encoding != "ascii" or (plain.isascii() and "\\u" not in plain)
