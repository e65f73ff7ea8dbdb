"""The job on GitLab, from its predefined variables. Pure.

Source: <https://docs.gitlab.com/ci/variables/predefined_variables/>.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

TOKENS = "CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN"
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class GitLabJob:
    """A job. A value that the environment lacks is None."""

    api_url: str
    project: int
    name: str
    pipeline: int | None = None
    merge_request: int | None = None
    """The number (IID) of the merge request, in a pipeline of one."""
    target_branch: str | None = None
    """The branch of the baseline: that of the merge request, else the one that was pushed to."""
    commit: str | None = None
    """The tested commit; in a merge request's pipeline the last one of its source branch."""
    source_project: int | None = None
    project_url: str | None = None
    job_url: str | None = None

    @property
    def foreign(self) -> bool:
        """True if the code comes from a fork."""
        return self.source_project is not None and self.source_project != self.project

    @property
    def source_url(self) -> str | None:
        """The page of the repository's files at the tested commit."""
        known = self.project_url and self.commit and not self.foreign
        return f"{self.project_url}/-/blob/{self.commit}" if known else None


def read(environ: Mapping[str, str]) -> GitLabJob | None:
    """Read the job; None if this is no job of GitLab."""
    project = _number(environ.get("CI_PROJECT_ID"))
    api_url = environ.get("CI_API_V4_URL", "").rstrip("/")
    if not environ.get("GITLAB_CI") or project is None or not api_url:
        return None
    return GitLabJob(
        api_url=api_url,
        project=project,
        name=environ.get("CI_JOB_NAME", ""),
        pipeline=_number(environ.get("CI_PIPELINE_ID")),
        merge_request=_number(environ.get("CI_MERGE_REQUEST_IID")),
        target_branch=environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or environ.get("CI_COMMIT_BRANCH"),
        # In a pipeline of merged results CI_COMMIT_SHA is the merge, which no page shows.
        commit=environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA") or None,
        source_project=_number(environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")),
        project_url=environ.get("CI_PROJECT_URL") or None,
        job_url=environ.get("CI_JOB_URL") or None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None
