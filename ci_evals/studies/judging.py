"""The judge of a study: the saved run's own, or the one that options name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ci_evals.cli import environment_secrets
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import Provider
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import OFFLINE, Results
from ci_evals.job.results_builder import JUDGE_TEMPLATES
from ci_evals.rejudging import Judges, judges
from ci_evals.studies.keeping import check_whole
from ci_evals.studies.settings import JudgeSettings
from ci_evals.support import templates
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import (
    DEFAULT_MODELS,
    PROVIDERS,
    WITHOUT_KEY,
    Connections,
    llm_key_of,
    names_in,
    no_key,
    panel_of,
    votes_of,
)


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

    @property
    def used(self) -> JudgeUsed:
        """The judge, as what it finds out is kept with."""
        return JudgeUsed(
            provider=self.connections.provider,
            models=tuple(sorted(set(self.panel))),
            votes=self.votes,
            prompt=templates.digest(*JUDGE_TEMPLATES),
        )

    @asynccontextmanager
    async def judges(self) -> AsyncIterator[Judges]:
        """The models, while in use."""
        async with judges(self.connections, self.redactor) as found:
            yield found


def judging(path: Path, settings: JudgeSettings, context: RunContext) -> Judging:
    """Read the run, and settle who judges.

    Raises:
        UsageError: the run cannot be read, nobody could judge, or there is no key. Nobody was settings.
    """
    run = SavedRun.open(path, None)
    provider, key, token = settled(settings.provider, settings.llm_key, run.results, context)
    redactor = context.hide((key, token, settings.llm_key), environment_secrets.values_in(context.environ))
    run = replace(run, results=redactor.model(run.results))
    check_whole(run)
    context.mask()
    panel = _panel(settings, run.results, provider)
    votes = _votes(settings, run.results, panel)
    return Judging(
        run=run,
        connections=Connections(
            provider=provider, llm_key=key, llm_token=token, llm_timeout=settings.llm_timeout
        ),
        panel=panel,
        votes=votes,
        redactor=redactor,
        prices=context.prices(settings.prices)(),
    )


def settled(
    provider: Provider | None, llm_key: str | None, results: Results, context: RunContext
) -> tuple[str, str | None, str | None]:
    """The provider that judges, with its key, or its token in place of it.

    Raises:
        UsageError: it is none that can judge, or there is no key for it.
    """
    saved = results.run.provider
    named = str(provider) if provider else saved if saved in PROVIDERS and saved != OFFLINE else "openai"
    if named == OFFLINE:
        others = ", ".join(one for one in PROVIDERS if one != OFFLINE)
        raise UsageError(f"--provider=offline: nobody would judge; name the provider of a judge: {others}")
    key, token = llm_key_of(named, llm_key, context.environ)
    if not (key or token or named in WITHOUT_KEY):
        raise UsageError(no_key(named, context.environ))
    return named, key, token


def _panel(settings: JudgeSettings, results: Results, provider: str) -> tuple[str, ...]:
    """The models that are named, else those of the run where its provider is the same, else the default."""
    named = panel_of(names_in(settings.judge_panel), settings.judge_model)
    if named or settings.judge_model:
        return named or (str(settings.judge_model),)
    if results.run.provider == provider:
        # Suites may have different judges: a study has one, the first suite's.
        for suite in results.suites:
            if found := suite.judge_panel or ((suite.judge_model,) if suite.judge_model else ()):
                return found
    return (DEFAULT_MODELS[provider].judge,)


def _votes(settings: JudgeSettings, results: Results, panel: tuple[str, ...]) -> int:
    """The run's votes; for a panel named by options, at least one vote of each model."""
    if settings.judge_panel or settings.judge_votes:
        return votes_of(settings.judge_votes or 1, panel)
    return max((suite.judge_votes for suite in results.suites), default=1)
