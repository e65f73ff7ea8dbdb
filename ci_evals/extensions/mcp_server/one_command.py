"""A command of ci-evals in a process of its own: `python -m`, with its options on standard input.

Keys and names then stand on no command line. On Linux the process is told to end when the server is gone,
however that ended.
"""

import pickle
import signal
import sys
from collections.abc import Mapping
from typing import Any

from ci_evals.cli.app import PROGRAM, invoke
from ci_evals.cli.process.guard import run_command
from ci_evals.cli.process.supervision import end_with_parent
from ci_evals.cli.run_context import RunContext


def play(
    server: int, command: str, arguments: list[str], options: Mapping[str, Any], most: int | None
) -> None:
    """Carry out a command with these values of its options, and exit with its code."""
    end_with_parent(server, signal.SIGTERM)
    context = RunContext(options=options)
    context.most_trials = most
    run_command(lambda: invoke([command, "--", *arguments], context, PROGRAM), [command], context)


if __name__ == "__main__":
    play(*pickle.load(sys.stdin.buffer))  # noqa: S301  # from the process that started this one
