"""The action's door: with arguments it is the command line, with none it takes the inputs and runs."""

import os
import sys

from ci_evals.cli.app import app, main
from ci_evals.cli.inputs import read
from ci_evals.cli.outcome import guarded


def run_inputs() -> None:
    """Runs what the action's inputs ask for."""
    invocation = read(os.environ)
    os.environ.update(invocation.variables)
    app(args=[*invocation.arguments])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    guarded(run_inputs, ["run"])
