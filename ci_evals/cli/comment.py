"""`comment`: posts the results of a run that is over: the second workflow, the last job of a matrix."""

import asyncio
import os

from ci_evals.cli import actions
from ci_evals.cli.console import error_console, show
from ci_evals.cli.github import Platform, post, text_of
from ci_evals.cli.reading import read_clean
from ci_evals.cli.settings import CommentSettings
from ci_evals.domain.errors import GitHubError, UsageError


def comment(settings: CommentSettings) -> None:
    """Posts the comment, or prints it. What GitHub refuses is a warning.

    Raises:
        UsageError: there are no results, or nothing says where to post.
    """
    platform = Platform.of(settings, os.environ)
    results = read_clean(settings.results)
    if settings.dry_run:
        show(text_of(results, platform))
        return
    if platform.missing:
        raise UsageError(f"{platform.missing}; --dry-run prints the comment without it")
    try:
        told = asyncio.run(post(results, settings.comment_key, platform))
    except GitHubError as error:
        actions.warn(f"no comment was posted: {error}", os.environ)
    else:
        for line in told:
            error_console(os.environ).say(line)
