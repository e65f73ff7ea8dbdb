"""What a run shows while it plays: done of all, score and cost so far, time left, and what is waited for."""

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
from rich.cells import cell_len

from ci_evals.adapters import prices
from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import ModelAnswered, RunResumed, StillWaiting, TrialFinished
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.support.redaction import Redactor


def finished(number: int, *outcomes: str) -> TrialFinished:
    """The end of the trial of a test."""
    return TrialFinished(Trial(0, number, 1), plans.trial(*outcomes))


def test_the_tally_of_a_run():
    """The score is the mean over tests, as that of the run will be."""
    now = iter([0.0, 30.0, 60.0, 90.0])
    tally = progress.Tally(
        plans.make_plan(*({"name": str(n)} for n in range(4))), prices.bundled, lambda: next(now)
    )
    assert (tally.progress, tally.summary) == ("0 of 4 trials", "")
    tally.hear(finished(0, "passed"))
    assert (tally.progress, tally.summary) == ("1 of 4 trials", "score 100 so far, about 2 m left")
    tally.hear(ModelAnswered(Trial(0, 1, 1), RoleUsage(role="judge", calls=1, cost_usd=0.25)))
    tally.hear(finished(1, "failed"))
    assert tally.summary == "score 50 so far, $0.25, about 1 m left"


def test_a_resumed_run_begins_where_it_ended():
    """What had finished took no time now."""
    now = iter([0.0, 10.0])
    plan = plans.make_plan({"name": "a"}, {"name": "b"}, {"name": "c"})
    tally = progress.Tally(plan, prices.bundled, lambda: next(now))
    tally.hear(RunResumed(1, plans.build.results().run.started_at))
    tally.hear(finished(1, "passed"))
    assert (tally.progress, tally.summary) == ("2 of 3 trials", "score 100 so far, about 10 s left")


def test_a_log_has_a_line_for_each_trial_and_now_and_then_one_for_all():
    """A trial that could not be judged is not scored, and does not read as passed."""
    log = StringIO()
    plan = plans.make_plan(*({"name": f"test {n}"} for n in range(20)))
    listen = progress.lines(plan, Console(log, Redactor()), prices.bundled)
    listen(StillWaiting("the agent", 30, "too many requests"))
    listen(finished(0, "no_judge"))
    for number in range(1, 20):
        listen(finished(number, "passed"))
    waiting, first, *others = log.getvalue().splitlines()
    assert waiting == "waiting for the agent for 30 s: too many requests"
    assert first == "[1/20] S › test 0  not scored (1 not judged)  1 turn, 3.5 s"
    assert [line for line in others if line.startswith("10 of 20 trials, score 100 so far, about ")]
    assert others[-1] == "20 of 20 trials, score 100 so far"


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        (plans.trial("passed", "failed", "passed"), "2 passed, 1 failed"),
        (plans.trial("passed", "no_judge", "cannot_tell"), "1 passed, 1 undecided, 1 not judged"),
        (plans.trial("passed", status="agent_error"), "the agent answered with an error, 1 passed"),
        (plans.trial("passed", status="interrupted"), "interrupted, 1 passed"),
        (plans.trial(), "no checks"),
    ],
)
def test_a_trial_is_counted_in_the_words_of_the_table(trial, words):
    """A criterion that no judge was there for is not undecided."""
    log = StringIO()
    plan = plans.make_plan({"name": "a"})
    progress.lines(plan, Console(log, Redactor()), prices.bundled)(TrialFinished(Trial(0, 0, 1), trial))
    assert f"({words})  1 turn" in log.getvalue()


def on_a_terminal(columns: int, *args: str, cwd: os.PathLike, env: dict[str, str]) -> str:
    """All that a command writes on a terminal of so many columns."""
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
def test_no_line_of_a_run_is_wider_than_the_terminal(tmp_path, columns, encoding):
    """Progress included, in any encoding; and without colors where nobody wants them."""
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


def test_the_number_of_a_trial_stays_where_its_name_gives_way():
    """So that trials of one test can be told apart in a narrow terminal."""
    plan = plans.make_plan({"name": "A test with quite a long name"}, loops=3)
    name = progress.name_of(plan, Trial(0, 0, 2), Console(StringIO(), Redactor()), 30)
    assert name == "S › A test with quite a lo… #2"
