"""The judge of a study, and the course of a command that asks it: ask, show, keep, exit."""

import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ci_evals.cli import environment_secrets
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import display, progress
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import Event
from ci_evals.domain.providers import OFFLINE, OPENAI
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.extension_registry import judging_providers, providers
from ci_evals.extension_support.asking import Asking
from ci_evals.extension_support.keeping import check_whole, keep, text_of
from ci_evals.extension_support.rejudging import judges
from ci_evals.extension_support.settings import JudgeOptions
from ci_evals.job.results_builder import JUDGE_TEMPLATES
from ci_evals.reports import sanitize
from ci_evals.scoring.usage import usage_of
from ci_evals.support import templates
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections, names_in, panel_of, votes_of
from ci_evals.wiring.providers import llm_key_of, no_key
from ci_evals.wiring.waits import report_waits

T = TypeVar("T")


@dataclass(frozen=True)
class Judging:
    """A saved run without secrets, and the judge that looks at it again. Nobody is asked yet."""

    run: SavedRun
    connections: Connections
    panel: tuple[str, ...]
    """The models that vote in turn, at least one."""
    votes: int
    redactor: Redactor
    prices: PriceTable
    settings: JudgeOptions
    context: RunContext

    @property
    def used(self) -> JudgeUsed:
        """The judge, as its findings are kept with."""
        return JudgeUsed(
            provider=self.connections.provider,
            models=tuple(sorted(set(self.panel))),
            votes=self.votes,
            prompt=templates.digest(*JUDGE_TEMPLATES),
        )

    def carry_out(self, work: Callable[[Asking], Coroutine[Any, Any, T]], noun: str) -> tuple[T, Asking]:
        """Run a study until it ends or a signal ends it; return its findings. `noun` names its questions."""
        interruption = Interruption(self.context)

        def report_wait(event: Event) -> None:
            if not self.settings.quiet and (notice := progress.notice_of(event, 0)):
                self.context.console.say(notice)

        async def study(expect: Callable[[int], None], done: Callable[[], None]) -> tuple[T, Asking]:
            async with (
                judges(self.connections, self.redactor) as models,
                report_waits(models.waits, report_wait),
            ):
                asking = Asking(
                    judges=models,
                    panel=self.panel,
                    used=self.used,
                    redactor=self.redactor,
                    parallel=self.settings.parallel,
                    stop=interruption.stop,
                    expect=expect,
                    done=done,
                )
                return await work(asking), asking

        with self._progress(noun) as shown:
            return interruption.play(study(shown.begun, shown.done))

    def _progress(self, noun: str) -> AbstractContextManager[display.WorkProgress]:
        """Show the number of questions, and each that is answered."""
        models = sanitize.log_line(", ".join(self.used.models), 200)

        def sentence(count: int) -> str:
            return f"Asking {models} about {numbers.count(count, noun)}"

        return display.progress_of(models, sentence, self.context.console, quiet=self.settings.quiet)

    def finish(self, asking: Asking, study: Study, *, decided: int, warnings: bool = True) -> None:
        """Show the findings, keep them with the results, and exit if the study did not come to its end.

        A study in which nothing was decided is not kept: it would replace an earlier one that says something.
        """
        console, stop = self.context.console, asking.stop
        study = self.redactor.model(study)
        if decided:
            self.context.show(text_of(self.run.results, study, self.context.width, warnings=warnings))
        console.say(self.spent(asking))
        if decided:
            keep(self.run.results.with_studies(study), self.run.file, self.context)
        if stop.bug:
            raise stop.bug
        if stop.interrupted:
            console.say("Interrupted" + (": the numbers cover the verdicts until then" if decided else ""))
            sys.exit(Exit.INTERRUPTED)
        if stop.reason or not decided:
            console.say(f"Stopped: {stop.reason}" if stop.reason else "The judge decided nothing")
            sys.exit(Exit.INVALID)

    def check_ended(self, asking: Asking) -> None:
        """Exit if the questions did not come to their end."""
        if asking.stop.bug:
            raise asking.stop.bug
        if asking.stop.interrupted:
            self.context.console.say("Interrupted")
            sys.exit(Exit.INTERRUPTED)
        if asking.stop.reason:
            self.context.console.say(f"Stopped: {asking.stop.reason}")
            sys.exit(Exit.INVALID)

    def spent(self, asking: Asking) -> str:
        """The usage of the study, which is no part of the run's own."""
        spent = TrialResult(index=1, status=EndState.COMPLETED, duration_seconds=0, usage=asking.usage)
        usage = usage_of([spent], self.prices)
        cost = "" if usage.cost_usd is None else f", {numbers.money(usage.cost_usd)}"
        tokens = numbers.tokens(usage.tokens.input + usage.tokens.output)
        return f"The judge was asked {numbers.count(usage.calls, 'time')}: {tokens} tokens{cost}"


def judging(path: Path, settings: JudgeOptions, context: RunContext, *, cache: Path | None = None) -> Judging:
    """Read the run, and settle who judges. `cache` is the folder that keeps the judge's answers.

    Raises:
        UsageError: the run cannot be read, nobody could judge, or there is no key. Nobody was asked.
    """
    run = SavedRun.open(path, None)
    provider = _provider(settings, run.results)
    key, token = llm_key_of(provider, settings.llm_key, context.environ)
    if not (key or token or not providers()[provider].needs_key):
        raise UsageError(no_key(provider, context.environ))
    redactor = context.hide((key, token, settings.llm_key), environment_secrets.values_in(context.environ))
    run = replace(run, results=redactor.model(run.results))
    check_whole(run)
    context.mask()
    panel = _panel(settings, run.results, provider)
    votes = _votes(settings, run.results, panel)
    return Judging(
        run=run,
        connections=Connections(
            provider=provider,
            llm_key=key,
            llm_token=token,
            llm_timeout=settings.llm_timeout,
            judge_cache=cache,
        ),
        panel=panel,
        votes=votes,
        redactor=redactor,
        prices=context.prices(settings.prices, settings.provider)(),
        settings=settings,
        context=context,
    )


def _provider(settings: JudgeOptions, results: Results) -> str:
    """The provider that judges: the one that is named, else the run's where it can judge."""
    saved = results.run.provider
    provider = str(settings.provider or (saved if saved in judging_providers() else OPENAI.name))
    if provider == OFFLINE.name:
        others = ", ".join(judging_providers())
        raise UsageError(f"`provider=offline`: there is no judge; set another provider: {others}")
    return provider


def _panel(settings: JudgeOptions, results: Results, provider: str) -> tuple[str, ...]:
    """The models that are named, else those of the run where its provider is the same, else the default."""
    named = panel_of(names_in(settings.judge_panel), settings.judge_model)
    if named or settings.judge_model:
        return named or (str(settings.judge_model),)
    if results.run.provider == provider:
        # Suites may have different judges: a study has one, the first suite's.
        for suite in results.suites:
            if suite.models.judges:
                return suite.models.judges
    return (providers()[provider].judge,)


def _votes(settings: JudgeOptions, results: Results, panel: tuple[str, ...]) -> int:
    """The run's votes; for a panel named by options, at least one vote of each model."""
    if settings.judge_panel or settings.judge_votes:
        return votes_of(settings.judge_votes or 1, panel)
    return max((suite.judge_votes for suite in results.suites), default=1)
