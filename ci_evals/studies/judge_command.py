"""The course of a command that asks the judge of a saved run: ask, show, keep, exit."""

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from ci_evals.adapters.transport.waits import report_waits
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import display, progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.errors import Exit
from ci_evals.domain.progress import Event, StillWaiting
from ci_evals.domain.results.studies import Study
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.transcript import EndState
from ci_evals.reports import numbers, sanitize
from ci_evals.scoring.usage import usage_of
from ci_evals.studies.asking import Asking
from ci_evals.studies.judging import Judging
from ci_evals.studies.keeping import keep, text_of

T = TypeVar("T")


class ProgressOptions(Protocol):
    """The options for speed and progress."""

    @property
    def parallel(self) -> int:
        """Judgements at a time."""

    @property
    def quiet(self) -> bool:
        """True to show no progress."""


Work = Callable[[Asking], Coroutine[Any, Any, T]]


def carry_out(
    judging: Judging, options: ProgressOptions, noun: str, work: Work[T], context: RunContext
) -> tuple[T, Asking]:
    """Run a study until it ends or a signal ends it; return its findings. `noun` names what it asks about."""
    console = context.console
    interruption = Interruption(context)

    async def asked(expect: Callable[[int], None], done: Callable[[], None]) -> tuple[T, Asking]:
        def hear(event: Event) -> None:
            if isinstance(event, StillWaiting) and not options.quiet:
                console.say(progress.waiting(event))

        async with judging.judges() as judges, report_waits(judges.waits, hear):
            asking = Asking(
                judges=judges,
                panel=judging.panel,
                used=judging.used,
                redactor=judging.redactor,
                parallel=options.parallel,
                stop=interruption.stop,
                expect=expect,
                done=done,
            )
            return await work(asking), asking

    with _progress(console, judging, noun, quiet=options.quiet) as (expect, done):
        return interruption.play(asked(expect, done))


@contextmanager
def _progress(
    console: Console, judging: Judging, noun: str, *, quiet: bool
) -> Iterator[tuple[Callable[[int], None], Callable[[], None]]]:
    """Show the number of questions, and each that is answered."""
    models = sanitize.log_line(", ".join(judging.used.models), 200)
    if quiet:
        yield lambda _: None, lambda: None
    elif not console.stream.isatty():
        yield lambda count: console.say(f"Asking {models} about {numbers.count(count, noun)}"), lambda: None
    else:
        bar = display.bars(console)
        whole = bar.add_task(models, total=None)
        with bar:
            yield lambda count: bar.update(whole, total=count), lambda: bar.advance(whole)


def finish(
    judging: Judging,
    asking: Asking,
    context: RunContext,
    study: Study,
    *,
    decided: int,
    warnings: bool = True,
) -> None:
    """Show what was found, keep it with the results, and exit if the study did not come to its end.

    A study in which nothing was decided is not kept: it would replace an earlier one that says something.
    """
    console, stop = context.console, asking.stop
    study = judging.redactor.model(study)
    if decided:
        context.show(text_of(judging.run.results, study, warnings=warnings))
    _spent(console, judging, asking)
    if decided:
        keep(judging.run.results.with_studies(study), judging.run.file, context)
    if stop.bug:
        raise stop.bug
    if stop.interrupted:
        console.say("Interrupted" + (": the numbers are of what was decided until then" if decided else ""))
        sys.exit(Exit.INTERRUPTED)
    if stop.reason or not decided:
        console.say(f"Stopped: {stop.reason}" if stop.reason else "The judge decided nothing")
        sys.exit(Exit.INVALID)


def _spent(console: Console, judging: Judging, asking: Asking) -> None:
    usage = used(judging, asking)
    cost = "" if usage.cost_usd is None else f", {numbers.money(usage.cost_usd)}"
    tokens = numbers.tokens(usage.tokens.input + usage.tokens.output)
    console.say(f"The judge was asked {numbers.count(usage.calls, 'time')}: {tokens} tokens{cost}")


def used(judging: Judging, asking: Asking) -> Usage:
    """The usage of the study, which is no part of the run's own."""
    spent = TrialResult(index=1, status=EndState.COMPLETED, duration_seconds=0, usage=asking.usage)
    return usage_of([spent], judging.prices)
