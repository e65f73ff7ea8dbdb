"""The files that changed, as GitHub's comparison of two commits lists them."""

import pytest
from each_row import each_row
from github_api import HANG_UP, REPOSITORY, Answer
from hubs import hub_of

from ci_evals.adapters.github.changes import changed_files
from ci_evals.domain.errors import GitHubError


async def ask(api, base="origin/main"):
    async with hub_of(api) as hub:
        return await changed_files(hub, REPOSITORY, base, "d" * 40)


async def test_changed_files_include_old_paths_of_renamed_ones(api):
    renamed = {"filename": "new.md", "previous_filename": "old.md"}
    api.changes["main", "d" * 40] = [{"filename": "src/a.py"}, renamed]
    assert await ask(api) == {"src/a.py", "new.md", "old.md"}
    api.changes["topic/1", "d" * 40] = []
    assert await ask(api, "topic/1") == set()


REFUSALS = [
    (Answer(s, {"message": "No"}), f"GitHub answered {s}") for s in (401, 403, 404, 409, 422, 500, 503)
]


@each_row(("answer", "why"), [
    *REFUSALS,
    (Answer(200, {"files": [{"filename": str(n)} for n in range(300)]}), "300 changed files"),
    (Answer(200, {"files": [{}]}), "a changed file without its name"),
    (Answer(200, []), "GitHub lists no files"),
    (Answer(200, raw=b"<html>"), "JSON"),
    (HANG_UP, "cannot be reached"),
])  # fmt: skip
async def test_incomplete_or_refused_comparison_is_an_error(api, answer, why):
    api.faults.clear()
    api.fail("/compare/", *[answer] * 9)
    with pytest.raises(GitHubError, match=why):
        await ask(api)
