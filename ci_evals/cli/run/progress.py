"""The display of work under way: on a terminal by bars, in a log by lines, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from ci_evals.cli.github import actions
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import progress
from ci_evals.domain import numbers
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Event, Listener, TrialFinished


@contextmanager
def show_progress(
    plan: Plan, context: RunContext, prices: progress.Prices, *, quiet: bool
) -> Iterator[Listener]:
    """Show the progress of a plan that is played."""
    if quiet:
        yield progress.silent
    elif (console := context.console).stream.isatty():
        from ci_evals.cli.terminal.display import live  # noqa: PLC0415  # rich, for a terminal alone

        with live(plan, console, prices) as listen:
            yield listen
        console.say("")
    else:
        with actions.group(f"Playing {numbers.count(len(plan.trials), 'trial')}", context):
            yield progress.lines(plan, console, prices)


@contextmanager
def show_count(
    title: str,
    total: int,
    context: RunContext,
    line: Callable[[TrialFinished], str] | None = None,
    *,
    quiet: bool,
) -> Iterator[Listener]:
    """Show how many trials of a total are finished, with a line for each if there is any."""
    console = context.console
    if quiet:
        yield progress.silent
    elif console.stream.isatty():
        from ci_evals.cli.terminal.display import counting  # noqa: PLC0415  # as above

        with counting(title, total, console, line) as listen:
            yield listen
    else:
        numbered = count(1)

        def listen(event: Event) -> None:
            if line and isinstance(event, TrialFinished):
                console.say(f"[{next(numbered)}/{total}] {line(event)}")

        if not context.in_actions:
            console.say(title)
        with actions.group(title, context):
            yield listen
