"""`run --resume` from the outside: which journals are resumed, and what reports say of it."""

import json
import subprocess

import pytest
import world
from commands import ci_evals, read_results, write_suite

from ci_evals.adapters.journal.records import JOURNAL as NAME

pytestmark = pytest.mark.slow

FAILS = {"evaluations": [{"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"}]}
RUN = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_RUN_ID": "7001",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_SHA": "c" * 40,
    "GITHUB_REPOSITORY": "org/repo",
}
REPORTS = ("_results.json", "summary.md", "junit.xml", "report.html")


@pytest.fixture
def agent():
    with world.agent(lambda heard: world.message("Hello", workflows=[])) as served:
        yield served


def run(agent, folder, *more, **environ):
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, **environ}
    return ci_evals("run", "suite.json", "--provider=offline", *more, cwd=folder, env=env)


def failed(agent, folder, **environ):
    """A run of two tests, one of which fails, with its journal."""
    write_suite(folder, {}, FAILS | {"name": "Refunds"})
    assert run(agent, folder, **environ).returncode == 1
    return folder / "results" / NAME


def forge(journal):
    """Writes passes where there were failures."""
    journal.write_text(journal.read_text().replace('"outcome":"failed"', '"outcome":"passed"'))


def test_a_journal_in_which_a_failure_was_made_a_pass_turns_nothing_green(tmp_path, agent):
    """The lines from there on are dropped, and their trials are rerun."""
    forge(failed(agent, tmp_path))
    before = len(agent.requests)
    ran = run(agent, tmp_path, "--resume=results")
    assert ran.returncode == 1
    assert "is not as it was written: that line and all later ones are dropped" in ran.stderr
    assert len(agent.requests) > before


def test_a_journal_that_git_tracks_is_refused(tmp_path, agent):
    """Whoever may commit could have written it."""
    failed(agent, tmp_path)
    for command in (["init", "--quiet"], ["add", "--force", "results"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    for version in ("2", "4"):
        subprocess.run(["git", "update-index", "--index-version", version], cwd=tmp_path, check=True)
        ran = run(agent, tmp_path, "--resume=results")
        assert ran.returncode == 2
        assert "--resume: git tracks results/journal.jsonl" in ran.stderr
    subprocess.run(["git", "rm", "--quiet", "-r", "--cached", "results"], cwd=tmp_path, check=True)
    assert run(agent, tmp_path, "--resume=results").returncode == 1


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"GITHUB_RUN_ID": "7002"}, "it is of run 7001, and this is run 7002"),
        ({"GITHUB_SHA": "d" * 40}, "it is of commit cccccccccccc, and this is commit dddddddddddd"),
    ],
)
def test_in_ci_a_journal_of_another_run_or_commit_is_refused(tmp_path, agent, other, why):
    """As one that a cache or an artifact of a pull request brought along."""
    failed(agent, tmp_path, **RUN)
    asked = len(agent.requests)
    ran = run(agent, tmp_path, "--resume=results", **RUN | other)
    assert ran.returncode == 2
    assert why in ran.stderr + ran.stdout
    assert len(agent.requests) == asked


def test_a_journal_from_a_desk_is_refused_in_ci(tmp_path, agent):
    """It is of no run there."""
    failed(agent, tmp_path)
    ran = run(agent, tmp_path, "--resume=results", **RUN)
    assert ran.returncode == 2
    assert "it is of no GitHub run, and this is run 7001" in ran.stderr + ran.stdout


def test_a_later_attempt_resumes_and_every_report_says_so(tmp_path, agent):
    """How much was played before, when, in which attempt and at which commit."""
    journal = failed(agent, tmp_path, **RUN)
    header, first, *_ = journal.read_text().splitlines(keepends=True)
    journal.write_text(header + first)
    ran = run(agent, tmp_path, "--resume=results", **RUN | {"GITHUB_RUN_ATTEMPT": "2"})
    assert ran.returncode == 1
    results = read_results(tmp_path)["run"]["resumed"]
    assert (results["trials"], results["attempt"], results["commit"]) == (1, 1, "c" * 40)
    assert results["writtenAt"] == json.loads(first)["at"]
    text = "Resumed: 1 trial came from the journal of this run, begun in attempt 1, the last written 20"
    assert text in ran.stdout
    for name in REPORTS[1:]:
        assert text in (tmp_path / "results" / name).read_text(), name


def test_in_ci_the_llm_key_vouches_for_the_journal(tmp_path, agent):
    """Knowing run and commit is not enough to write one: another job of the run could."""
    with world.llm(lambda asked: "###STOP###") as models:
        write_suite(tmp_path, FAILS)
        keys = RUN | models.env
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key}
        ran = ci_evals("run", "suite.json", cwd=tmp_path, env=env | keys)
        assert ran.returncode == 1, ran.stderr
        journal = tmp_path / "results" / NAME
        ours = journal.read_bytes()
        again = ci_evals("run", "suite.json", "--resume=results", cwd=tmp_path, env=env | keys)
        assert again.returncode == 1
        journal.write_bytes(ours)
        other = {name: value + "-of-others" for name, value in models.env.items() if "KEY" in name}
        ran = ci_evals("run", "suite.json", "--resume=results", cwd=tmp_path, env=env | keys | other)
        assert ran.returncode == 2
        assert "was written with another LLM key, or outside CI" in ran.stderr + ran.stdout


def test_a_key_that_can_be_guessed_vouches_for_no_journal(tmp_path, agent):
    """As local servers take it: run and commit alone decide, as without a key."""
    with world.llm(lambda asked: "###STOP###") as models:
        write_suite(tmp_path, FAILS)
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | RUN | models.env
        ran = ci_evals("run", "suite.json", cwd=tmp_path, env=env | {"LLM_API_KEY": "none"})
        assert ran.returncode == 1, ran.stderr
        other = env | {"LLM_API_KEY": "not-needed"}
        ran = ci_evals("run", "suite.json", "--resume=results", cwd=tmp_path, env=other)
        assert ran.returncode == 1, ran.stderr
        ran = ci_evals(
            "run", "suite.json", "--resume=results", cwd=tmp_path, env=other | {"GITHUB_RUN_ID": "7002"}
        )
        assert ran.returncode == 2
