"""Reads the comments that approve weakened suites.

Without them a gate with `--weakened=fail` stays closed: what GitHub refuses is a line of the log.
"""

import asyncio

from ci_evals.adapters.github import approvals
from ci_evals.cli.github.github_job import GitHubJob, Wait
from ci_evals.domain.choices import WeakenedMode
from ci_evals.domain.errors import GitHubError
from ci_evals.domain.results.weakened import Approval

_READ_SECONDS = 60.0


def approvals_of(settings: object, github: GitHubJob, wait: Wait) -> tuple[Approval, ...]:
    """Return the approvals in the pull request of the job; none unless weakened suites fail the run.

    After `workflow_run` there are none: the number of the pull request may come from a stranger's upload.
    """
    event = github.event
    if getattr(settings, "weakened", None) is not WeakenedMode.FAIL:
        return ()
    if github.missing or event.number is None or event.event == "workflow_run":
        return ()
    try:
        return wait(_find(github, event.repository or "", event.number)) or ()
    except TimeoutError:
        why = "GitHub did not answer in time"
    except GitHubError as error:
        why = str(error)
    github.context.console.say(f"warning: approvals of weakened suites were not read: {why}")
    return ()


async def _find(github: GitHubJob, repository: str, number: int) -> tuple[Approval, ...]:
    event = github.event
    commit = event.head.sha if event.head else None
    async with asyncio.timeout(_READ_SECONDS), github.client() as hub:
        return await approvals.find(hub, repository, number, commit)
