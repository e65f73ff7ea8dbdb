"""Posts the comment on a pull request.

Nothing here decides an exit code: what GitHub refuses is a line of the log.
"""

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import suppress

from ci_evals.adapters.github import comments, pulls
from ci_evals.adapters.github.api import GitHub
from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import GitHubJob, Wait
from ci_evals.cli.github.outputs import summary_context
from ci_evals.cli.settings.choices import CommentMode, CommentOn
from ci_evals.cli.settings.shared import CommentingSettings
from ci_evals.cli.terminal.console import PLEASE_REPORT
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.reports.markdown import comment
from ci_evals.reports.names import SUMMARY
from ci_evals.reports.story import verdict
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import Story, story_of

_POST_SECONDS = 90.0


def comment_on(
    results: Results, settings: CommentingSettings, github: GitHubJob, wait: Wait, *, create: bool = True
) -> None:
    """Post a run's comment. A failure changes no exit code, even a bug of ours."""
    pushed = settings.comment is CommentMode.ALWAYS
    create = create and worth_a_comment(results, settings.comment_on)
    try:
        text = text_of(results, github)
        lines = wait(post(text, settings.comment_key, github, pushed=pushed, create=create))
    except GitHubError as error:
        where = f"its text is in the step summary and in {SUMMARY}, in the output folder"
        actions.warn(f"no comment was posted: {error}; {where}", github.context)
    except Exception:  # noqa: BLE001  # the gate has decided, and its exit code stands
        github.context.console.say(f"{traceback.format_exc()}\n{PLEASE_REPORT}")
        actions.warn("no comment was posted: a bug in ci-evals (see the log)", github.context)
    else:
        for line in ("no comment was posted: the run was interrupted",) if lines is None else lines:
            github.context.console.say(line)


def worth_a_comment(results: Results, on: CommentOn) -> bool:
    """Return whether a comment is written where there is none."""
    match on:
        case CommentOn.ALWAYS:
            return True
        case CommentOn.CHANGE:
            story = story_of(results)
            return _unsuccessful(story) or verdict.changed(results, story.change.news)
        case CommentOn.FAILURE:
            return _unsuccessful(story_of(results))


def _unsuccessful(story: Story) -> bool:
    """Return whether a run failed or has no verdict; one whose file contradicts itself has none."""
    passed = {RunOutcome.PASSED, RunOutcome.UNCHECKED, RunOutcome.SKIPPED}
    return story.run.contradictory or story.outcome not in passed


def withdraw(error: UsageError, key: str, github: GitHubJob) -> None:
    """Update an existing comment to say that nothing was run: an earlier commit's verdict must not stand."""
    reason = github.context.message(str(error))
    text = comment.refused(reason, summary_context(github))
    with suppress(GitHubError):  # the error itself is what counts
        github.context.wait(post(text, key, github, pushed=False, create=False))


def text_of(results: Results, github: GitHubJob) -> str:
    """Return the comment's Markdown."""
    return comment.render(story_of(results), summary_context(github))


async def post(
    text: str, key: str, github: GitHubJob, *, pushed: bool = True, create: bool = True
) -> tuple[str, ...]:
    """Post a comment, and return a line for each pull request.

    Args:
        text: What it says.
        key: Of the comment.
        github: Where to.
        pushed: Whether a pushed commit's pull requests are looked for too.
        create: Whether there is to be one where there was none.

    Raises:
        GitHubError: it was not posted; the text says why, and what to do.
    """
    if github.missing:
        raise GitHubError(github.missing)
    try:
        async with asyncio.timeout(_POST_SECONDS), github.client() as hub:
            event = github.event
            numbers = await pulls.numbers_of(hub, event, pushed=pushed)
            commit = event.head.sha if event.head else event.sha
            written = comments.Comment(key, text, event.run, commit)
            return await _posted(hub, event.repository or "", numbers, written, create=create)
    except TimeoutError as error:
        raise GitHubError("GitHub did not answer in time") from error


async def _posted(
    hub: GitHub, repository: str, numbers: Sequence[int], written: comments.Comment, *, create: bool
) -> tuple[str, ...]:
    if not numbers:
        return ("no comment was posted: no open pull request has this commit as its head",)
    lines = []
    for number in numbers:
        posted = await comments.post(hub, repository, number, written, create=create)
        if posted.status is comments.CommentStatus.ABSENT:
            lines.append(f"no comment on #{number}: there is none to update, and none was wanted")
        else:
            lines.append(f"comment on #{number} {posted.status}" + (f": {posted.url}" if posted.url else ""))
    return tuple(lines)
