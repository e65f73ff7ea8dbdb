"""The job on GitLab that a command runs in: its note on the merge request, and its baseline.

Nothing here decides an exit code: what GitLab refuses is a line of the log.
"""

import asyncio
import os
from pathlib import Path

from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline
from ci_evals.adapters.github.comments import CommentStatus
from ci_evals.adapters.gitlab import baseline, notes
from ci_evals.adapters.gitlab.api import TOKENS, GitLab
from ci_evals.adapters.gitlab.context import GitLabJob, read
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import GitLabError
from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import comment
from ci_evals.reports.names import RESULTS
from ci_evals.reports.story.story import story_of

_POST_SECONDS, _FIND_SECONDS = 90.0, 180.0


def job_of(context: RunContext) -> GitLabJob | None:
    """Return the job; None elsewhere than on GitLab."""
    return read(context.environ)


def text_of(results: Results, job: GitLabJob | None) -> str:
    """Return the note's Markdown."""
    known = job and comment.SummaryContext(
        run_url=job.job_url,
        run_page="log of the job",
        source_url=job.source_url,
        commit=job.commit,
        foreign=job.foreign,
    )
    return sanitize.gitlab(comment.render(story_of(results), known or comment.SummaryContext()))


async def post(text: str, key: str, job: GitLabJob, context: RunContext, *, create: bool = True) -> str:
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
    job: GitLabJob, output_dir: Path, branch: str | None, earlier: int, context: RunContext
) -> BaselineArtifact | NoBaseline:
    """Find results of the target branch, at the path where this run writes its own."""
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
