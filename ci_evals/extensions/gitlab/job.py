"""A job of GitLab: the note on its merge request, and the baseline of its target branch.

Nothing here decides an exit code: what GitLab refuses is a line of the log.
"""

import asyncio
import os
from pathlib import Path

from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline
from ci_evals.adapters.github.comments import CommentStatus
from ci_evals.cli.github import actions
from ci_evals.cli.github.posting import worth_a_comment
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.result_commands import CommentSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extensions.gitlab import baseline, notes
from ci_evals.extensions.gitlab.api import GitLab, GitLabError
from ci_evals.extensions.gitlab.context import TOKENS, GitLabJob, read
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import comment as comments
from ci_evals.reports.names import RESULTS
from ci_evals.reports.story.story import story_of

_POST_SECONDS, _FIND_SECONDS = 90.0, 180.0


def comment(results: Results, settings: CommentSettings, context: RunContext) -> None:
    """Post the note, or print it. What GitLab refuses is a warning.

    Raises:
        UsageError: nothing says where to post.
    """
    job = read(context.environ)
    if job is None and not settings.dry_run:
        raise UsageError(
            "`platform=gitlab`: this is no job of GitLab (GITLAB_CI, CI_PROJECT_ID and CI_API_V4_URL)."
        )
    text = _text_of(results, job)
    if job is None or settings.dry_run:
        context.show(text, exact=True)
        return
    create = worth_a_comment(results, settings.comment_on)
    try:
        posting = _post(text, settings.comment_key, job, context, create=create)
        context.console.say(context.wait(posting))
    except GitLabError as error:
        actions.warn(f"no note was posted: {error}", context)


def _text_of(results: Results, job: GitLabJob | None) -> str:
    links = comments.SummaryContext()
    if job:
        links = comments.SummaryContext(
            run_url=job.job_url,
            run_page="log of the job",
            source_url=job.source_url,
            commit=job.commit,
            foreign=job.foreign,
        )
    return sanitize.gitlab(comments.render(story_of(results), links))


async def _post(text: str, key: str, job: GitLabJob, context: RunContext, *, create: bool) -> str:
    """Post the note, and return a line about it. Unless `create`, only a note that is there is updated.

    Raises:
        GitLabError: it was not posted; the text says why, and what to do.
    """
    if job.merge_request is None:
        return "no note was posted: this pipeline is not one of a merge request"
    token = _token(context)
    if token is None:
        raise GitLabError(f"there is no token for GitLab: set {TOKENS} (the job's own may not write notes)")
    try:
        async with (
            asyncio.timeout(_POST_SECONDS),
            GitLab(job.api_url, token, redactor=context.redactor) as hub,
        ):
            status = await notes.post(hub, job, key, text, create=create)
    except TimeoutError as error:
        raise GitLabError("GitLab did not answer in time") from error
    if status is CommentStatus.ABSENT:
        return f"no note on !{job.merge_request}: there is none to update, and none was wanted"
    return f"note on !{job.merge_request} {status}"


async def find_baseline(
    output_dir: Path, branch: str | None, earlier: int, context: RunContext
) -> BaselineArtifact | NoBaseline:
    """Find results of the target branch, at the path where this run writes its own."""
    job = read(context.environ)
    if job is None:
        return NoBaseline("this is no job of GitLab")
    token, of_job = _token(context), context.environ.get("CI_JOB_TOKEN")
    if not token and not of_job:
        return NoBaseline(f"there is no token for GitLab: set {TOKENS}")
    file = _path_in_project(output_dir / RESULTS, context)
    client = GitLab(job.api_url, token or of_job or "", of_job=not token, redactor=context.redactor)
    async with asyncio.timeout(_FIND_SECONDS), client as hub:
        return await baseline.find(hub, job, file, branch, earlier=earlier)


def _path_in_project(path: Path, context: RunContext) -> str:
    root = context.environ.get("CI_PROJECT_DIR") or Path.cwd()
    return os.path.relpath(path, root).replace(os.sep, "/")


def _token(context: RunContext) -> str | None:
    environ = context.environ
    return environ.get("CI_EVALS_GITLAB_TOKEN") or environ.get("GITLAB_TOKEN") or None
