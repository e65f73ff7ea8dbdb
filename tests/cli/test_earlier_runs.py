"""`--history`: earlier runs say what a drop is worth, and when the base agent is played."""

import json
import shutil
from pathlib import Path

import pytest
from commands import ci_evals, results_in, shows, start, write_uncritical

from ci_evals.cli.files.saved_run import history_in
from ci_evals.demo_agent.server import DemoServer
from ci_evals.library.runs import load_results

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
    said = ci_evals("odds", "results", cwd=folder).stdout
    assert "Such a run has 3 to 6 trials of each test, those of the base agent included." in said


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
def test_a_wrong_history_is_told(folder, history):
    """With what would be right."""
    ran = ci_evals("run", SUITE, *GATE, "--baseline=main/5", f"--history={history}", cwd=folder)
    assert ran.returncode == 2
    assert "neither a number up to 100 nor a folder" in ran.stderr


def test_a_folder_without_results_is_told(folder):
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


WORST = "--both-sides=worst-quarter"


def trials_of(tests) -> list[list[int]]:
    return [[trial["index"] for trial in test["trials"]] for test in tests]


def check_quarter(results) -> None:
    """Three of twelve tests were played again: nine times with the head, and as often with the base."""
    head, base = results["suites"][0]["tests"], results["arms"][1]["suites"][0]["tests"]
    worst = [test["name"] for test in results["run"]["worstQuarter"]["tests"]]
    assert (len(worst), len(head)) == (3, 12)
    assert results["run"]["worstQuarter"]["trials"] == 9
    for name, own, other in zip(
        [test["name"] for test in head], trials_of(head), trials_of(base), strict=True
    ):
        assert own == list(range(1, 13 if name in worst else 4))
        assert other == (list(range(4, 13)) if name in worst else [])
    comparison = results["comparison"]
    assert (comparison["method"], comparison["tests"]) == ("both-sides", 3)
    (look,) = comparison["looks"]
    assert (look["trials"], look["p"]) == (9, comparison["p"])
    assert look["decision"] == ("fail" if look["p"] <= 0.05 else "pass")


def test_the_tests_that_look_worst_are_played_again(folder):
    """New trials of both agents convict, and every report says so."""
    with DemoServer(noise=0.03, seed=9, broken=BROKEN) as agent, DemoServer(noise=0.03, seed=4) as base:
        ran = play(folder, agent, f"--against=base-url={base.base_url}", WORST)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    results = results_in(folder)
    check_quarter(results)
    assert results["comparison"]["p"] <= 0.05
    assert "the 3 tests that look worst will run 9 more trials with each agent" in ran.stderr
    sentence = "The 3 tests that looked worst were played 9 times more with each agent"
    summary, page = ((folder / "results" / name).read_text() for name in ("summary.md", "report.html"))
    assert sentence in summary
    assert sentence in page
    assert "with the base agent too" not in summary  # it did not play the others
    told = ci_evals("odds", "results", cwd=folder)
    assert "Such a run has 36 to 90 trials, those of the base agent included." in told.stdout


def test_a_stale_history_convicts_no_quarter_of_the_tests(folder):
    """Its trials chose them, and have no part in p."""
    with DemoServer(noise=0.15, seed=9) as agent, DemoServer(noise=0.15, seed=10) as base:
        ran = play(folder, agent, f"--against=base-url={base.base_url}", WORST)
    check_quarter(results_in(folder))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_worst_tests_need_a_base_agent_that_answers(folder):
    """Where it is not played it needs none; else there is no verdict."""
    nobody = "--against=base-url=http://127.0.0.1:9"
    with DemoServer(noise=0.0, seed=9) as agent:
        assert play(folder, agent, nobody, WORST).returncode == 0
    assert results_in(folder)["run"]["worstQuarter"] is None
    with DemoServer(noise=0.03, seed=9, broken=BROKEN) as agent:
        quick = ("--retries=0", "--parallel=30", "--output-dir=again")
        ran = play(folder, agent, nobody, WORST, *quick)
    assert ran.returncode == 3, ran.stdout + ran.stderr


def test_the_worst_tests_are_resumed_and_replayed(folder):
    """The journal and the recording hold the trials of both agents; the same tests are chosen again."""
    with DemoServer(noise=0.03, seed=9, broken=BROKEN) as agent, DemoServer(noise=0.03, seed=4) as base:
        options = [SUITE, *GATE, "--baseline=main/5", "--history=main", f"--base-url={agent.base_url}", WORST]
        options += [f"--against=base-url={base.base_url}"]
        process = start("run", *options, "--record=recorded", cwd=folder, env=KEYS)
        for line in process.stderr:
            if line.startswith("[50/"):
                break
        process.kill()
        process.communicate()
        ran = ci_evals("run", *options, "--record=recorded", "--resume=results", cwd=folder, env=KEYS)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    first = results_in(folder)
    check_quarter(first)
    assert first["run"]["resumed"]["trials"] >= 50
    again = ci_evals("run", *options, "--replay=recorded", "--output-dir=again", cwd=folder)
    assert again.returncode == 1, again.stdout + again.stderr
    second = json.loads((folder / "again/_results.json").read_text())
    check_quarter(second)
    assert second["comparison"]["delta"] == first["comparison"]["delta"]


def test_without_earlier_runs_no_test_looks_worst(folder):
    """All are played on both sides, as by `auto`."""
    with DemoServer(noise=0.0, seed=9) as agent, DemoServer(noise=0.0, seed=4) as base:
        own = (f"--base-url={agent.base_url}", f"--against=base-url={base.base_url}", WORST)
        ran = ci_evals("run", SUITE, *GATE, *own, cwd=folder, env=KEYS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = results_in(folder)
    assert results["run"]["worstQuarter"] is None
    assert results["arms"][1]["counts"]["trials"] == results["counts"]["trials"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--regression=any", "--against=agent-id=a"], "Add --regression=significant"),
        (["--rounds=auto", "--against=agent-id=a"], "does not work with --rounds"),
        (["--shard=1/2", "--against=agent-id=a"], "does not work with --shard"),
        (["--max-drop=3", "--against=agent-id=a"], "does not work with --max-drop"),
        ([], "Name one with --against"),
    ],
)
def test_what_a_quarter_of_the_tests_cannot_decide_is_told(tmp_path, options, says):
    """Before anything is played."""
    own = ("--provider=offline", "--regression=significant", WORST)
    ran = ci_evals("run", "demo:retail", *own, *options, cwd=tmp_path)
    assert (ran.returncode, says in ran.stderr) == (2, True), ran.stderr
