"""One run of several, in a process of its own: `python -m`, with the options on standard input.

So each run imports anew what may have changed, and nothing of one is left in the next.
"""

import pickle
import sys
from collections.abc import Mapping
from typing import Any

from ci_evals.cli.app import PROGRAM, invoke
from ci_evals.cli.process.guard import run_command
from ci_evals.cli.run_context import RunContext

SUITES = "suites"


def play(options: Mapping[str, Any]) -> None:
    """Run with these values of the settings, and exit with the run's code."""
    context = RunContext(options=options)
    run_command(lambda: invoke(["run", "--", *options[SUITES]], context, PROGRAM), ["run"], context)


if __name__ == "__main__":
    play(pickle.load(sys.stdin.buffer))  # noqa: S301  # from the process that started this one
