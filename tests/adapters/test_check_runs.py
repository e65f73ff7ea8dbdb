"""The check run on a commit."""

import github_api
import pytest
from each_row import each_row
from github_api import REPOSITORY, Answer
from hubs import hub_of

from ci_evals.adapters.github import check_runs
from ci_evals.adapters.github.check_runs import CheckRun
from ci_evals.domain.errors import GitHubError

NEEDED = {"x-accepted-github-permissions": "checks=write"}
FORBIDDEN = Answer(403, {"message": "Resource not accessible by integration"}, NEEDED)
SHA = "c0ffee" + "1" * 34
CHECK = CheckRun("default", SHA, "success", "Evals passed: 94 / 100", "## Passed", "https://github.com/run/1")


@pytest.fixture
def api():
    with github_api.serving() as api:
        api.add_commit(SHA)
        yield api


async def create_check_run(api, check=CHECK):
    async with hub_of(api) as hub:
        return await check_runs.create(hub, REPOSITORY, check)


async def test_check_run_has_key_conclusion_title_and_summary_in_the_limits_of_github(api):
    url = await create_check_run(api)
    (made,) = api.check_runs
    assert url == made["html_url"]
    assert (made["name"], made["head_sha"], made["status"]) == ("ci-evals", SHA, "completed")
    assert (made["conclusion"], made["details_url"]) == ("success", "https://github.com/run/1")
    assert made["output"] == {"title": "Evals passed: 94 / 100", "summary": "## Passed"}
    api.check_runs.clear()
    grin = "\N{GRINNING FACE}"
    await create_check_run(api, CheckRun("billing", SHA, "neutral", grin * 300, f"{grin}\ud800"))
    (made,) = api.check_runs
    assert made["name"] == "ci-evals (billing)"
    assert (len(made["output"]["title"]), made["output"]["summary"]) == (255, "\ufffd\ufffd")


@each_row(("answer", "says"), [
    (Answer(401, {"message": "Bad credentials"}), "Bad credentials"),
    (FORBIDDEN, "'checks: write'; add it to the job's 'permissions:'"),
    (Answer(404, {"message": "Not Found"}), "or the token lacks the permission 'checks: write'"),
    (Answer(409, {"message": "Conflict"}), "Conflict"),
    (Answer(410, {"message": "archived"}), "archived"),
    (Answer(422, {"message": "No commit found for SHA"}), "No commit found"),
    (Answer(429, {"message": "slow down"}, {"retry-after": "9999"}), "the rate limit is used up"),
    (Answer(500, {"message": "oops"}), "500"),
    (Answer(502, raw=b"<html><body>Bad gateway</body></html>"), "502"),
    (Answer(200, raw=b"<html>Sign in</html>"), "something other than JSON"),
    (github_api.HANG_UP, "127.0.0.1"),
])  # fmt: skip
async def test_rejected_check_run_request_raises_single_error_with_remedy(api, answer, says):
    """And nothing is sent twice that GitHub may have acted on."""
    api.faults.clear()
    api.fail("POST .*/check-runs", *[answer] * 9)
    with pytest.raises(GitHubError) as refused:
        await create_check_run(api)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert api.check_runs == []
