"""`--rounds`: a run ends as soon as its verdict is clear."""

from pathlib import Path

import pytest
from commands import ci_evals, comment_and_page_show, read_results, start, write_suite_without_critical_tests

from ci_evals.extensions.demo.server import DemoServer
from ci_evals.scoring.comparison.rounds import LOOKS, looks_at

pytestmark = pytest.mark.slow

ROUNDS = ("--provider=offline", "--parallel=8", "--rounds=auto")
SUITE = "shop.json"
KEYS = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}


@pytest.fixture(autouse=True)
def suite(tmp_path):
    """The suite of the shop without its critical tests, of which one failed trial is news enough."""
    write_suite_without_critical_tests(tmp_path, "demo:retail", SUITE)


def play(folder: Path, agent: DemoServer, *options: str):
    return ci_evals("run", SUITE, *ROUNDS, f"--base-url={agent.base_url}", *options, cwd=folder, env=KEYS)


def trials_of(folder: Path) -> set[int]:
    """How often tests were played."""
    return {len(test["trials"]) for suite in read_results(folder)["suites"] for test in suite["tests"]}


@pytest.fixture
def baseline(tmp_path):
    """Three trials of each test by a noisy agent."""
    with DemoServer(noise=0.02, seed=1) as agent:
        options = ("--provider=offline", "--parallel=8", "--loops=3", "--output-dir=base", "--no-gate")
        url = f"--base-url={agent.base_url}"
        assert ci_evals("run", SUITE, *options, url, cwd=tmp_path, env=KEYS).returncode == 0
    return "--baseline=base"


def test_an_unchanged_agent_passes_early(tmp_path, baseline):
    """The drop is looked at with the limit of that look."""
    with DemoServer(noise=0.02, seed=2) as agent:
        ran = play(tmp_path, agent, baseline, "--regression=significant", "--min-score=0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    rounds, looks = results["run"]["rounds"], results["comparison"]["looks"]
    assert rounds["looks"] == [2, 3, 5, 7]
    assert trials_of(tmp_path) == {rounds["played"]} == {looks[-1]["trials"]}
    assert results["comparison"]["method"] == "rounds"
    (check,) = [check for check in results["gate"]["checks"] if check["kind"] == "regression"]
    limits = {look.trials: look for look in looks_at(LOOKS)}
    assert check["required"] == limits[rounds["played"]].fails_at
    assert check["settled"]
    assert [*looks[0]] == ["trials", "p", "decision"]
    assert [look["decision"] for look in looks] == [
        limits[look["trials"]].decision(look["p"]) for look in looks
    ]
    assert {look["decision"] for look in looks[:-1]} <= {"continue"}
    assert looks[-1]["decision"] == "pass"


def test_a_broken_agent_fails(tmp_path, baseline):
    """With more trials only as far as the drop is not clear."""
    with DemoServer(noise=0.02, seed=3, broken=["RETURN_REQUEST", "ORDER_STATUS"]) as agent:
        ran = play(tmp_path, agent, baseline, "--regression=significant", "--min-score=0")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    last = read_results(tmp_path)["comparison"]["looks"][-1]
    assert last["decision"] == "fail"
    assert comment_and_page_show(
        tmp_path, r"Decided after [235] of at most 7 trials of each test, which saved .+: a proven drop\."
    )


def test_a_score_far_above_its_floor_is_clear_at_once(tmp_path):
    """Two trials of each test; without a baseline there are looks all the same."""
    with DemoServer() as agent:
        assert play(tmp_path, agent, "--min-score=50").returncode == 0
    assert trials_of(tmp_path) == {2}
    results = read_results(tmp_path)
    assert results["run"]["rounds"] == {"looks": [2, 3, 5, 7], "played": 2}
    score = results["score"]
    assert results["gate"]["looks"] == [
        {"trials": 2, "check": "min-score", "seen": score, "decision": "pass"}
    ]


def test_a_score_near_its_floor_is_played_longer(tmp_path):
    """The floor is put where the agent's score is."""
    with DemoServer(noise=0.1, seed=1) as agent:
        play(tmp_path, agent, "--no-gate", "--rounds=7")
    score = read_results(tmp_path)["score"]
    with DemoServer(noise=0.1, seed=1) as agent:
        play(tmp_path, agent, "--no-gate", f"--min-score={score:.1f}")
    assert min(trials_of(tmp_path)) > 2
    *before, last = read_results(tmp_path)["gate"]["looks"]
    assert {look["decision"] for look in before} == {"continue"}
    assert last["decision"] in {"pass", "fail"}


def test_a_run_that_was_killed_is_resumed(tmp_path, baseline):
    """In whichever round it was, and comes to the same looks."""
    options = (*ROUNDS, baseline, "--regression=significant", "--min-score=0")
    with DemoServer(noise=0.02, seed=2) as agent:
        url = f"--base-url={agent.base_url}"
        process = start("run", SUITE, *options, url, cwd=tmp_path, env=KEYS)
        for line in process.stderr:
            if line.startswith("[15/"):
                break
        process.kill()
        process.communicate()
        ran = ci_evals("run", SUITE, *options, url, "--resume=results", cwd=tmp_path, env=KEYS)
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert results["run"]["resumed"]["trials"] >= 15
    assert results["comparison"]["looks"][0]["trials"] == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rounds=auto", "--loops=3"], "Omit --loops"),
        (["--rounds=2,3", "--shard=1/2"], "does not work with --shard"),
        (["--rounds=3,2"], "in ascending order"),
        (["--rounds=2,2"], "in ascending order"),
        (["--rounds=0,2"], "in ascending order"),
        (["--rounds=two"], "in ascending order"),
        (["--rounds=2,4"], "in ascending order"),
        (["--rounds=2,,3"], "in ascending order"),
    ],
)
def test_options_that_contradict_rounds_are_refused(tmp_path, options, says):
    """Before anything runs."""
    ran = ci_evals("run", "demo:hr", "--provider=offline", *options, cwd=tmp_path)
    assert (ran.returncode, says in ran.stderr) == (2, True), ran.stderr
    assert not (tmp_path / "results").exists()
