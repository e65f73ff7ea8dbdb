"""Whose code a checkout holds, for every event."""

from pathlib import Path

from each_row import each_row
from github_api import FORK, REPOSITORY

from ci_evals.adapters.git.checkout import Checkout, RemoteRepository
from ci_evals.adapters.github.context import Base, Commit, GitHubEvent
from ci_evals.adapters.github.trust import UNTRUSTED_EVENTS, distrusted_because, foreign_because

EVENT, HEAD, MERGE, BASE, TIP, OTHER = (letter * 40 for letter in "012345")
HERE = RemoteRepository("github.com", REPOSITORY)
THERE = RemoteRepository("github.com", FORK)
DEFAULT_BRANCH = "main"

AT_EVENT = Checkout(Path("/w"), EVENT)
AT_HEAD = Checkout(Path("/w"), HEAD)
AT_MERGE = Checkout(Path("/w"), MERGE)
AT_BASE = Checkout(Path("/w"), BASE)
AT_MAIN = Checkout(Path("/w"), TIP, DEFAULT_BRANCH, TIP, HERE)
AT_TOPIC = Checkout(Path("/w"), HEAD, "topic", HEAD, HERE)
AT_OTHER = Checkout(Path("/w"), OTHER)
MAIN_WITH_COMMITS = Checkout(Path("/w"), OTHER, DEFAULT_BRANCH, TIP, HERE)
MAIN_OF_FORK = Checkout(Path("/w"), TIP, DEFAULT_BRANCH, TIP, THERE)
CALLED_BY_HAND = Checkout(Path("/w"), OTHER, "pr/7", OTHER, HERE)
UNREADABLE = Checkout(Path("/w"))


def of_event(name: str, **fields) -> GitHubEvent:
    return GitHubEvent(name, REPOSITORY, sha=EVENT, default_branch=DEFAULT_BRANCH, **fields)


def of_pull(event: str, repository: str | None, **fields) -> GitHubEvent:
    head, base = Commit(HEAD, repository, "topic"), Base("main", BASE, EVENT)
    return of_event(event, number=7, head=head, base=base, merged=MERGE, **fields)


def by_hand(event: str = "workflow_dispatch") -> GitHubEvent:
    return of_event(event, number=7)


OWN, FORKED, DELETED = (of_pull("", repository) for repository in (REPOSITORY, FORK, None))
"""What GitHub says of the pull request whose number was given."""

ROWS = [
    # event, checkout, pull request by number, trusted
    (GitHubEvent(), None, None, True),
    (GitHubEvent(), AT_OTHER, None, True),
    (of_pull("pull_request", FORK), AT_EVENT, None, True),
    (of_pull("pull_request_review", FORK), AT_OTHER, None, True),
    (of_pull("pull_request", None), None, None, True),
    *((of_pull("pull_request", REPOSITORY), checkout, None, True)
      for checkout in (AT_EVENT, AT_HEAD, AT_MERGE, AT_BASE, AT_TOPIC, AT_MAIN, None)),
    (of_pull("pull_request", REPOSITORY), AT_OTHER, None, False),
    (of_pull("pull_request", REPOSITORY), MAIN_OF_FORK, None, False),
    (of_pull("pull_request", REPOSITORY, of_dependabot=True), AT_EVENT, None, True),
    (of_pull("pull_request", REPOSITORY, of_dependabot=True), AT_OTHER, None, False),
    *((of_pull(event, REPOSITORY), AT_EVENT, None, False) for event in sorted(UNTRUSTED_EVENTS)),
    *((of_pull(event, FORK), AT_HEAD, None, False) for event in sorted(UNTRUSTED_EVENTS)),
    *((of_event(event), checkout, None, trusted)
      for event in ("push", "schedule", "release", "create", "check_suite")
      for trusted, checkouts in [
          (True, (AT_EVENT, AT_MAIN, None)),
          (False, (AT_OTHER, MAIN_WITH_COMMITS, MAIN_OF_FORK, CALLED_BY_HAND, UNREADABLE)),
      ]
      for checkout in checkouts),
    (of_event("merge_group", base=Base("main", BASE)), AT_EVENT, None, True),
    (of_event("merge_group", base=Base("main", BASE)), AT_BASE, None, True),
    (of_event("merge_group", base=Base("main", BASE)), AT_HEAD, None, False),
    *((of_event(event), checkout, None, trusted)
      for event in ("workflow_dispatch", "repository_dispatch")
      for checkout, trusted in [(AT_EVENT, True), (AT_MAIN, True), (AT_OTHER, False), (None, False)]),
    *((of_event(event), checkout, None, False)
      for event in ("deployment", "deployment_status", "an_event_of_tomorrow")
      for checkout in (AT_EVENT, None)),
    (of_event("deployment"), AT_MAIN, None, True),
    (by_hand(), AT_EVENT, None, True),
    (by_hand(), AT_EVENT, FORKED, True),
    *((by_hand(), checkout, OWN, True) for checkout in (AT_HEAD, AT_MERGE, AT_BASE, AT_TOPIC, None)),
    *((by_hand(), checkout, FORKED, False) for checkout in (AT_HEAD, AT_MERGE, AT_TOPIC, AT_OTHER, None)),
    *((by_hand(), checkout, DELETED, False) for checkout in (AT_HEAD, None)),
    *((by_hand(), checkout, None, False) for checkout in (AT_HEAD, AT_MERGE, None)),
    (by_hand("push"), None, None, False),
    (by_hand("push"), None, FORKED, False),
    (by_hand("push"), None, OWN, True),
]  # fmt: skip


def label(value: object) -> str:
    match value:
        case GitHubEvent():
            return f"{value.event or 'none'}{' of fork' if value.foreign else ''}"
        case Checkout():
            return f"{(value.commit or 'unreadable')[:1]} {value.branch or 'detached'}"
        case bool():
            return "trusted" if value else "untrusted"
    return "without"


@each_row(("event", "checkout", "pull", "trusted"), ROWS, ids=label)
def test_checkout_is_trusted_by_event_and_commit(event, checkout, pull, trusted):
    because = distrusted_because(event, checkout, pull)
    assert (because is None) is trusted, because


def test_privileged_event_options_accept_only_files_of_own_checkout():
    """There the suites are anybody's, but what the workflow's author names lies in the base's own tree."""
    for event in sorted(UNTRUSTED_EVENTS):
        assert foreign_because(of_event(event), AT_EVENT) is None
        assert foreign_because(of_event(event), AT_OTHER) is not None
        assert foreign_because(of_event(event), None) is not None
