"""The CI run and the commit that a run belongs to, read from the environment and from git's files."""

from pathlib import Path

from ci_evals.adapters.git.checkout import checkout_of
from ci_evals.adapters.github.context import GitHubEvent
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.journal import RunIdentity

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


def run_identity(event: GitHubEvent, context: RunContext) -> RunIdentity:
    """Return the CI run and the commit, as far as they are known."""
    own, environ = event.own_run, context.environ
    checkout = checkout_of(Path.cwd())
    commit = event.sha or next((environ[name] for name in COMMITS if environ.get(name)), None)
    ci = context.in_ci
    return RunIdentity(
        ci=ci,
        run_id=str(own.id) if own else None,
        attempt=own.attempt if own else None,
        commit=commit if ci else None,
        checkout=checkout.commit if checkout else None,
    )
