"""Finds the baseline: results in a file, or those that an earlier run left on the platform of its job.

Nothing here decides an exit code: what it refuses is a line of the log, and the run goes without it.
"""

import asyncio
import traceback
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ci_evals.adapters.github import baseline as artifacts
from ci_evals.adapters.github import pulls
from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline, Unfit
from ci_evals.cli.github.approvals import approvals_of
from ci_evals.cli.github.github_job import GitHubJob, Wait, baseline_option
from ci_evals.cli.settings.shared import BaselineSettings, HistorySettings
from ci_evals.cli.terminal.console import PLEASE_REPORT
from ci_evals.domain.errors import PlatformError, UsageError
from ci_evals.domain.results.run import Git, Results
from ci_evals.extension_registry import lacks_gitlab, platform_of
from ci_evals.job.conclude import NO_BASELINE, BaselineResults
from ci_evals.library.runs import finished, load_results
from ci_evals.reports import report_files

_FIND_SECONDS = 180.0
_MOST_RUNS = 100
"""The most runs of a history."""


def baseline_of(settings: BaselineSettings, github: GitHubJob, wait: Wait | None = None) -> BaselineResults:
    """Find the baseline that the settings name, and who approves that less is required than in it.

    `wait` runs the search; None if it was interrupted.

    Raises:
        UsageError: they name a file that is not there or is none of ours.
    """
    baseline = _baseline_of(settings, github, wait)
    if baseline.results is None:
        return baseline
    return replace(baseline, approvals=approvals_of(settings, github, wait or github.context.wait))


def _baseline_of(settings: BaselineSettings, github: GitHubJob, wait: Wait | None) -> BaselineResults:
    match option := baseline_option(settings, github):
        case "none":
            return NO_BASELINE
        case "auto" | "required":
            return _recorded(settings, github, wait or github.context.wait)
    try:
        results = load_results(option)
        base = github.event.base.sha
        git = results.run.git
        of_base = base is not None and git.commit == base and not git.uncommitted_changes
        return BaselineResults(results, of_base_commit=of_base and github.tests_merge)
    except UsageError as error:
        raise UsageError(f"`baseline=`: {error}") from error


def _recorded(settings: BaselineSettings, github: GitHubJob, wait: Wait) -> BaselineResults:
    """Find the baseline that a run of the base branch left; a failure becomes the note."""
    if lacks_gitlab(github.context.environ):
        why = "this is a job of GitLab, and the extension `gitlab` of ci-evals is not installed"
        github.context.console.say(f"warning: a baseline cannot be found: {why}")
        return BaselineResults(missing=why, may_have_baseline=True, blocks_verdict=True)
    platform = platform_of(github.context.environ)
    if github.missing and platform is None:
        return _none(NoBaseline(github.missing))
    reader = _ArtifactReader(github.event.repository)
    try:
        if platform:
            folder = getattr(settings, "output_dir", Path("results"))
            earlier = max(0, history_length(settings) - 1)
            search = platform.find_baseline(folder, settings.baseline_branch, earlier, github.context)
        else:
            search = _find(settings, github, reader.unfit)
        artifact = wait(search)
        if not isinstance(artifact, BaselineArtifact):
            return _none(artifact or NoBaseline("the search was interrupted"))
        results = reader.results(artifact)
        history = _history(artifact, results, reader, github)
        of_base = artifact.of_base_commit and (platform is not None or github.tests_merge)
        return BaselineResults(results, artifact.note, history=history, of_base_commit=of_base)
    except TimeoutError:
        who = platform.TITLE if platform else "GitHub"
        why = f"{who} did not answer in time"
    except (PlatformError, UsageError) as error:
        why = str(error).splitlines()[0]
    except Exception:  # noqa: BLE001  # a run must not fail over what it is compared with
        github.context.console.say(f"{traceback.format_exc()}\n{PLEASE_REPORT}")
        why = "a bug in ci-evals (see the log)"
    return _none(NoBaseline(why))


def _load(artifact: BaselineArtifact, source: str) -> Results:
    return report_files.load(artifact.data, source, earlier_version=True)


@dataclass(frozen=True)
class _ArtifactReader:
    """Reads results of artifacts, and compares what they say of themselves with where they were found."""

    repository: str | None
    _read: dict[str, Results] = field(default_factory=dict)
    """Results that were read once, by their commit."""

    def results(self, artifact: BaselineArtifact) -> Results:
        """Return the results of an artifact.

        Raises:
            UsageError: they cannot be read, or are of something else than the artifact's commit.
        """
        source = f"the results of commit {artifact.commit[:7]}"
        results = self._read.pop(artifact.commit, None)
        results = results or finished(_load(artifact, source), source)
        if of := self._other(results.run.git, artifact.commit):
            raise UsageError(f"the artifact of commit {artifact.commit[:7]} holds results of {of}")
        return results

    def unfit(self, artifact: BaselineArtifact) -> str | None:
        """Return what results are of instead; None if they are of the commit, or cannot be read at all."""
        source = f"the results of commit {artifact.commit[:7]}"
        try:
            results = _load(artifact, source)
        except UsageError:
            return None  # `results` says why
        if of := self._other(results.run.git, artifact.commit):
            return of
        with suppress(UsageError):
            self._read[artifact.commit] = finished(results, source)
        return None

    def _other(self, git: Git, commit: str) -> str | None:
        """Return what contradicts the artifact's commit. What results do not say contradicts nothing."""
        if git.pull_request is not None:
            return f"pull request {git.pull_request}"
        if commit and git.commit and git.commit != commit:
            return f"commit {git.commit[:7]}"
        if self.repository and git.repository and git.repository.lower() != self.repository.lower():
            return f"the repository {git.repository}"
        return None


def _history(
    artifact: BaselineArtifact, newest: Results, reader: _ArtifactReader, github: GitHubJob
) -> tuple[Results, ...]:
    """Return the baseline and the runs before it, oldest first.

    Results that cannot be read, or are of another commit than their artifact, are skipped.
    """
    runs, skipped = [newest], artifact.skipped
    for earlier in artifact.earlier:
        try:
            runs.append(reader.results(earlier))
        except UsageError:
            skipped += 1
    if skipped:
        runs_that = "1 earlier run" if skipped == 1 else f"{skipped} earlier runs"
        github.context.console.say(f"`history=`: the results of {runs_that} cannot be read; left out")
    return tuple(runs[::-1])


def _none(missing: NoBaseline) -> BaselineResults:
    return BaselineResults(
        note=missing.note, missing=missing.reason.rstrip("."), may_have_baseline=not missing.yet
    )


async def _find(settings: BaselineSettings, github: GitHubJob, unfit: Unfit) -> BaselineArtifact | NoBaseline:
    async with asyncio.timeout(_FIND_SECONDS), github.client() as hub:
        event = await pulls.located(hub, github.event)
        earlier = max(0, history_length(settings) - 1)
        return await artifacts.find(
            hub, event, settings.comment_key, settings.baseline_branch, earlier=earlier, unfit=unfit
        )


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
            f"`history=`: {text[:60]!r} is neither a number up to {_MOST_RUNS} nor a folder of results."
        )
    return int(text) if settings.compares else 0
