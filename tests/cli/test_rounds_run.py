"""`--rounds`: a run ends as soon as its result is clear."""

from pathlib import Path

import pytest
from commands import ci_evals, comment_and_page_show, read_results, start, write_suite_without_critical_tests

from ci_evals.extensions.demo.server import DemoServer
from ci_evals.scoring.comparison.rounds import LOOKS, looks_at

pytestmark = pytest.mark.slow

ROUNDS = ("--provider=offline", "--parallel=8", "--rounds=auto")
INVALID_ROUNDS = ("3,2", "2,2", "0,2", "two", "2,4", "2,,3")
SUITE = "shop.json"
KEYS = {"CI_EVALS_AGENT_KEY": "the-key-of-the-head"}


@pytest.fixture(autouse=True)
def suite(tmp_path):
    """The suite of the shop; no test is critical: one failed trial of those decides."""
    write_suite_without_critical_tests(tmp_path, "demo:retail", SUITE)


def run_rounds(folder: Path, agent: DemoServer, *options: str):
    return ci_evals("run", SUITE, *ROUNDS, f"--base-url={agent.base_url}", *options, cwd=folder, env=KEYS)


def trials_of(folder: Path) -> set[int]:
    return {len(test["trials"]) for suite in read_results(folder)["suites"] for test in suite["tests"]}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    write_suite_without_critical_tests(folder, "demo:retail", SUITE)
    with DemoServer(noise=0.02, seed=1) as agent:
        options = ("--provider=offline", "--parallel=8", "--loops=3", "--no-gate")
        url = f"--base-url={agent.base_url}"
        assert ci_evals("run", SUITE, *options, url, cwd=folder, env=KEYS).returncode == 0
    return f"--baseline={folder / 'results'}"


def test_rounds_end_early_if_agent_did_not_change(tmp_path, baseline):
    with DemoServer(noise=0.02, seed=2) as agent:
        ran = run_rounds(tmp_path, agent, baseline, "--regression=significant", "--min-score=0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    rounds, looks = results["run"]["rounds"], results["comparison"]["looks"]
    assert (rounds["looks"], results["comparison"]["method"]) == ([2, 3, 5, 7], "rounds")
    assert trials_of(tmp_path) == {rounds["played"]} == {looks[-1]["trials"]}
    (check,) = [check for check in results["gate"]["checks"] if check["kind"] == "regression"]
    limits = {look.trials: look for look in looks_at(LOOKS)}
    assert (check["required"], check["settled"]) == (limits[rounds["played"]].fails_at, True)
    assert [*looks[0]] == ["trials", "p", "decision"]
    decisions = [look["decision"] for look in looks]
    assert decisions == [limits[look["trials"]].decision(look["p"]) for look in looks]
    assert (set(decisions[:-1]) <= {"continue"}, decisions[-1]) == (True, "pass")


def test_rounds_end_with_proven_drop_if_agent_is_broken(tmp_path, baseline):
    with DemoServer(noise=0.02, seed=3, broken=["RETURN_REQUEST", "ORDER_STATUS"]) as agent:
        ran = run_rounds(tmp_path, agent, baseline, "--regression=significant", "--min-score=0")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    last = read_results(tmp_path)["comparison"]["looks"][-1]
    assert last["decision"] == "fail"
    decided = r"Decided after [235] of at most 7 trials of each test, which saved .+: a proven drop\."
    assert comment_and_page_show(tmp_path, decided)


def test_score_far_above_threshold_needs_two_trials_without_baseline(tmp_path):
    with DemoServer() as agent:
        assert run_rounds(tmp_path, agent, "--min-score=50").returncode == 0
    assert trials_of(tmp_path) == {2}
    results = read_results(tmp_path)
    assert results["run"]["rounds"] == {"looks": [2, 3, 5, 7], "played": 2}
    look = {"trials": 2, "check": "min-score", "seen": results["score"], "decision": "pass"}
    assert results["gate"]["looks"] == [look]


def test_score_near_threshold_needs_more_trials(tmp_path):
    with DemoServer(noise=0.1, seed=1) as agent:
        run_rounds(tmp_path, agent, "--no-gate", "--rounds=7")
    score = read_results(tmp_path)["score"]
    with DemoServer(noise=0.1, seed=1) as agent:
        run_rounds(tmp_path, agent, "--no-gate", f"--min-score={score:.1f}")
    assert min(trials_of(tmp_path)) > 2
    *before, last = read_results(tmp_path)["gate"]["looks"]
    assert {look["decision"] for look in before} == {"continue"}
    assert last["decision"] in {"pass", "fail"}


def test_killed_run_with_rounds_is_resumed(tmp_path, baseline):
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


def test_invalid_rounds_are_rejected_before_run(tmp_path):
    for options, message in (
        (["--rounds=auto", "--loops=3"], "Omit --loops"),
        (["--rounds=2,3", "--shard=1/2"], "does not work with --shard"),
        *(([f"--rounds={rounds}"], "in ascending order") for rounds in INVALID_ROUNDS),
    ):
        ran = ci_evals("run", "demo:hr", "--provider=offline", *options, cwd=tmp_path)
        assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr
    assert not (tmp_path / "results").exists()
