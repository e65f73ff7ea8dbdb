"""`rejudge`: judges a saved run again, and reports how far the two judges agree."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ci_evals.cli import environment_secrets
from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.files.publish import publish
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.github import actions
from ci_evals.cli.github.baseline import baseline_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run.judge_cache import folder_of, refused
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import Provider
from ci_evals.cli.settings.policy import read_policy, recorded_options, unknown_names
from ci_evals.cli.settings.result_commands import RejudgeSettings
from ci_evals.cli.terminal import display, progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import Event, Listener, TrialFinished
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Outcome
from ci_evals.library.runs import results_file
from ci_evals.rejudging import Rejudged, RejudgeJob, changed_verdicts, judges, rejudge, to_judge
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.names import RESULTS
from ci_evals.stop import Stop
from ci_evals.study_registry import after_rejudging
from ci_evals.wiring import WITHOUT_KEY, Connections, checked, llm_key_of, names_in, no_key


def rejudge_run(settings: RejudgeSettings, context: RunContext) -> None:
    """Judge again, write every report, print what changed, and exit as the gate decides.

    Raises:
        UsageError: before any judge is asked; nothing is written then.
    """
    connections = _connections(settings, context)
    panel = _panel(settings)
    policy = read_policy(settings)
    prices = context.prices(settings.prices)()
    file = results_file(settings.results)
    paths = OutputPaths(settings.output_dir, settings.junit)
    _check_paths(paths, file)
    keys = (connections.llm_key, connections.llm_token, settings.llm_key, settings.github_token)
    redactor = context.hide(keys, environment_secrets.values_in(context.environ))
    judged = SavedRun.open(file, redactor).results
    context.mask()
    trials = to_judge(judged)
    if not trials:
        raise UsageError(f"{file}: it holds no judged verdict, so that there is nothing to judge again")
    incomplete = unknown_names(policy, judged.suites)
    if connections.provider not in WITHOUT_KEY and not (connections.llm_key or connections.llm_token):
        raise UsageError(no_key(connections.provider, context.environ))
    console = context.console
    paths.check({"RESULTS": file, "--prices": settings.prices}, [suite.folder for suite in judged.suites])
    interruption = Interruption(context)
    baseline = baseline_of(settings, GitHubJob.of(settings, context), interruption.run_cancellable)
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
        baseline=redactor.model(baseline.results) if baseline.results else None,
        baseline_note=baseline.note,
        incomplete=incomplete,
        prices=prices,
        config=recorded_options(settings) | {"judgeCache": "on" if connections.judge_cache else "off"},
        ci="github-actions" if context.in_actions else None,
        write_unfinished=paths.begin,
    )
    with _listening(settings, _TrialLines(judged, console, len(trials)), context) as listen:
        again = interruption.play(_judged_again(work, connections, listen, interruption.stop))
    again = replace(again, results=after_rejudging(again.results, judged))
    code = publish(again.results, paths, context, work.baseline, verbose=settings.verbose)
    context.show(_summary(judged, again, verbose=settings.verbose))
    if interruption.stop.bug:
        raise interruption.stop.bug
    sys.exit(code)


async def _judged_again(work: RejudgeJob, connections: Connections, listen: Listener, stop: Stop) -> Rejudged:
    async with judges(connections, work.redactor) as panel:
        return await rejudge(work, panel, listen=listen, stop=stop)


def _connections(settings: RejudgeSettings, context: RunContext) -> Connections:
    """Return the provider with its key or its token, if there is one."""
    provider = settings.provider
    if provider is Provider.OFFLINE:
        others = ", ".join(one for one in Provider if one is not Provider.OFFLINE)
        raise UsageError(f"--provider=offline: nobody would judge; name the provider of a judge: {others}")
    cache = folder_of(settings.judge_cache, context)
    key, token = llm_key_of(provider, settings.llm_key, context.environ)
    reason = FileTrust(settings, context).workspace_distrusted()
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
            f"--output-dir={paths.folder}: the results that are to be judged again are in this folder, and "
            "would be written over; name another one, as --output-dir=rejudged"
        )
    if paths.junit and paths.junit.resolve() == saved:
        raise UsageError(f"--junit={paths.junit}: this is the file that is to be judged again")


def _summary(judged: Results, again: Rejudged, *, verbose: bool) -> str:
    before, after = ([_judges(suite) for suite in one.suites] for one in (judged, again.results))
    who = changed_verdicts.judges(before, after)
    return changed_verdicts.render(again.verdicts, who, not_judged=again.not_judged, verbose=verbose)


def _judges(suite: SuiteResult) -> str | None:
    """Describe the judges of a suite and their votes."""
    models = ", ".join(suite.judge_panel) or suite.judge_model
    return f"{models} with {suite.judge_votes} votes" if suite.judge_votes > 1 else models


class _TrialLines:
    """A line for each trial that was judged again."""

    def __init__(self, judged: Results, console: Console, total: int) -> None:
        self._judged, self._console, self.total = judged, console, total
        self._done = 0
        self.console = console

    def line(self, event: TrialFinished) -> str:
        """Return the trial's name, its verdicts, and how many of them changed."""
        self._done += 1
        suite = self._judged.suites[event.trial.suite]
        test = suite.tests[event.trial.test]
        loop = f" #{event.result.index}" if len(test.trials) > 1 else ""
        name = sanitize.log_line(self._console.redactor.text(f"{suite.name} › {test.name}{loop}"), 100)
        before = _outcomes(self._before(event.trial))
        after = _outcomes(event.result)
        counts = ", ".join(f"{after.count(one)} {one}" for one in Outcome if one in after)
        changed = sum(one is not other for one, other in zip(before, after, strict=True))
        return f"[{self._done}/{self.total}] {name}  {counts}; {changed or 'none'} changed"

    def _before(self, trial: Trial) -> TrialResult:
        return self._judged.suites[trial.suite].tests[trial.test].trials[trial.index - 1]


def _outcomes(trial: TrialResult) -> Sequence[Outcome]:
    return [finding.outcome for finding in trial.findings if finding.kind == "judged"]


@contextmanager
def _listening(settings: RejudgeSettings, lines: _TrialLines, context: RunContext) -> Iterator[Listener]:
    if settings.quiet:
        yield progress.silent
    elif lines.console.stream.isatty():
        with display.counting("trials", lines.total, lines.console, lines.line) as listen:
            yield listen
    else:

        def say(event: Event) -> None:
            if isinstance(event, TrialFinished):
                lines.console.say(lines.line(event))

        with actions.group(f"Judging {numbers.count(lines.total, 'trial')} again", context):
            yield say
