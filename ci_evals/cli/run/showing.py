"""The display of a plan while it is played."""

from collections.abc import Iterator
from contextlib import contextmanager

from ci_evals.cli.github import actions
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import progress
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Listener
from ci_evals.reports import numbers


@contextmanager
def show_progress(plan: Plan, context: RunContext, *, quiet: bool) -> Iterator[Listener]:
    """Show the progress of a plan: on a terminal by bars, in a log by a line for each trial."""
    if quiet:
        yield progress.silent
    elif (console := context.console).stream.isatty():
        from ci_evals.cli.terminal.display import live  # noqa: PLC0415  # rich, for a terminal alone

        with live(plan, console) as listen:
            yield listen
    else:
        with actions.group(f"Playing {numbers.count(len(plan.trials), 'trial')}", context):
            yield progress.lines(plan, console)
