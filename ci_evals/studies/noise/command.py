"""`noise`: a saved run in, where the noise of its scores comes from out."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run.showing import show_progress
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import display, progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.errors import Exit
from ci_evals.domain.progress import Listener
from ci_evals.reports import numbers
from ci_evals.stop import Stop
from ci_evals.studies.keeping import keep, text_of
from ci_evals.studies.noise.preparation import PreparedStudy, amounts, prepare
from ci_evals.studies.noise.settings import NoiseSettings
from ci_evals.studies.noise.study import NoiseMeasurement, measure


def noise(settings: NoiseSettings, context: RunContext) -> None:
    """Play and judge a sample again, show the sources of noise, and keep them with the results.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    prepared = prepare(settings, context)
    console = context.console
    console.say(_workload(prepared))
    interruption = Interruption(context)
    with ExitStack() as shown:
        listen = shown.enter_context(
            show_progress(prepared.study.sample_plan.plan, context, quiet=settings.quiet)
        )

        def judging(count: int) -> Listener:
            shown.close()  # what was played
            return shown.enter_context(_judging(count, console, quiet=settings.quiet))

        work = measure(prepared.study, listen=listen, judging=judging, stop=interruption.stop)
        found = interruption.play(work)
    sys.exit(_finish(prepared, found, interruption.stop, context))


def _workload(prepared: PreparedStudy) -> str:
    fresh, fixed, rejudged = amounts(prepared.study.sample_plan)
    tests = numbers.count(len(prepared.sample), "test")
    rest = f" (of {len(prepared.sample) + prepared.left_over:,})" if prepared.left_over else ""
    return (
        f"Of {tests}{rest}: {numbers.count(fresh, 'conversation')} to play anew, {fixed:,} with the user's "
        f"words held, {rejudged:,} to judge again"
    )


@contextmanager
def _judging(count: int, console: Console, *, quiet: bool) -> Iterator[Listener]:
    """Show that the judge is at work, on a terminal by a bar."""
    if quiet:
        yield progress.silent
    elif console.stream.isatty():
        with display.counting("judging again", count, console) as listen:
            yield listen
    else:
        console.say(f"Judging {numbers.count(count, 'conversation')} again")
        yield progress.silent


def _finish(prepared: PreparedStudy, found: NoiseMeasurement, stop: Stop, context: RunContext) -> int:
    """Show and keep the findings, if there are any, and return the exit code."""
    console, cost = context.console, found.usage.cost_usd
    spent = (
        f"{numbers.count(found.plays, 'conversation')} played, {found.judgements:,} judged again, "
        f"{numbers.count(found.usage.calls, 'call')} of models"
        + (f", {numbers.money(cost)}" if cost is not None else "")
    )
    if stop.interrupted or stop.bug:
        console.say(f"{'Interrupted' if stop.interrupted else 'Ended'}: nothing is kept. {spent}")
        if stop.bug:
            raise stop.bug
        return Exit.INTERRUPTED
    if stop.reason:
        console.say(f"Stopped: {stop.reason}")
    if found.noise is None:
        console.say(
            "Fewer than two tests came to two scores of each kind, from which noise could be told: nothing "
            f"is kept. {spent}"
        )
        return Exit.INVALID
    noise = prepared.study.redactor.model(found.noise)
    context.show(text_of(prepared.study.results, noise))
    console.say(spent)
    keep(prepared.study.results.with_studies(noise), prepared.file, context)
    return Exit.HOLDS
