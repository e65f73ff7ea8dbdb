"""`noise`: a saved run in, where the noise of its scores comes from out."""

import sys
from contextlib import ExitStack

from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run.progress import show_count, show_progress
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.progress import Listener
from ci_evals.extension_support.keeping import keep, text_of
from ci_evals.extensions.noise.preparation import prepare
from ci_evals.extensions.noise.settings import NoiseSettings
from ci_evals.extensions.noise.study import NoiseMeasurement, NoiseStudy, measure
from ci_evals.stop import Stop


def measure_noise(settings: NoiseSettings, context: RunContext) -> None:
    """Play and judge a sample again, show the sources of noise, and keep them with the results.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    study = prepare(settings, context)
    console = context.console
    console.say(_workload(study))
    interruption = Interruption(context)
    with ExitStack() as shown:
        listen = shown.enter_context(
            show_progress(study.sample_plan.plan, context, lambda: study.prices, quiet=settings.quiet)
        )

        def judging(count: int) -> Listener:
            shown.close()  # what was played
            return shown.enter_context(
                show_count(
                    f"Judging {numbers.count(count, 'conversation')} again",
                    count,
                    context,
                    quiet=settings.quiet,
                )
            )

        measurement = interruption.play(
            measure(study, listen=listen, judging=judging, stop=interruption.stop)
        )
    sys.exit(_finish(study, measurement, interruption.stop, context))


def _workload(study: NoiseStudy) -> str:
    fresh, fixed, rejudged = study.sample_plan.conversations
    sampled, tests = len(study.sample), sum(len(suite.tests) for suite in study.results.suites)
    of_all = f" (of {tests:,})" if tests > sampled else ""
    return (
        f"Of {numbers.count(sampled, 'test')}{of_all}: {numbers.count(fresh, 'conversation')} to rerun, "
        f"{fixed:,} with the same user messages, {rejudged:,} to judge again"
    )


def _finish(study: NoiseStudy, measurement: NoiseMeasurement, stop: Stop, context: RunContext) -> int:
    """Show and keep the findings, if there are any, and return the exit code."""
    console, cost = context.console, measurement.usage.cost_usd
    spent = (
        f"{numbers.count(measurement.plays, 'conversation')} played, "
        f"{measurement.judgments:,} judged again, {numbers.count(measurement.usage.calls, 'call')} of models"
        + (f", {numbers.money(cost)}" if cost is not None else "")
    )
    if stop.interrupted or stop.bug:
        ending = "Interrupted" if stop.interrupted else "Ended"
        console.say(f"{ending}: nothing is saved. {spent}")
        if stop.bug:
            raise stop.bug
        return Exit.INTERRUPTED
    if stop.outage:  # the conversations that had finished may be the easy ones
        console.say(f"Stopped: {stop.reason}. Nothing is saved. {spent}")
        return Exit.INVALID
    if stop.reason:
        console.say(f"Stopped: {stop.reason}")
    if measurement.noise is None:
        console.say(
            "Fewer than two tests have two scores of each kind, too few to estimate noise: nothing "
            f"is saved. {spent}"
        )
        return Exit.INVALID
    noise = study.redactor.model(measurement.noise)
    context.show(text_of(study.results, noise, context.width))
    console.say(spent)
    keep(study.results.with_studies(noise), study.file, context)
    return Exit.PASSED
