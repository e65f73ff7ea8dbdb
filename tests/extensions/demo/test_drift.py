"""A provider with good and bad days: what pull requests of an unchanged agent, and of a broken one, come to.

The demo agent drifts from day to day. Main was recorded on the day before each pull request.
"""

import json
from pathlib import Path
from statistics import fmean

import pytest
from commands import ci_evals, write_suite_without_critical_tests
from doc_pages import page

from ci_evals.extensions.demo.faults import drifted
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.demo.serving import DemoBehavior

pytestmark = pytest.mark.slow
KEYS = {"CI_EVALS_AGENT_KEY": "a-key-of-the-agent"}
SUITE, NOISE, DRIFT = "shop.json", 0.08, 1.4
BROKEN = ("RETURN_REQUEST",)
DOCS = " ".join(page("rounds.md").split())
OPTIONS = ("--provider=offline", "--parallel=8", "--min-score=0", "--quiet")


def agent(day: int, seed: int, broken=()) -> DemoServer:
    return DemoServer(noise=drifted(NOISE, DRIFT, day), seed=seed, broken=broken)


def run(folder: Path, head: DemoServer, *options: str) -> tuple[bool, int]:
    """Whether the gate failed, and how many conversations were played."""
    ran = ci_evals("run", SUITE, *OPTIONS, f"--base-url={head.base_url}", *options, cwd=folder, env=KEYS)
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    out = next((o.removeprefix("--output-dir=") for o in options if o.startswith("--output-dir=")), "results")
    results = json.loads((folder / out / "_results.json").read_text())
    arms = results["arms"] or [results]
    return ran.returncode == 1, sum(arm["counts"]["trials"] for arm in arms)


def pull_requests(folder: Path, days: range, broken=()) -> tuple[list, list]:
    """Each pull request decided against yesterday's run, and with both sides in rounds."""
    write_suite_without_critical_tests(folder, "demo:retail", SUITE)
    recorded, both = [], []
    for day in days:
        with agent(day - 1, 3 * day) as main:
            run(folder, main, "--loops=3", "--no-gate", "--output-dir=main")
        gate = ("--regression=significant", "--baseline=main")
        with agent(day, 3 * day + 1, broken) as head, agent(day, 3 * day + 2) as base:
            recorded.append(run(folder, head, "--loops=3", *gate))
        with agent(day, 3 * day + 1, broken) as head, agent(day, 3 * day + 2) as base:
            against = f"--against=base-url={base.base_url}"
            both.append(run(folder, head, "--rounds=auto", "--both-sides=always", against, *gate))
    return recorded, both


def failures(outcomes: list) -> int:
    return sum(failed for failed, _ in outcomes)


def test_drifted_noise_depends_only_on_the_day_and_is_announced():
    noises = {drifted(NOISE, DRIFT, day) for day in range(20)}
    assert len(noises) == 20
    assert drifted(NOISE, DRIFT, 3) == drifted(NOISE, DRIFT, 3)
    assert drifted(NOISE, 0, 3) == NOISE
    assert drifted(0.9, 5, 3) <= 1
    message = str(DemoBehavior(NOISE, 1, None, None, DRIFT, 3))
    assert f"it slips at {100 * drifted(NOISE, DRIFT, 3):.3g} % of messages" in message


def test_negative_drift_exits_with_2(tmp_path):
    assert ci_evals("demo-agent", "--drift=-1", cwd=tmp_path).returncode == 2


@pytest.mark.simulate
def test_unchanged_agent_with_drift_rarely_fails_if_compared_with_base_agent(tmp_path):
    """40 pull requests of an unchanged agent: at most 5 fail with both sides, at least 6 without."""
    recorded, both = pull_requests(tmp_path, range(1, 41))
    assert failures(both) <= 5
    assert failures(recorded) >= 6
    played = [count for _, count in both]
    assert f"{failures(recorded)} fail against main's run of three trials" in DOCS
    assert f"{failures(both) or 'none'} with both sides in rounds, after {fmean(played):.0f} conv" in DOCS
    assert f"(12 tests: from {min(played)} to {max(played)})" in DOCS


@pytest.mark.simulate
def test_broken_workflow_is_detected_despite_drift_of_agent(tmp_path):
    """In at least 36 of 40 pull requests."""
    _, both = pull_requests(tmp_path, range(1, 41), BROKEN)
    assert failures(both) >= 36
    played = fmean(count for _, count in both)
    assert f"both sides find {failures(both)}, after {played:.0f}." in DOCS
