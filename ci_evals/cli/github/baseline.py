"""Finds the baseline: results in a file, or those that an earlier run left on GitHub or GitLab.

Nothing here decides an exit code: what they refuse is a line of the log, and the run goes without it.
"""

import asyncio
import traceback
from pathlib import Path

from ci_evals.adapters.github import baseline as artifacts
from ci_evals.adapters.github import pulls
from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline
from ci_evals.adapters.gitlab.context import GitLabJob
from ci_evals.cli import gitlab
from ci_evals.cli.github.github_job import GitHubJob, Wait, baseline_option
from ci_evals.cli.settings.shared import BaselineSettings, HistorySettings
from ci_evals.cli.terminal.console import PLEASE_REPORT
from ci_evals.domain.errors import PlatformError, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.job.conclude import NO_BASELINE, BaselineResults
from ci_evals.library.runs import finished, load_results
from ci_evals.reports import report_files

_FIND_SECONDS = 180.0
_MOST_RUNS = 100
"""The most runs of a history."""


def baseline_of(settings: BaselineSettings, github: GitHubJob, wait: Wait | None = None) -> BaselineResults:
    """Find the baseline that the settings name. `wait` runs the search; None if it was interrupted.

    Raises:
        UsageError: they name a file that is not there or is none of ours.
    """
    match option := baseline_option(settings, github):
        case "none":
            return NO_BASELINE
        case "auto" | "required":
            return _recorded(settings, github, wait or github.context.wait)
    try:
        results = load_results(option)
        base = github.event.base.sha
        of_base = base is not None and results.run.git.commit == base
        return BaselineResults(results, of_base_commit=of_base and github.tests_merge)
    except UsageError as error:
        raise UsageError(f"--baseline: {error}") from error


def _recorded(settings: BaselineSettings, github: GitHubJob, wait: Wait) -> BaselineResults:
    """Find the baseline that a run of the base branch left; a failure becomes the note."""
    job = gitlab.job_of(github.context)
    if github.missing and job is None:
        return _none(NoBaseline(github.missing))
    try:
        artifact = wait(_find(settings, github) if job is None else _find_on_gitlab(settings, github, job))
        if not isinstance(artifact, BaselineArtifact):
            return _none(artifact or NoBaseline("the search was interrupted"))
        results = _read(artifact)
        history = _history(artifact, results, github)
        of_base = artifact.of_base_commit and (job is not None or github.tests_merge)
        return BaselineResults(results, artifact.note, history=history, of_base_commit=of_base)
    except TimeoutError:
        why = f"{'GitHub' if job is None else 'GitLab'} did not answer in time"
    except (PlatformError, UsageError) as error:
        why = str(error).splitlines()[0]
    except Exception:  # noqa: BLE001  # a run must not fail over what it is compared with
        github.context.console.say(f"{traceback.format_exc()}\n{PLEASE_REPORT}")
        why = "a bug in ci-evals (see the log)"
    return _none(NoBaseline(why))


def _read(artifact: BaselineArtifact) -> Results:
    source = f"the results of commit {artifact.commit[:7]}"
    return finished(report_files.load(artifact.data, source), source)


def _history(artifact: BaselineArtifact, newest: Results, github: GitHubJob) -> tuple[Results, ...]:
    """Return the baseline and the runs before it, oldest first; what cannot be read is skipped."""
    runs, skipped = [newest], artifact.skipped
    for earlier in artifact.earlier:
        try:
            runs.append(_read(earlier))
        except UsageError:
            skipped += 1
    if skipped:
        runs_that = "1 earlier run" if skipped == 1 else f"{skipped} earlier runs"
        github.context.console.say(f"--history: the results of {runs_that} cannot be read; left out")
    return tuple(runs[::-1])


def _none(missing: NoBaseline) -> BaselineResults:
    return BaselineResults(note=missing.note, missing=missing.reason.rstrip("."))


async def _find(settings: BaselineSettings, github: GitHubJob) -> BaselineArtifact | NoBaseline:
    async with asyncio.timeout(_FIND_SECONDS), github.client() as hub:
        event = await pulls.located(hub, github.event)
        earlier = max(0, history_length(settings) - 1)
        return await artifacts.find(
            hub, event, settings.comment_key, settings.baseline_branch, earlier=earlier
        )


async def _find_on_gitlab(
    settings: BaselineSettings, github: GitHubJob, job: GitLabJob
) -> BaselineArtifact | NoBaseline:
    earlier, folder = max(0, history_length(settings) - 1), getattr(settings, "output_dir", Path("results"))
    return await gitlab.find_baseline(job, folder, settings.baseline_branch, earlier, github.context)


def history_length(settings: BaselineSettings) -> int:
    """Return how many runs of the base branch are to be compared with; 0 if nothing asks for that.

    Raises:
        UsageError: `--history` is no such number, and no folder.
    """
    if not isinstance(settings, HistorySettings):
        return 0
    if settings.history_folder and settings.history_folder.is_dir():
        return 0
    text = settings.history.strip()
    if not (text.isascii() and text.isdecimal() and int(text) <= _MOST_RUNS):
        raise UsageError(
            f"--history: {text[:60]!r} is neither a number up to {_MOST_RUNS} nor a folder of results."
        )
    return int(text) if settings.compares else 0
