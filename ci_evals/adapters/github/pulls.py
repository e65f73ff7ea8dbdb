"""The pull requests of a run, if the event does not name them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from ci_evals.adapters.github.api import GitHub
from ci_evals.adapters.github.context import PULL_REQUEST_EVENTS, Commit, GitHubEvent, with_pull
from ci_evals.domain.errors import GitHubError
from ci_evals.support.payload import member

NEEDS = "pull-requests: read"

_PUSHED_EVENTS = frozenset({"push", "workflow_dispatch", "schedule"})


async def located(hub: GitHub, context: GitHubEvent) -> GitHubEvent:
    """Add head and base of the pull request if only its number is known.

    That is so after `issue_comment`, and if the user gave the number. After `workflow_run` the head remains
    that of the run, which is what was tested.
    """
    if context.number is None or context.event in PULL_REQUEST_EVENTS:
        return context
    pull = await hub.get(f"{_repository(context)}/pulls/{context.number}", needs=NEEDS)
    known = with_pull(context, pull)
    if known.head is None or known.base.branch is None:
        raise GitHubError(f"GitHub does not list the commits of pull request {context.number}")
    return replace(known, head=context.head) if context.event == "workflow_run" else known


async def numbers_of(hub: GitHub, context: GitHubEvent, *, pushed: bool) -> tuple[int, ...]:
    """Return the pull requests that a comment on this run may go to, in order.

    That is the one of the event or of the user; after `workflow_run` only if its last commit is the tested
    one. Otherwise all open ones whose last commit is exactly the tested one: after `workflow_run` those from
    the branch and repository of that run, so a fork that was renamed or deleted gets no comment; after a
    push, a schedule or a run by hand only if `pushed`. A merge queue's run belongs to none.
    """
    if context.number is not None:
        return (context.number,) if await _is_tested(hub, context) else ()
    head, path = context.head, _repository(context)
    if head is None or head.repository is None:
        return ()
    if context.event == "workflow_run" and head.branch:
        owner = head.repository.partition("/")[0]
        listed = hub.pages(f"{path}/pulls", needs=NEEDS, state="open", head=f"{owner}:{head.branch}")
        return await _numbers(listed, head, context)
    if context.event in _PUSHED_EVENTS and pushed:
        commit = quote(head.sha, safe="")
        return await _numbers(hub.pages(f"{path}/commits/{commit}/pulls", needs=NEEDS), head, context)
    return ()


async def _is_tested(hub: GitHub, context: GitHubEvent) -> bool:
    """Return whether a number may be trusted. After `workflow_run` it may come from a stranger's upload."""
    if context.event != "workflow_run" or context.head is None:
        return True
    pull = await hub.get(f"{_repository(context)}/pulls/{context.number}", needs=NEEDS)
    return _matches(pull, context.head, context)


async def _numbers(listed: AsyncIterator[Any], head: Commit, context: GitHubEvent) -> tuple[int, ...]:
    numbers = {
        with_pull(GitHubEvent(), pull).number async for pull in listed if _matches(pull, head, context)
    }
    return tuple(sorted(number for number in numbers if number is not None))


def _matches(pull: Any, head: Commit, context: GitHubEvent) -> bool:
    """Return whether a pull request is open, targets our repository, and is at the commit `head`."""
    known = with_pull(GitHubEvent(), pull).head
    target = member(member(member(pull, "base"), "repo"), "full_name")
    if known is None or pull.get("state") != "open" or target != context.repository:
        return False
    return (known.sha, known.repository) == (head.sha, head.repository)


def _repository(context: GitHubEvent) -> str:
    return f"/repos/{quote(context.repository or '')}"
