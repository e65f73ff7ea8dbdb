"""The rules on checkouts that may hold somebody else's code, which must not meet secrets. Pure.

The table of them is in docs/security.md.
"""

from ci_evals.adapters.git.checkout import Checkout, repository_of
from ci_evals.adapters.github.context import PULL_REQUEST_EVENTS, GitHubEvent

UNTRUSTED_EVENTS = frozenset({"pull_request_target", "workflow_run", "issue_comment"})
"""Events in which a workflow has secrets while its files may come from anybody."""

_OWN_COMMIT = frozenset(
    {
        *("branch_protection_rule", "check_run", "check_suite", "create", "delete", "discussion"),
        *("discussion_comment", "fork", "gollum", "issue_comment", "issues", "label", "merge_group"),
        *("milestone", "public", "pull_request_target", "push", "release", "repository_dispatch"),
        *("schedule", "status", "watch", "workflow_dispatch", "workflow_run"),
    }
)
"""Events whose `GITHUB_SHA` is on a branch or tag of the repository itself.

That of a deployment is not among them: anybody's pull request may be deployed for a preview.
"""

_OWN_TREE = _OWN_COMMIT - UNTRUSTED_EVENTS - {"workflow_dispatch", "repository_dispatch"}
"""Those events for which workflows check out nothing else. The others often name a commit by hand."""


def distrusted_because(
    context: GitHubEvent,
    checkout: Checkout | None,
    pull: GitHubEvent | None = None,
    secret: str | None = None,
) -> str | None:
    """Return why suites of this checkout are not trusted, as a clause; None if they are.

    Args:
        context: The event.
        checkout: The checkout; None if there is no `.git`.
        pull: The pull request whose number the user gave.
        secret: The name of a secret that the job has. It matters only for forks, which usually have none.
    """
    if context.event in UNTRUSTED_EVENTS:
        return f"in the event {context.event}, which mixes foreign files and secrets"
    return foreign_because(context, checkout, pull, secret)


def foreign_because(
    context: GitHubEvent,
    checkout: Checkout | None,
    pull: GitHubEvent | None = None,
    secret: str | None = None,
) -> str | None:
    """Return why a checkout may be somebody else's code in a job with secrets; None if it is our own."""
    # Dependabot's jobs have no secrets of the repository, but may have some of their own.
    of_fork = context.without_secrets and context.foreign
    if not context.event or (of_fork and secret is None):
        return None
    because = _foreign(context, checkout, pull)
    # A private repository can pass its secrets to forks.
    return f"{because}, in a job that has secrets ({secret})" if because and of_fork else because


def _foreign(context: GitHubEvent, checkout: Checkout | None, pull: GitHubEvent | None) -> str | None:
    change = context if context.event in PULL_REQUEST_EVENTS else pull
    if checkout is None:
        return _without_git(context, change)
    if checkout.commit is None:
        return "in a checkout whose HEAD cannot be read"
    if checkout.commit in _own_commits(context, change) or _is_own_tip(context, checkout, change):
        return None
    head = change.head.sha if change and change.head else None
    if change and checkout.commit in (head, change.base.merge, change.merged):
        return _unless_own(change)
    return (
        f"in a checkout of {checkout.commit[:12]}, which may be somebody else's code: it is neither the "
        "commit of this event nor the newest one of a branch that the event names"
    )


def _without_git(context: GitHubEvent, change: GitHubEvent | None) -> str | None:
    if change:
        return _unless_own(change)
    if context.event in _OWN_TREE and context.number is None:
        return None
    return (
        "in a workspace without .git, which may hold somebody else's code (without git, "
        "actions/checkout creates no .git)"
    )


def _own_commits(context: GitHubEvent, change: GitHubEvent | None) -> set[str | None]:
    own = {change.base.sha} if change else set()
    if context.event == "merge_group":
        own.add(context.base.sha)
    if context.event in _OWN_COMMIT:
        own.add(context.sha)
    return own - {None}


def _is_own_tip(context: GitHubEvent, checkout: Checkout, change: GitHubEvent | None) -> bool:
    """Return whether HEAD is the newest fetched commit of a branch of this repository that the event names.

    Other branches do not count, since `git fetch origin pull/7/head:…` gives a fork's commit any name.
    """
    branches = {context.default_branch, context.base.branch}
    if change:
        branches.add(change.base.branch)
        if change.head and _is_own(change):
            branches.add(change.head.branch)
    return (
        checkout.branch is not None
        and checkout.branch in branches
        and checkout.commit == checkout.branch_at_origin
        and context.repository is not None
        and checkout.origin is not None
        and checkout.origin == repository_of(f"{context.server_url}/{context.repository}")
    )


def _is_own(change: GitHubEvent) -> bool:
    """Return whether a pull request comes from a branch of this repository. A deleted fork has no name."""
    head = change.head.repository if change.head else None
    return head is not None and change.repository is not None and head.lower() == change.repository.lower()


def _unless_own(change: GitHubEvent) -> str | None:
    if _is_own(change):
        return None
    name = f"pull request {change.number}" if change.number else "a pull request"
    repository = change.head.repository if change.head else None
    return f"in a checkout of {name}, which comes from {repository or 'an unknown repository'}"
