"""`run --resume`: which journals are resumed, and how reports show it."""

import json
import subprocess

import pytest
import world
from commands import ci_evals, read_results, write_suite

from ci_evals.adapters.journal.records import JOURNAL as NAME

pytestmark = pytest.mark.slow

FAILS = {"evaluations": [{"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"}]}
RUN = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7001", "GITHUB_RUN_ATTEMPT": "1"}
RUN |= {"GITHUB_SHA": "c" * 40, "GITHUB_REPOSITORY": "org/repo"}
REPORTS = ("_results.json", "summary.md", "junit.xml", "report.html")


@pytest.fixture
def agent():
    with world.agent(lambda heard: world.message("Hello", workflows=[])) as served:
        yield served


def run(agent, folder, *more, code=1, text="", **environ):
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, **environ}
    ran = ci_evals("run", "suite.json", "--provider=offline", *more, cwd=folder, env=env)
    assert (ran.returncode, text in ran.stderr + ran.stdout) == (code, True), ran.stderr + ran.stdout
    return ran


def run_with_failure(agent, folder, **environ):
    write_suite(folder, {}, FAILS | {"name": "Refunds"})
    run(agent, folder, **environ)
    return folder / "results" / NAME


def test_forged_pass_in_journal_is_dropped(tmp_path, agent):
    journal = run_with_failure(agent, tmp_path)
    journal.write_text(journal.read_text().replace('"outcome":"failed"', '"outcome":"passed"'))
    before = len(agent.requests)
    text = "is not as it was written: that line and all later ones are dropped"
    assert text in run(agent, tmp_path, "--resume=results").stderr
    assert len(agent.requests) > before


def test_journal_tracked_by_git_is_rejected(tmp_path, agent):
    """Whoever may commit could have written it."""
    run_with_failure(agent, tmp_path)
    for command in (["init", "--quiet"], ["add", "--force", "results"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    for version in ("2", "4"):
        subprocess.run(["git", "update-index", "--index-version", version], cwd=tmp_path, check=True)
        text = "--resume: git tracks results/journal.jsonl"
        run(agent, tmp_path, "--resume=results", code=2, text=text)
    subprocess.run(["git", "rm", "--quiet", "-r", "--cached", "results"], cwd=tmp_path, check=True)
    run(agent, tmp_path, "--resume=results")


def test_journal_of_other_run_or_commit_or_from_outside_ci_is_rejected_in_ci(tmp_path, agent):
    """A cache or an artifact of a pull request can contain one."""
    other_commit = "it is of commit cccccccccccc, and this is commit dddddddddddd"
    for before, now, why in (
        ({}, RUN, "it is of no GitHub run, and this is run 7001"),
        (RUN, RUN | {"GITHUB_RUN_ID": "7002"}, "it is of run 7001, and this is run 7002"),
        (RUN, RUN | {"GITHUB_SHA": "d" * 40}, other_commit),
    ):
        run_with_failure(agent, tmp_path, **before)
        requests = len(agent.requests)
        run(agent, tmp_path, "--resume=results", code=2, text=why, **now)
        assert len(agent.requests) == requests


def test_later_attempt_resumes_journal_and_every_report_says_so(tmp_path, agent):
    journal = run_with_failure(agent, tmp_path, **RUN)
    header, first, *_ = journal.read_text().splitlines(keepends=True)
    journal.write_text(header + first)
    ran = run(agent, tmp_path, "--resume=results", **RUN | {"GITHUB_RUN_ATTEMPT": "2"})
    resumed = read_results(tmp_path)["run"]["resumed"]
    assert (resumed["trials"], resumed["attempt"], resumed["commit"]) == (1, 1, "c" * 40)
    assert resumed["writtenAt"] == json.loads(first)["at"]
    text = "Resumed: 1 trial came from the journal of this run, begun in attempt 1, the last written 20"
    assert text in ran.stdout
    for name in REPORTS[1:]:
        assert text in (tmp_path / "results" / name).read_text(), name


def test_journal_signed_with_other_llm_key_is_rejected_in_ci(tmp_path, agent):
    """Another job of the run could write one. A placeholder for local servers signs nothing."""
    with world.llm(lambda asked: "###STOP###") as models:
        write_suite(tmp_path, FAILS)
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | RUN | models.env
        other = {name: value + "-of-others" for name, value in models.env.items() if "KEY" in name}
        guessed, also_guessed = {"LLM_API_KEY": "none"}, {"LLM_API_KEY": "not-needed"}
        for first, second, code in (({}, {}, 1), ({}, other, 2), (guessed, also_guessed, 1)):
            ran = ci_evals("run", "suite.json", cwd=tmp_path, env=env | first)
            assert ran.returncode == 1, ran.stderr
            again = ci_evals("run", "suite.json", "--resume=results", cwd=tmp_path, env=env | second)
            assert again.returncode == code, again.stderr
            if code == 2:
                assert "was written with another LLM key, or outside CI" in again.stderr + again.stdout
        env |= also_guessed | {"GITHUB_RUN_ID": "7002"}
        assert ci_evals("run", "suite.json", "--resume=results", cwd=tmp_path, env=env).returncode == 2
