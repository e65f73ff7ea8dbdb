"""`rejudge`: judges a saved run again, and reports how far the two judges agree."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ci_evals.cli import environment_secrets
from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.files.publish import publish
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.github.baseline import baseline_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run.judge_cache import folder_of, refused
from ci_evals.cli.run.progress import show_count
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.policy import read_policy, recorded_options, unknown_names
from ci_evals.cli.terminal.console import Console
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.progress import Listener, TrialFinished
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Outcome
from ci_evals.extension_registry import after_rejudging, judging_providers, providers
from ci_evals.extension_support.rejudging import Rejudged, RejudgeJob, judges, rejudge, to_judge
from ci_evals.extensions.rejudge import changed_verdicts
from ci_evals.extensions.rejudge.settings import RejudgeSettings
from ci_evals.library.runs import results_file
from ci_evals.reports import sanitize
from ci_evals.reports.names import RESULTS
from ci_evals.stop import Stop
from ci_evals.wiring.connections import Connections, checked, names_in
from ci_evals.wiring.providers import llm_key_of, no_key

REJUDGED = "rejudged"
"""The folder below the saved run to which reports go unless another one is named."""


def rejudge_run(settings: RejudgeSettings, context: RunContext) -> None:
    """Judge again, write every report, print what changed, and exit as the gate decides.

    Raises:
        UsageError: before any judge is asked; nothing is written then.
    """
    github = GitHubJob.of(settings, context)
    connections = _connections(settings, github)
    panel = _panel(settings)
    policy = read_policy(settings, context.spell)
    prices = context.prices(settings.prices, settings.provider)()
    file = results_file(settings.results)
    paths = OutputPaths(settings.output_dir or file.parent / REJUDGED, settings.junit)
    _check_paths(paths, file)
    keys = (connections.llm_key, connections.llm_token, settings.llm_key, settings.github_token)
    redactor = context.hide(keys, environment_secrets.values_in(context.environ))
    judged = SavedRun.open(file, redactor, earlier_version=True).results
    context.mask()
    if judged.arms:
        raise UsageError(
            f"{file}: this run played several agents, and rejudge judges one. Run it again instead."
        )
    trials = to_judge(judged)
    if not trials:
        context.console.say(f"{file}: contains no judged verdict: nothing to judge again, the run stands.")
        return
    incomplete = tuple(map(context.spell, unknown_names(policy, judged.suites)))
    if providers()[connections.provider].needs_key and not (connections.llm_key or connections.llm_token):
        raise UsageError(no_key(connections.provider, context.environ))
    console = context.console
    paths.check({"RESULTS": file, "`prices=`": settings.prices}, [suite.folder for suite in judged.suites])
    interruption = Interruption(context)
    baseline = baseline_of(settings, github, interruption.run_cancellable)
    for warning in policy.warnings:
        console.say(f"warning: {warning}")
    if baseline.note:
        console.say(baseline.note)
    work = RejudgeJob(
        judged=judged,
        provider=connections.provider,
        policy=policy,
        redactor=redactor,
        source=str(file),
        judge_model=settings.judge_model,
        judge_panel=panel,
        judge_votes=settings.judge_votes,
        parallel=settings.parallel,
        judge_check=settings.judge_check,
        baseline=baseline.redacted(redactor),
        incomplete=incomplete,
        prices=prices,
        config=recorded_options(settings) | {"judgeCache": "on" if connections.judge_cache else "off"},
        ci="github-actions" if context.in_actions else None,
        write_unfinished=paths.begin,
    )
    title = f"Judging {numbers.count(len(trials), 'trial')} again"
    line = _trial_lines(judged, console)
    with show_count(title, len(trials), context, line, quiet=settings.quiet) as listen:
        again = interruption.play(_judged_again(work, connections, listen, interruption.stop))
    again = replace(again, results=after_rejudging(again.results, judged))
    code = publish(again.results, paths, context, work.baseline.results, verbose=settings.verbose)
    context.show(_summary(judged, again, context.width, verbose=settings.verbose))
    if interruption.stop.bug:
        raise interruption.stop.bug
    sys.exit(code)


async def _judged_again(work: RejudgeJob, connections: Connections, listen: Listener, stop: Stop) -> Rejudged:
    async with judges(connections, work.redactor) as panel:
        return await rejudge(work, panel, listen=listen, stop=stop)


def _connections(settings: RejudgeSettings, github: GitHubJob) -> Connections:
    """Return the provider with its key or its token, if there is one."""
    provider, context = settings.provider, github.context
    if provider == OFFLINE.name:
        others = ", ".join(judging_providers())
        raise UsageError(f"`provider=offline` has no judge. Use one of: {others}.")
    cache = folder_of(settings.judge_cache, context)
    key, token = llm_key_of(provider, settings.llm_key, context.environ)
    reason = FileTrust(settings, github).workspace_distrusted()
    if cache and reason and (why := refused(cache, reason, key or token, context)):
        context.console.say(f"warning: {why}")
        cache = None
    return Connections(
        provider=provider, llm_key=key, llm_token=token, judge_cache=cache, llm_timeout=settings.llm_timeout
    )


def _panel(settings: RejudgeSettings) -> tuple[str, ...]:
    """Return the models named to vote in turn; none if that is left to the run."""
    connections = Connections(
        provider=settings.provider,
        judge_model=settings.judge_model,
        judge_panel=names_in(settings.judge_panel),
        judge_votes=settings.judge_votes or 1,
    )
    return checked(connections).judge_panel


def _check_paths(paths: OutputPaths, file: Path) -> None:
    """Make sure that the saved run is not overwritten.

    Raises:
        UsageError: the saved run, or the one that a suite's own results are part of, would be written over.
    """
    saved, written = file.resolve(), paths.folder.resolve() / RESULTS
    if saved == written or (written.is_file() and saved.is_relative_to(written.parent)):
        raise UsageError(
            f"`output_dir={paths.folder}`: the results to judge again are in this folder and would be "
            f"overwritten. Omit `output_dir=` to write to {file.parent / REJUDGED}."
        )
    if paths.junit and paths.junit.resolve() == saved:
        raise UsageError(f"`junit={paths.junit}`: this is the file to judge again. Name another one.")


def _summary(judged: Results, again: Rejudged, width: int | None, *, verbose: bool) -> str:
    before, after = ([_judges(suite) for suite in one.suites] for one in (judged, again.results))
    who = changed_verdicts.judges(before, after)
    return changed_verdicts.render(
        again.verdicts, who, not_judged=again.not_judged, verbose=verbose, width=width
    )


def _judges(suite: SuiteResult) -> str | None:
    """Describe the judges of a suite and their votes."""
    models = ", ".join(suite.judge_panel) or suite.judge_model
    return f"{models} with {suite.judge_votes} votes" if suite.judge_votes > 1 else models


def _trial_lines(judged: Results, console: Console) -> Callable[[TrialFinished], str]:
    """Return how to word a finished trial: its name, its verdicts, and how many of them changed."""

    def line(event: TrialFinished) -> str:
        suite = judged.suites[event.trial.suite]
        test = suite.tests[event.trial.test]
        loop = f" #{event.result.index}" if len(test.trials) > 1 else ""
        name = sanitize.log_line(console.redactor.text(f"{suite.name} › {test.name}{loop}"), 100)
        before, after = _outcomes(test.trials[event.trial.index - 1]), _outcomes(event.result)
        counts = ", ".join(f"{after.count(one)} {one}" for one in Outcome if one in after)
        changed = sum(one is not other for one, other in zip(before, after, strict=True))
        return f"{name}  {counts}; {changed or 'none'} changed"

    return line


def _outcomes(trial: TrialResult) -> Sequence[Outcome]:
    return [finding.outcome for finding in trial.findings if finding.kind == "judged"]
