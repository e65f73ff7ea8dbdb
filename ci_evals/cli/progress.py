"""What a person sees of a run under way: a live display on a terminal, a line for each trial in a log."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ci_evals.cli.console import Console
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import (
    Event,
    Exchanged,
    Extended,
    Listener,
    TakenUp,
    TrialFinished,
    TrialStarted,
)
from ci_evals.domain.results import TrialResult
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import numbers, sanitize

_WIDE = 80
"""Columns from which on there is room for a bar."""


def silent(_: Event) -> None:
    """Shows nothing (`--quiet`)."""


def lines(plan: Plan, console: Console) -> Listener:
    """One line for each finished trial."""
    total, done = len(plan.trials), 0

    def listen(event: Event) -> None:
        nonlocal done, plan, total
        match event:
            case TrialFinished():
                done += 1
                console.say(f"[{done}/{total}] {_line(plan, event, console)}")
            case TakenUp():
                done = event.trials
                console.say(_taken_up(event, total))
            case Extended():
                plan, total = event.plan, len(event.plan.trials)
                console.say(_told(event))

    return listen


def bars(console: Console) -> Progress:
    """A display of what is under way, gone when it is over."""
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
    """A bar over all trials, and a line for each conversation under way."""
    progress = bars(console)
    whole = progress.add_task("trials", total=len(plan.trials))
    under_way: dict[Trial, TaskID] = {}

    def listen(event: Event) -> None:
        nonlocal plan
        match event:
            case TakenUp():
                progress.advance(whole, event.trials)
                progress.console.print(Text(_taken_up(event, len(plan.trials))), soft_wrap=True)
            case Extended():
                plan = event.plan
                progress.update(whole, total=len(plan.trials))
                progress.console.print(Text(_told(event)), soft_wrap=True)
            case TrialStarted(trial):
                name = escape(f"  {_name(plan, trial, console)}")
                under_way[trial] = progress.add_task(name, total=len(plan.turns_of(trial)))
            case Exchanged(trial, number):
                progress.update(under_way[trial], completed=number)
            case TrialFinished(trial):
                progress.remove_task(under_way.pop(trial))
                progress.advance(whole)
                progress.console.print(Text(_line(plan, event, console)), soft_wrap=True)

    with progress:
        yield listen


def _name(plan: Plan, trial: Trial, console: Console) -> str:
    suite, test = plan.suites[trial.suite].suite.name, plan.test_of(trial)
    loop = f" #{trial.index}" if plan.loops_of(test) > 1 else ""
    # Secrets go first: what the sanitiser has changed, the redactor would not know.
    return sanitize.log_line(console.redactor.text(f"{suite} › {test.name}{loop}"), 100)


def _line(plan: Plan, event: TrialFinished, console: Console) -> str:
    result = event.result
    parts = [
        _name(plan, event.trial, console),
        f"{numbers.score(result.score if result.scored else None)} ({_summary(result)})",
        f"{numbers.count(len(result.exchanges), 'exchange')}, {numbers.duration(result.duration_seconds)}",
    ]
    return "  ".join(parts + ([sanitize.log_line(result.error, 200)] if result.error else []))


def _taken_up(event: TakenUp, total: int) -> str:
    """What had finished before."""
    began = event.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"going on with the run of {began}: {event.trials} of {numbers.count(total, 'trial')} had finished"


def _told(event: Extended) -> str:
    """Why more is played."""
    more = numbers.count(event.plan.more, "more trial")
    return f"the first look is close, so {more} of each test follow: {'; '.join(event.because)}"


def _summary(result: TrialResult) -> str:
    """How it ended, and the verdicts by outcome."""
    counts = {outcome: sum(f.outcome is outcome for f in result.findings) for outcome in Outcome}
    told = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    return ", ".join([f"ended {result.status.replace('_', ' ')}", *told])
