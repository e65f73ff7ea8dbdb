"""Finds the baseline: results that the newest pipeline of the target branch left as an artifact.

With a token of its own it reads the branch's pipelines, whether they passed or not. The job's own token can
only download the artifact of the newest pipeline that passed.
"""

from typing import NamedTuple
from urllib.parse import quote

from ci_evals.adapters.github.baseline import (
    MAX_HISTORY_BYTES,
    BaselineArtifact,
    NoBaseline,
    is_unfinished,
)
from ci_evals.extensions.gitlab.api import GitLab, GitLabError
from ci_evals.extensions.gitlab.context import TOKENS, GitLabJob
from ci_evals.support.payload import member

MAX_PIPELINES = 30
"""Maximum of pipelines that are looked at."""

_FINISHED = frozenset({"success", "failed"})
_NO_RESULTS = frozenset({404, 410})


class _Most(NamedTuple):
    earlier: int
    """Further runs."""
    size: int
    """Bytes of all runs together."""


async def find(
    hub: GitLab,
    job: GitLabJob,
    file: str,
    branch: str | None = None,
    *,
    earlier: int = 0,
    max_bytes: int = MAX_HISTORY_BYTES,
) -> BaselineArtifact | NoBaseline:
    """Find `file` (its path in the project) among artifacts of this job's namesakes on the branch.

    `earlier` is the most further runs to return; together they have no more than
    `max_bytes`. What GitLab refuses becomes the reason.
    """
    branch = branch or job.target_branch
    if not branch:
        return NoBaseline("this pipeline has no branch to compare with; name one with baseline-branch")
    try:
        if hub.of_job:
            return await _newest_passed(hub, job, file, branch)
        return await _newest(hub, job, file, branch, _Most(earlier, max_bytes))
    except GitLabError as error:
        return NoBaseline(str(error))


async def _newest_passed(
    hub: GitLab, job: GitLabJob, file: str, branch: str
) -> BaselineArtifact | NoBaseline:
    path = f"/projects/{job.project}/jobs/artifacts/{quote(branch, safe='')}/raw/{quote(file)}"
    try:
        data = await hub.file(path, job=job.name)
    except GitLabError as error:
        if error.status not in _NO_RESULTS:
            raise
        return NoBaseline(
            f"no pipeline of {branch} has passed with {file!r} of the job {job.name!r} among its artifacts; "
            f"with {TOKENS}, pipelines that failed are found too",
            yet=True,
        )
    note = f"the baseline is of the newest pipeline of {branch} that passed"
    return BaselineArtifact(data, note, "")


async def _newest(
    hub: GitLab, job: GitLabJob, file: str, branch: str, most: _Most
) -> BaselineArtifact | NoBaseline:
    found: list[BaselineArtifact] = []
    skipped = seen = read = 0
    pipelines = hub.pages(f"/projects/{job.project}/pipelines", ref=branch, order_by="id", sort="desc")
    async for pipeline in pipelines:
        number, commit = member(pipeline, "id"), str(member(pipeline, "sha") or "")
        if number == job.pipeline or member(pipeline, "status") not in _FINISHED:
            continue
        seen += 1
        if seen > MAX_PIPELINES or len(found) > most.earlier or read >= most.size:
            break
        try:
            data = await _results_of(hub, job, number, file)
        except GitLabError:
            if not found:
                raise
            skipped += 1
            continue
        read += len(data or b"")
        if data is not None and (not found or read <= most.size):
            note = f"the baseline is commit {commit[:7]} of {branch}, its newest pipeline with results"
            found.append(BaselineArtifact(data, note, commit))
    if not found:
        return NoBaseline(
            f"none of the last {seen} finished pipelines of {branch} has {file!r} of the job {job.name!r} "
            "among its artifacts",
            yet=seen == 0,
        )
    newest, *others = found
    return BaselineArtifact(newest.data, newest.note, newest.commit, tuple(others), skipped)


async def _results_of(hub: GitLab, job: GitLabJob, pipeline: object, file: str) -> bytes | None:
    """Return the results of a pipeline; None if it has none that are finished."""
    async for item in hub.pages(f"/projects/{job.project}/pipelines/{pipeline}/jobs"):
        if member(item, "name") != job.name or not member(item, "artifacts_file"):
            continue
        try:
            data = await hub.file(
                f"/projects/{job.project}/jobs/{member(item, 'id')}/artifacts/{quote(file)}"
            )
        except GitLabError as error:
            if error.status in _NO_RESULTS:
                continue
            raise
        if not is_unfinished(data):
            return data
    return None
