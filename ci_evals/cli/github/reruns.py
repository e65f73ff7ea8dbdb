"""`--reruns`: the earlier attempts at the commit of this run, as far as GitHub has their results."""

import asyncio

from ci_evals.adapters.github import attempts
from ci_evals.adapters.github.attempts import Attempt, Found, NotPermittedError, artifact_name
from ci_evals.adapters.github.context import WorkflowRun
from ci_evals.cli.github.github_job import GitHubJob, Wait
from ci_evals.cli.settings.choices import RerunMode
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.domain.results.run import UnpooledRun
from ci_evals.job.pool import EarlierAttempt, Reruns, source_of
from ci_evals.reports import report_files

_FIND_SECONDS = 180.0
_ELSEWHERE = "earlier attempts are known only in jobs on GitHub. Omit it elsewhere"
_PARTS = ("shard", "replay", "arms", "onlyFailed", "changedSince")
"""Options, as results name them, with which a run pools nothing."""

_SHOWN = 300
"""Characters of a reason that a report shows."""


def check_pooling(settings: RunSettings, github: GitHubJob) -> None:
    """Refuse `--reruns=pool` where reruns can never be pooled.

    Raises:
        UsageError: why, and what to do.
    """
    if why := _why_never(settings, github):
        raise UsageError(f"`reruns=pool`: {why}.")


def reruns_of(settings: RunSettings, github: GitHubJob, wait: Wait) -> Reruns | None:
    """Find the earlier attempts at the commit; None if reruns are not pooled.

    Raises:
        UsageError: they are to be pooled, and the token may not read them.
    """
    if settings.reruns is RerunMode.REPLACE:
        return None
    own = github.event.own_run
    if own is None or _why_never(settings, github):
        return None
    if github.event.foreign:
        github.context.console.say("reruns are not pooled: artifacts of forks are not trusted")
        return None
    return _found(settings, github, wait, own)


def _found(settings: RunSettings, github: GitHubJob, wait: Wait, own: WorkflowRun) -> Reruns | None:
    try:
        found = wait(_find(settings, github, own))
    except TimeoutError:
        return _unknown(own, "GitHub did not answer in time", github)
    except NotPermittedError as error:
        if settings.reruns is RerunMode.POOL:
            raise UsageError(f"`reruns=pool`: {error}.") from error
        github.context.console.say(f"reruns are not pooled: {error}")
        return None
    except GitHubError as error:
        return _unknown(own, str(error), github)
    if found is None:
        return _unknown(own, "the search was interrupted", github)
    return _read_all(found, own, settings.comment_key)


def _why_never(settings: RunSettings, github: GitHubJob) -> str | None:
    """Return why reruns of this run can never be pooled."""
    options = {
        "`shard=`": settings.shard,
        "`replay=`": settings.replay,
        "`arms=`": settings.arms,
        "`only_failed=`": settings.only_failed,
        "`changed_since=`": settings.changed_since,
    }
    for option, value in options.items():
        if value:
            return f"it does not work with {option}, which plays no whole run of one agent. Omit one of them"
    known = github.event.own_run and "GITHUB_RUN_ATTEMPT" in github.context.environ
    if not (known and github.context.in_actions):
        return _ELSEWHERE
    return github.missing


async def _find(settings: RunSettings, github: GitHubJob, own: WorkflowRun) -> Found:
    async with asyncio.timeout(_FIND_SECONDS), github.client() as hub:
        return await attempts.find(hub, github.event, settings.comment_key, own)


def _unknown(own: WorkflowRun, why: str, github: GitHubJob) -> Reruns:
    """The facts that are left if GitHub does not say which attempts there are.

    The first attempt of a run seldom has an earlier one, so that it goes without. A later one always has.
    """
    github.context.console.say(f"warning: earlier attempts at this commit are not known: {why}")
    unknown = UnpooledRun(source="an earlier attempt", why=_clause(why), unread=own.attempt > 1)
    return Reruns(not_pooled=(unknown,), ci_run=str(own.id), attempt=own.attempt)


def _read_all(found: Found, own: WorkflowRun, key: str) -> Reruns:
    read, not_pooled = [], []
    for attempt in found.attempts:
        source = source_of(str(attempt.run), attempt.attempt)
        try:
            read.append(_read(attempt, source))
        except UsageError as error:
            why = _clause(str(error).splitlines()[0])
            not_pooled.append(UnpooledRun(source=source, why=why, unread=True))
    if found.cut:
        why = "there are too many earlier attempts to read all of them"
        not_pooled.append(UnpooledRun(source="an earlier attempt", why=why, unread=True))
    here = {attempt.attempt for attempt in found.attempts if attempt.run == own.id}
    for number in range(1, own.attempt):
        if number not in here and not found.cut:
            why = f"it left no artifact {artifact_name(key, number)!r}"
            not_pooled.append(UnpooledRun(source=source_of(str(own.id), number), why=why))
    return Reruns(tuple(read), tuple(not_pooled), str(own.id), own.attempt)


def _read(attempt: Attempt, source: str) -> EarlierAttempt:
    """Read the results of an attempt.

    Raises:
        UsageError: they cannot be had or read.
    """
    if attempt.data is None:
        raise UsageError(attempt.why)
    results = report_files.load(attempt.data, f"the results of {source}")
    options = results.run.config
    left_alone = options.get("reruns") == RerunMode.REPLACE.value or any(map(options.get, _PARTS))
    if results.run.reruns is None and not left_alone:
        raise UsageError("it was to pool reruns, and could not")
    return EarlierAttempt(results, source, str(attempt.run), attempt.attempt)


def _clause(why: str) -> str:
    return why[:_SHOWN].rstrip(".")
