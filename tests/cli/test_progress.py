"""Progress of a run in the console: trials, score and cost so far, time left, and waits."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from io import StringIO

import plans
import pytest
from commands import CLEAN_ENV, MODULE
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


def test_tally_shows_mean_score_over_tests_cost_and_time_left():
    now = iter([0.0, 30.0, 60.0, 90.0])
    plan = plans.make_plan(*({"name": str(n)} for n in range(4)))
    tally = progress.Tally(plan, prices.bundled, lambda: next(now))
    assert (tally.progress, tally.summary) == ("0 of 4 trials", "")
    tally.hear(trial_finished(0, "passed"))
    assert (tally.progress, tally.summary) == ("1 of 4 trials", "score 100 so far, about 2 m left")
    tally.hear(ModelAnswered(Trial(0, 1, 1), RoleUsage(role="judge", calls=1, cost_usd=0.25)))
    tally.hear(trial_finished(1, "failed"))
    assert tally.summary == "score 50 so far, $0.25, about 1 m left"


def test_resumed_trials_do_not_count_toward_time_left():
    now = iter([0.0, 10.0])
    plan = plans.make_plan({"name": "a"}, {"name": "b"}, {"name": "c"})
    tally = progress.Tally(plan, prices.bundled, lambda: next(now))
    tally.hear(RunResumed(1, plans.build.results().run.started_at))
    tally.hear(trial_finished(1, "passed"))
    assert (tally.progress, tally.summary) == ("2 of 3 trials", "score 100 so far, about 10 s left")


def test_log_has_line_per_trial_and_occasional_tally():
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


def on_a_terminal(columns: int, *args: str, cwd: os.PathLike, env: dict[str, str]) -> str:
    """The output of a command in a terminal with this number of columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, *args], cwd=cwd, env=CLEAN_ENV | env, stdin=its, stdout=its, stderr=its
    )
    os.close(its)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # its end is closed
            break
        if not data:
            break
        seen += data
    os.close(ours)
    process.wait()
    return seen.decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
@pytest.mark.parametrize(("columns", "encoding"), [(60, "utf-8"), (80, "ascii"), (120, "utf-8")])
def test_no_line_is_wider_than_terminal(tmp_path, columns, encoding):
    command = ("run", "demo:hr", "--provider=offline", "--parallel=3", "--test=Refuses,Books,Never")
    env = {"TERM": "xterm-256color", "NO_COLOR": "1", "PYTHONIOENCODING": encoding}
    shown = on_a_terminal(columns, *command, cwd=tmp_path, env=env)
    assert "4 trials" in shown
    assert "Evals passed" in shown
    assert not re.search(r"\x1b\[(3[0-7]|38)", shown)  # no colors
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(cell_len(line) for line in re.split(r"[\r\n]+", plain)) <= columns
    if encoding == "ascii":
        assert plain.isascii()
        assert "\\u" not in plain


def test_trial_number_is_kept_if_its_name_is_truncated():
    plan = plans.make_plan({"name": "A test with quite a long name"}, loops=3)
    name = progress.name_of(plan, Trial(0, 0, 2), Console(StringIO(), Redactor()), 30)
    assert name == "S › A test with quite a lo… #2"
