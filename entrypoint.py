"""The action's door: with arguments it is the command line, with none it takes the inputs and runs.

An input beside arguments is refused, since nothing would come of it.
"""

import signal
import sys

if __name__ == "__main__" and hasattr(signal, "pthread_sigmask"):  # not on Windows
    # The imports take a moment. A signal waits for their end, when `run_command` answers it: as process 1 of
    # a container it would go unheard.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

from ci_evals.cli import env_files
from ci_evals.cli.app import PROGRAM, invoke, new_context
from ci_evals.cli.process.guard import run_command
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.inputs import check_unused, read


def run_inputs(context: RunContext) -> object:
    """Run what the action's inputs ask for."""
    context.reads_inputs = True
    inputs = read(context.environ)
    context.options = inputs.options
    return invoke([inputs.command, "--", *inputs.arguments], context, PROGRAM)


def run_arguments(context: RunContext) -> object:
    """Run a command line, as of a step with `args`."""
    check_unused(context.environ)
    arguments, named = env_files.split(sys.argv[1:])
    env_files.read(named, context)
    return invoke(arguments, context, PROGRAM)


if __name__ == "__main__":
    process = new_context()
    if len(sys.argv) > 1:
        run_command(lambda: run_arguments(process), env_files.split(sys.argv[1:]).arguments, process)
    run_command(lambda: run_inputs(process), ["run"], process)
