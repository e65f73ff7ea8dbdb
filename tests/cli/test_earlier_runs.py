"""`--history`: earlier runs say what a drop is worth, and when the base agent is played."""

import shutil
from pathlib import Path

import pytest
from commands import ci_evals, results_in, shows, write_uncritical

from ci_evals.cli.files.saved_run import history_in
from ci_evals.demo_agent.server import DemoServer
from ci_evals.library.runs import load_results

pytestmark = pytest.mark.slow

KEYS = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}
OPTIONS = ("--provider=offline", "--loops=3", "--min-score=0", "--no-gate")
GATE = (*OPTIONS[:-1], "--regression=significant")
SUITE = "shop.json"
BROKEN = ["RETURN_REQUEST", "ORDER_STATUS"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """Six runs of one noisy agent, each by another seed, in folders of their own."""
    folder = tmp_path_factory.mktemp("runs")
    write_uncritical(folder, "demo:retail", SUITE)
    for seed in range(6):
        with DemoServer(noise=0.03, seed=seed) as agent:
            options = (*OPTIONS, f"--base-url={agent.base_url}", f"--output-dir=main/{seed}")
            ran = ci_evals("run", SUITE, *options, cwd=folder, env=KEYS)
            assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture
def folder(recorded, tmp_path) -> Path:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return tmp_path


def play(folder: Path, agent: DemoServer, *options: str):
    own = ("--baseline=main/5", "--history=main", f"--base-url={agent.base_url}")
    return ci_evals("run", SUITE, *GATE, *own, *options, cwd=folder, env=KEYS)


def test_an_unchanged_agent_passes(folder):
    """By all runs together, and the results say what runs differ by."""
    with DemoServer(noise=0.03, seed=9) as agent:
        ran = play(folder, agent)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    comparison = results_in(folder)["comparison"]
    history = comparison["history"]
    assert comparison["method"] == "history"
    assert (history["runs"], history["tests"]) == (6, comparison["tests"])
    assert 3 <= history["together"] <= 6
    assert history["spread"] > 0
    assert 0 < history["smallestDrop"] < 100
    assert comparison["broken"] == comparison["probablyBroken"] == []
    assert history["decides"]


def test_a_broken_agent_fails_and_its_tests_are_named(folder):
    """Three trials against eighteen can prove the fall of a single test."""
    with DemoServer(noise=0.03, seed=9, broken=BROKEN) as agent:
        ran = play(folder, agent)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    comparison = results_in(folder)["comparison"]
    assert comparison["p"] == comparison["history"]["p"] <= 0.05
    assert comparison["broken"]
    assert shows(folder, r"Broken: .+ \(with all 12 tests looked at, a false name in at most 5 % of runs\)\.")
    assert shows(
        folder, r"Runs of the base branch differ among themselves by [\d.]+ points; a drop below [\d.]+ "
    )


def test_few_runs_do_not_decide(folder):
    """Then it is the newest one, as without a history: a lucky one, against which the same agent fails."""
    for seed in range(4):
        shutil.rmtree(folder / "main" / str(seed))
    with DemoServer(noise=0.03, seed=9) as agent:
        ran = play(folder, agent)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    comparison = results_in(folder)["comparison"]
    assert comparison["method"] == "recorded"
    assert comparison["history"]["runs"] == 2


def test_a_score_as_in_earlier_runs_spares_the_base_agent(folder):
    """Nobody listens where the base should be."""
    with DemoServer(noise=0.0, seed=9) as agent:
        ran = play(folder, agent, "--against=base-url=http://127.0.0.1:9")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = results_in(folder)
    assert results["arms"] == []
    assert results["comparison"]["method"] == "history"
    assert results["run"]["config"]["against"] is True
    stdout = ci_evals("odds", "results", cwd=folder).stdout
    assert "Such a run has 3 to 6 trials of each test, those of the base agent included." in stdout


def test_a_score_that_looks_lower_has_the_base_agent_played(folder):
    """It convicts; the history does not."""
    with DemoServer(noise=0.03, seed=9, broken=BROKEN) as agent, DemoServer(noise=0.03, seed=4) as base:
        ran = play(folder, agent, f"--against=base-url={base.base_url}")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    results = results_in(folder)
    assert results["comparison"]["method"] == "both-sides"
    assert results["arms"][1]["counts"]["trials"] == results["counts"]["trials"]
    assert "the base agent is played too" in ran.stderr
    begun = (
        "The score looked lower than in the last [3-6] runs, so the base agent was played in the same run: "
    )
    assert shows(folder, begun + r"in this run, this agent scores [\d.]+ lower \(p [^)]+\), which fails\.")


def test_a_stale_history_does_not_convict(folder):
    """Both agents got worse since: a condition of today, and no fault of the change."""
    with DemoServer(noise=0.15, seed=9) as agent, DemoServer(noise=0.15, seed=10) as base:
        ran = play(folder, agent, f"--against=base-url={base.base_url}")
    results = results_in(folder)
    assert results["comparison"]["method"] == "both-sides"
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("history", ["ten", "-1", "1000", "nowhere/"])
def test_wrong_history_is_reported(folder, history):
    """With what would be right."""
    ran = ci_evals("run", SUITE, *GATE, "--baseline=main/5", f"--history={history}", cwd=folder)
    assert ran.returncode == 2
    assert "neither a number up to 100 nor a folder" in ran.stderr


def test_folder_without_results_is_reported(folder):
    """By its name."""
    (folder / "empty").mkdir()
    ran = ci_evals("run", SUITE, *GATE, "--baseline=main/5", "--history=empty", cwd=folder)
    assert ran.returncode == 2
    assert "--history: empty: contains no _results.json" in ran.stderr


def test_a_run_that_is_in_a_folder_twice_counts_once(folder):
    """A copy is no further evidence."""
    for copy in range(3):
        shutil.copytree(folder / "main" / "4", folder / "main" / f"copy {copy}")
    newest = load_results(folder / "main" / "5")
    assert len(history_in(folder / "main", newest)) == 6
