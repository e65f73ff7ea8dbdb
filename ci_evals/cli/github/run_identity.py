"""The CI run and the commit that a run belongs to, read from the environment and from git's files."""

from dataclasses import replace
from pathlib import Path

from ci_evals.adapters.git.checkout import checkout_of
from ci_evals.adapters.github.context import GitHubEvent
from ci_evals.adapters.journal.records import RunIdentity
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.run import Git

COMMITS = (
    "CI_COMMIT_SHA",  # GitLab, Woodpecker
    "BUILD_SOURCEVERSION",  # Azure Pipelines
    "CIRCLE_SHA1",
    "BUILDKITE_COMMIT",
    "BITBUCKET_COMMIT",
    "TRAVIS_COMMIT",
    "DRONE_COMMIT_SHA",
    "APPVEYOR_REPO_COMMIT",
    "GIT_COMMIT",  # Jenkins
)
"""Variables in which CI services other than GitHub name the commit."""


def commit_of(event: GitHubEvent, context: RunContext) -> str | None:
    """Return the commit that a CI service tests, by its variables or, if there is none, by the checkout.

    None elsewhere: what lies in a developer's checkout may differ from its commit.
    """
    if event.sha or not context.in_ci:
        return event.sha
    named = next((context.environ[name] for name in COMMITS if context.environ.get(name)), None)
    checkout = None if named else checkout_of(Path.cwd())
    return named or (checkout.commit if checkout else None)


def with_local_commit(git: Git, output_dir: Path, context: RunContext) -> Git:
    """Return `git` with branch and commit of the checkout, if no CI service names them.

    Without the program git nobody knows what differs from the commit, so only the branch is named. The
    reports in `output_dir` are no change.
    """
    if context.in_ci or git.commit or (checkout := checkout_of(Path.cwd())) is None:
        return git
    branch = f"refs/heads/{checkout.branch}" if checkout.branch else None
    git = replace(git, ref=git.ref or branch)
    from ci_evals.adapters.git import changes  # noqa: PLC0415  # starts programs, unlike the rest

    try:
        changed = changes.Checkout(Path.cwd(), context.environ).has_changes(besides=output_dir)
    except changes.GitError:
        return git
    return replace(git, commit=checkout.commit, uncommitted_changes=changed)


def run_identity(event: GitHubEvent, context: RunContext) -> RunIdentity:
    """Return the CI run and the commit, as far as they are known."""
    own, ci = event.own_run, context.in_ci
    checkout = checkout_of(Path.cwd())
    return RunIdentity(
        ci=ci,
        run_id=str(own.id) if own else None,
        attempt=own.attempt if own else None,
        commit=commit_of(event, context) if ci else None,
        checkout=checkout.commit if checkout else None,
    )
