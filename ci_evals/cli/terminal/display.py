"""The display of a running plan on a terminal: bars, and above them a line for each trial."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import Event, Listener, ModelAnswered, TrialFinished, TrialStarted, TurnPlayed
from ci_evals.domain.suite import AUTO

_WIDE = 100
"""Columns from which on there is room for a bar."""


def bars(console: Console) -> Progress:
    """Return a display of bars that count, gone when the work is over."""
    return _progress(console, MofNCompleteColumn(), TimeRemainingColumn(elapsed_when_finished=True))


def _progress(console: Console, *columns: ProgressColumn) -> Progress:
    screen = RichConsole(file=console.stream, no_color=not console.color, highlight=False)
    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    if screen.width >= _WIDE:
        columns = (BarColumn(bar_width=20), *columns)
    return Progress(
        TextColumn("{task.description}", table_column=name),
        *columns,
        console=screen,
        transient=True,
        expand=True,
    )


@contextmanager
def live(plan: Plan, console: Console, prices: progress.Prices) -> Iterator[Listener]:
    """Show how far the run is, and for each conversation under way what it waits for."""
    tally = progress.Tally(plan, prices)
    state = Column(no_wrap=True, overflow="ellipsis")
    bar = _progress(console, TextColumn("{task.fields[state]}", table_column=state), TimeElapsedColumn())
    whole = bar.add_task(tally.progress, total=tally.total, state="")
    under_way: dict[Trial, TaskID] = {}

    def update(trial: Trial | None, awaited: str, turns: int | None = None) -> None:
        if trial in under_way:
            bar.update(under_way[trial], completed=turns, state=awaited)

    def listen(event: Event) -> None:
        tally.hear(event)
        match event:
            case TrialStarted(trial):
                name = escape(f"  {progress.name_of(tally.plan, trial, console)}")
                turns = tally.plan.turns_of(trial)
                under_way[trial] = bar.add_task(name, total=len(turns), state="")
                update(trial, _sender(turns[0].user), 0)
            case TurnPlayed(trial, number):
                turns = tally.plan.turns_of(trial)
                update(trial, _sender(turns[number].user) if number < len(turns) else _GRADING, number)
            case ModelAnswered(trial, usage):
                update(trial, _AGENT if usage.role == "user" else _GRADING)
            case TrialFinished(trial):
                bar.remove_task(under_way.pop(trial))
                bar.console.print(Text(progress.line(tally.plan, event, console)))
            case _ if notice := progress.notice_of(event, tally.total):
                bar.console.print(Text(notice))
        bar.update(
            whole,
            description=tally.progress,
            completed=tally.done,
            total=tally.total,
            state=tally.summary,
        )

    with bar:
        yield listen


_AGENT, _GRADING = "waiting for the agent", "grading"


def _sender(message: str) -> str:
    """Return who is waited for before a turn is played: the writer of its message, or the agent."""
    return "waiting for the simulated user" if message == AUTO else _AGENT


@dataclass(frozen=True)
class WorkProgress:
    """Listeners for work in many parts."""

    begun: Callable[[int], None] = lambda _: None
    """Called with the number of parts, before the first."""
    done: Callable[[], None] = lambda: None
    """Called after each part."""


@contextmanager
def progress_of(
    title: str, sentence: Callable[[int], str], console: Console, *, quiet: bool
) -> Iterator[WorkProgress]:
    """Show how much of some work is done.

    Args:
        title: The name of the work, next to the bar.
        sentence: Says how much there is to do, where there is no terminal for a bar.
        console: Where it is shown.
        quiet: True to show nothing.
    """
    if quiet:
        yield WorkProgress()
    elif console.stream.isatty():
        bar = bars(console)
        whole = bar.add_task(title, total=None)
        with bar:
            yield WorkProgress(lambda count: bar.update(whole, total=count), lambda: bar.advance(whole))
    else:
        yield WorkProgress(lambda count: console.say(sentence(count)))


@contextmanager
def counting(
    what: str, total: int, console: Console, line: Callable[[TrialFinished], str] | None = None
) -> Iterator[Listener]:
    """Show a bar over so many trials, and above it a line of each, if there is any."""
    bar = bars(console)
    whole = bar.add_task(what, total=total)

    def listen(event: Event) -> None:
        if notice := progress.notice_of(event, total):
            bar.console.print(Text(notice))
        if isinstance(event, TrialFinished):
            bar.advance(whole)
            if line:
                bar.console.print(Text(line(event)))

    with bar:
        yield listen
