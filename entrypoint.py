"""The action's door: with arguments it is the command line, with none it takes the inputs and runs.

An input beside arguments is refused, since nothing would come of it.
"""

import os
import signal
import sys

if __name__ == "__main__":
    # The imports take a moment. A signal waits for their end, when `guarded` answers it: as process 1 of a
    # container it would go unheard.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

from ci_evals.cli.app import PROGRAM, invoke
from ci_evals.cli.outcome import guarded
from ci_evals.cli.settings.inputs import check_unused, read


def run_inputs() -> object:
    """Runs what the action's inputs ask for."""
    invocation = read(os.environ)
    os.environ.update(invocation.variables)
    return invoke(invocation.arguments, PROGRAM)


def run_arguments() -> object:
    """Runs a command line, as of a step with `args`."""
    check_unused(os.environ)
    return invoke(sys.argv[1:], PROGRAM)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        guarded(run_arguments, sys.argv[1:])
    guarded(run_inputs, ["run"])
