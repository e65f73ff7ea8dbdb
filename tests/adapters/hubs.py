"""The client of GitHub's API, whose waits take no time."""

from github_api import GitHubApi

from ci_evals.adapters.github.api import GitHub


async def no_sleep(_seconds: float) -> None:
    pass


def hub_of(api: GitHubApi) -> GitHub:
    return GitHub(api.url, api.token, sleep=no_sleep)
