"""Creates the check run on the tested commit.

Nothing here decides an exit code: what GitHub refuses is a line of the log.
"""

import asyncio
import traceback

from ci_evals.adapters.github import check_runs, pulls
from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import GitHubJob, Wait
from ci_evals.cli.github.outputs import summary_context
from ci_evals.cli.settings.shared import PullRequestSettings
from ci_evals.cli.terminal.console import PLEASE_REPORT
from ci_evals.domain.errors import GitHubError
from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import comment
from ci_evals.reports.story.story import check_title, conclusion, story_of

_POST_SECONDS = 90.0
_TITLE = 255


def check_on(results: Results, settings: PullRequestSettings, github: GitHubJob, wait: Wait) -> None:
    """Create the check run if one is wanted. A failure changes no exit code, even a bug of ours."""
    if not settings.check:
        return
    console = github.context.console
    if github.read_only:
        console.say(
            "no check run was created: the token of a fork's pull request can only read. Create it in a "
            "second workflow"
        )
        return
    try:
        line = wait(_create(results, settings.comment_key, github))
    except GitHubError as error:
        actions.warn(f"no check run was created: {error}", github.context)
    except Exception:  # noqa: BLE001  # the gate has decided, and its exit code stands
        console.say(f"{traceback.format_exc()}\n{PLEASE_REPORT}")
        actions.warn("no check run was created: a bug in ci-evals (see the log)", github.context)
    else:
        console.say(line or "no check run was created: the run was interrupted")


async def _create(results: Results, key: str, github: GitHubJob) -> str:
    if github.missing:
        raise GitHubError(github.missing)
    try:
        async with asyncio.timeout(_POST_SECONDS), github.client() as hub:
            event = await pulls.located(hub, github.event)
            commit = event.head.sha if event.head else event.sha
            if commit is None:
                raise GitHubError("nothing says which commit was tested")
            context = summary_context(github)
            story = story_of(results)
            trust = story.trust(commit, foreign=context.foreign)
            concluded = conclusion(story, trust)
            check = check_runs.CheckRun(
                key=key,
                commit=commit,
                conclusion=concluded,
                title=sanitize.one_line(check_title(story, trust), _TITLE),
                summary=comment.render(story, context, check_runs.BUDGET),
                url=event.run_url,
            )
            url = await check_runs.create(hub, event.repository or "", check)
            return f"check run on {commit[:7]}: {concluded}" + (f": {url}" if url else "")
    except TimeoutError as error:
        raise GitHubError("GitHub did not answer in time") from error
