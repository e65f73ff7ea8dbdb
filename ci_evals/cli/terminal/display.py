"""The display of a running plan on a terminal: bars, and above them a line for each trial."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import (
    Event,
    Extended,
    Listener,
    RunResumed,
    StillWaiting,
    TrialFinished,
    TrialStarted,
    TurnPlayed,
)

_WIDE = 80
"""Columns from which on there is room for a bar."""


def bars(console: Console) -> Progress:
    """Return a display of bars, gone when the work is over."""
    screen = RichConsole(file=console.stream, no_color=not console.color, highlight=False)
    return Progress(
        TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        *([BarColumn(bar_width=24)] if screen.width >= _WIDE else []),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        expand=True,
    )


@contextmanager
def live(plan: Plan, console: Console) -> Iterator[Listener]:
    """Show a bar over all trials, and a line for each conversation under way."""
    bar = bars(console)
    whole = bar.add_task("trials", total=len(plan.trials))
    under_way: dict[Trial, TaskID] = {}

    def listen(event: Event) -> None:
        nonlocal plan
        match event:
            case RunResumed():
                bar.advance(whole, event.trials)
                bar.console.print(Text(progress.taken_up(event, len(plan.trials))), soft_wrap=True)
            case StillWaiting():
                bar.console.print(Text(progress.waiting(event)), soft_wrap=True)
            case Extended():
                plan = event.plan
                bar.update(whole, total=len(plan.trials))
                bar.console.print(Text(progress.extended(event)), soft_wrap=True)
            case TrialStarted(trial):
                name = escape(f"  {progress.name_of(plan, trial, console)}")
                under_way[trial] = bar.add_task(name, total=len(plan.turns_of(trial)))
            case TurnPlayed(trial, number):
                bar.update(under_way[trial], completed=number)
            case TrialFinished(trial):
                bar.remove_task(under_way.pop(trial))
                bar.advance(whole)
                bar.console.print(Text(progress.line(plan, event, console)), soft_wrap=True)

    with bar:
        yield listen


@contextmanager
def counting(
    what: str, total: int, console: Console, line: Callable[[TrialFinished], str] | None = None
) -> Iterator[Listener]:
    """Show a bar over so many trials, and above it a line of each, if there is any."""
    bar = bars(console)
    whole = bar.add_task(what, total=total)

    def listen(event: Event) -> None:
        if isinstance(event, StillWaiting):
            bar.console.print(Text(progress.waiting(event)), soft_wrap=True)
        if isinstance(event, TrialFinished):
            bar.advance(whole)
            if line:
                bar.console.print(Text(line(event)), soft_wrap=True)

    with bar:
        yield listen
