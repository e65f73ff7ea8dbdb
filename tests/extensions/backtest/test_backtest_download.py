"""Runs of a branch, downloaded from GitHub."""

import json

import github_api
import pytest
import report_texts
import stored
from github_api import REPOSITORY, TOKEN, Answer, zip_of

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.backtest.command import backtest
from ci_evals.extensions.backtest.settings import BacktestSettings


@pytest.fixture
def api():
    with github_api.serving() as served:
        yield served


def add(api, number: int, **fields) -> None:
    results = stored.run(number)
    data = zip_of({"_results.json": report_texts.results_json_text(results)})
    api.add_run(results.run.git.commit, data, **fields)


def run_backtest(api, folder, code: int = 0, token: str = TOKEN, **options) -> dict:
    settings = BacktestSettings(folder=folder, from_github=REPOSITORY, **options)
    context = RunContext({"GITHUB_API_URL": api.url, "GITHUB_TOKEN": token})
    with pytest.raises(SystemExit) as end:
        backtest(settings, context)
    context.close()
    assert end.value.code == code
    written = folder / "_backtest.json"
    return json.loads(written.read_text()) if written.exists() else {}


def download_count(api) -> int:
    return len(api.requests_to(r"/zip$"))


def test_newest_runs_of_branch_are_downloaded_and_blob_store_gets_no_token(api, tmp_path):
    """Downloads redirect to a store that anybody may run."""
    for number in range(5):
        add(api, number)
    add(api, 5, head_branch="topic")
    add(api, 6, head_repository={"id": github_api.FORK_ID})
    add(api, 7, name="ci-evals-results-other")
    result = run_backtest(api, tmp_path, last=4)
    assert (result["runs"], result["pairs"]) == (4, 2)
    assert [one["run"] for one in result["pairResults"]] == ["run-2", "run-4"]
    assert download_count(api) == len(api.blob_requests) == 4
    assert not any("authorization" in request.headers for request in api.blob_requests)


def test_interrupted_download_resumes(api, tmp_path, capsys):
    for number in range(4):
        add(api, number)
    newest, next_one, *_ = (one["id"] for one in reversed(api.artifacts))
    api.fail(f"/artifacts/{next_one}/zip", Answer(401, {"message": "Bad credentials"}))
    assert run_backtest(api, tmp_path, code=3) == {}
    error = capsys.readouterr().err
    assert "the download failed after 1 run; the same command resumes" in error
    assert [path.parent.name for path in tmp_path.rglob("_results.json")] == [str(newest)]
    assert run_backtest(api, tmp_path)["runs"] == 4
    assert download_count(api) == 5  # one of them refused


def test_expired_and_broken_artifacts_are_counted(api, tmp_path, capsys):
    for number in range(2):
        add(api, number)
    add(api, 2, expired=True)
    api.add_run("d" * 40, b"no zip")
    assert run_backtest(api, tmp_path)["runs"] == 2
    assert "2 runs downloaded, 1 expired or deleted, 1 unreadable" in capsys.readouterr().err


def test_missing_permission_token_or_repository_is_reported(api, tmp_path, capsys):
    api.permissions.clear()
    add(api, 0)
    assert run_backtest(api, tmp_path, code=3) == {}
    assert "actions: read" in capsys.readouterr().err
    with pytest.raises(UsageError, match="set GITHUB_TOKEN"):
        backtest(BacktestSettings(folder=tmp_path, from_github=REPOSITORY), RunContext({}))
    with pytest.raises(UsageError, match="write OWNER/NAME"):
        backtest(BacktestSettings(folder=tmp_path, from_github="../../user"), RunContext({}))
