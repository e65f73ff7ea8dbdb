"""`comment`: posts the results of a finished run, as in the second workflow or the last job of a matrix."""

from ci_evals.adapters import files
from ci_evals.adapters.github.archive import MAX_MB
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.github import actions, outputs
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.posting import post, text_of, withdraw
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.result_commands import CommentSettings
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.library.runs import results_file
from ci_evals.reports.names import JUNIT


def comment(settings: CommentSettings, context: RunContext) -> None:
    """Post the comment, or print it. What GitHub refuses is a warning.

    Raises:
        UsageError: there are no results, or nothing says where to post.
    """
    github = GitHubJob.of(settings, context)
    file = results_file(settings.results)
    if files.is_there(file) and file.stat().st_size > MAX_MB * 1_000_000:
        raise UsageError(f"{file}: larger than {MAX_MB} MB, which is not read.")
    try:
        results = SavedRun.open(file, context.hide()).results
    except UsageError as error:
        if not (settings.dry_run or github.missing or github.read_only):
            withdraw(error, settings.comment_key, github)
        raise
    outputs.write(results, results.gate.exit_code, file.parent, file.parent / JUNIT, context)
    if settings.dry_run:
        context.show(text_of(results, github), exact=True)
        return
    if github.missing:
        raise UsageError(f"{github.missing}. To print the comment without it, use --dry-run.")
    if github.read_only:
        context.console.say(
            "no comment was posted: the token of a fork's pull request can only read. Post it from a second "
            "workflow"
        )
        return
    try:
        lines = context.wait(post(text_of(results, github), settings.comment_key, github))
    except GitHubError as error:
        actions.warn(f"no comment was posted: {error}", context)
    else:
        for line in lines:
            context.console.say(line)
