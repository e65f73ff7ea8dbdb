"""`comment`: posts the results of a finished run, as in the second workflow or the last job of a matrix."""

from pathlib import Path
from typing import Any

from ci_evals.adapters import files
from ci_evals.adapters.github.archive import MAX_MB
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.github import actions, outputs
from ci_evals.cli.github.checking import check_on
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.posting import post, text_of, withdraw, worth_a_comment
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.result_commands import CommentSettings
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extension_registry import platform_of, platforms
from ci_evals.library.runs import results_file
from ci_evals.reports.names import JUNIT


def comment(settings: CommentSettings, context: RunContext) -> None:
    """Post the comment, or print it. What the platform refuses is a warning.

    Raises:
        UsageError: there are no results, or nothing says where to post.
    """
    platform = _platform(settings.platform, context)
    if platform is None:
        _on_github(settings, GitHubJob.of(settings, context), context)
    else:
        results, _ = _results(settings, context)
        platform.comment(results, settings, context)


def _platform(name: str, context: RunContext) -> Any | None:
    """Return the platform to post on; None if it is GitHub."""
    if name == "auto":
        return platform_of(context.environ)
    return next((platform for platform in platforms() if name == platform.NAME), None)


def _on_github(settings: CommentSettings, github: GitHubJob, context: RunContext) -> None:
    try:
        results, file = _results(settings, context)
    except UsageError as error:
        if not (settings.dry_run or github.missing or github.read_only):
            withdraw(error, settings.comment_key, github)
        raise
    outputs.write(results, results.gate.exit_code, file.parent, file.parent / JUNIT, context)
    if settings.dry_run:
        context.show(text_of(results, github), exact=True)
        return
    if github.missing:
        raise UsageError(f"{github.missing}. To print the comment without it, use `dry_run=`.")
    if github.read_only:
        context.console.say(
            "no comment was posted: the token of a fork's pull request can only read. Post it from a second "
            "workflow"
        )
        return
    check_on(results, settings, github, context.wait)
    create = worth_a_comment(results, settings.comment_on)
    try:
        lines = context.wait(post(text_of(results, github), settings.comment_key, github, create=create))
    except GitHubError as error:
        actions.warn(f"no comment was posted: {error}", context)
    else:
        for line in lines:
            context.console.say(line)


def _results(settings: CommentSettings, context: RunContext) -> tuple[Results, Path]:
    """Return the results and their file."""
    file = results_file(settings.results)
    if files.is_there(file) and file.stat().st_size > MAX_MB * 1_000_000:
        raise UsageError(f"{file}: larger than {MAX_MB} MB, which is not read.")
    return SavedRun.open(file, context.hide()).results, file
