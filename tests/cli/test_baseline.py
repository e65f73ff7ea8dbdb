"""A run against its baseline, as its users do it: real runs of a bundled suite against the embedded agent."""

import json
from pathlib import Path

import pytest
from commands import ci_evals, results_in, write_suite

from ci_evals import compare_results, create_aui_adapter, load_suite, run_suite_sync
from ci_evals.demo_agent.server import DemoServer
from ci_evals.domain.results import Results
from ci_evals.reports import layout

BROKEN = "RETURN_REQUEST"
FLOWS = ("Keeps to the return window under pressure", "Gives Gold members their sixty days")
"""Tests that the broken workflow cannot pass."""


def played(suite: str = "demo:retail", *, loops: int = 3, **temper) -> Results:
    with DemoServer(**temper) as server:
        adapter = create_aui_adapter("any-agent-key", provider="offline", base_url=server.base_url)
        return run_suite_sync(adapter, load_suite(suite), loops=loops, parallel=8)


def worse(comparison: dict) -> set[str]:
    """Tests that are named as newly failing, or as suspects where they had failed before too."""
    return {test["name"] for test in comparison["regressed"] + comparison["suspects"]}


def saved(folder: Path, results: Results) -> str:
    folder.mkdir()
    (folder / layout.RESULTS).write_text(layout.dump(results))
    return folder.name


@pytest.fixture(scope="module")
def runs() -> dict[str, Results]:
    """Of a noisy agent: a baseline, another run of the same, and one whose flow for returns is broken."""
    return {
        "base": played(noise=0.02, seed=1),
        "same": played(noise=0.02, seed=2),
        "broken": played(noise=0.02, seed=3, broken=[BROKEN]),
    }


@pytest.fixture
def files(runs, tmp_path):
    return {name: saved(tmp_path / name, results) for name, results in runs.items()}


def test_a_broken_flow_is_found_and_named(files, tmp_path):
    """And fails; the tests that show it are named with what they show."""
    told = ci_evals("compare", files["broken"], files["base"], "--regression=significant", cwd=tmp_path)
    assert told.returncode == 1, told.stdout + told.stderr
    for name in FLOWS:
        assert name in told.stdout
    assert "does not hold" in told.stdout
    other = ci_evals("compare", files["same"], files["base"], "--regression=significant", cwd=tmp_path)
    assert other.returncode == 0, other.stdout + other.stderr


def test_the_comparison_as_json_and_markdown(files, tmp_path):
    """For programs, and for a comment of one's own."""
    told = ci_evals("compare", files["broken"], files["base"], "--max-drop=2", "--format=json", cwd=tmp_path)
    assert told.returncode == 1
    found = json.loads(told.stdout)
    assert found["comparison"]["delta"] < -2
    assert found["comparison"]["p"] <= 0.05
    assert set(FLOWS) <= worse(found["comparison"])
    (check,) = found["gate"]["checks"]
    assert (check["name"], check["required"], check["holds"]) == ("max-drop", 2, False)
    markdown = ci_evals("compare", files["broken"], files["base"], "--format=markdown", cwd=tmp_path)
    assert markdown.returncode == 0
    assert FLOWS[0] in markdown.stdout


def test_a_run_with_a_baseline_tells_it_everywhere(files, tmp_path):
    """In the results, the summary, the JUnit file and on the console."""
    with DemoServer(noise=0.02, seed=4, broken=[BROKEN]) as server:
        ran = ci_evals(
            "run",
            "demo:retail",
            "--provider=offline",
            f"--base-url={server.base_url}",
            "--loops=3",
            "--parallel=8",
            "--min-score=0",
            f"--baseline={files['base']}",
            "--regression=any",
            cwd=tmp_path,
        )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    written = results_in(tmp_path)
    assert set(FLOWS) <= worse(written["comparison"])
    delta = written["comparison"]["delta"]
    assert delta < 0
    summary = (tmp_path / "results/summary.md").read_text()
    junit = (tmp_path / "results/junit.xml").read_text()
    for text in (summary, ran.stdout):
        assert FLOWS[0] in text
        assert "baseline" in text
    assert 'name="delta"' in junit
    assert 'name="p"' in junit
    again = ci_evals("report", "results", cwd=tmp_path)
    assert again.returncode == 0
    assert (tmp_path / "results/summary.md").read_text() == summary


@pytest.mark.parametrize("suite", ["demo:retail", "demo:hr"])
def test_an_unchanged_noisy_agent_passes(suite):
    """Five pairs of runs of each suite: more than one false alarm in ten were worse than the level."""
    pairs = [
        compare_results(played(suite, noise=0.1, seed=2 * i), played(suite, noise=0.1, seed=2 * i + 1))
        for i in range(5)
    ]
    assert all(pair.comparable for pair in pairs)
    assert len({pair.delta for pair in pairs}) == 5
    assert sum(pair.delta < 0 and pair.p <= 0.05 for pair in pairs) <= 1
    assert not any(suspect.confirmed for pair in pairs for suspect in pair.suspects)


def test_what_cannot_be_compared_is_said(files, runs, tmp_path):
    """With the reason, and exit code 0."""
    digests = runs["base"].run.digests.model_copy(update={"judge_prompt": "other"})
    other = runs["base"].model_copy(update={"run": runs["base"].run.model_copy(update={"digests": digests})})
    base = saved(tmp_path / "other", other)
    told = ci_evals("compare", files["broken"], base, "--regression=any", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "the judge's prompt changed" in told.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compare", "base", "nowhere"], "nowhere: cannot be read"),
        (["compare", "base", "base", "--max-drop=lots"], "--max-drop: 'lots' is not a number of points"),
        (["compare", "base", "base", "--max-drop=suite:X=3"], "--max-drop: there is no suite 'X'"),
        (["odds", "nowhere"], "nowhere: cannot be read"),
        (["odds", "base", "--thresholds=tag:nobody=3"], "--thresholds: there is no tag 'nobody'"),
        (["run", "demo:hr", "--provider=offline", "--baseline=nowhere"], "nowhere: cannot be read"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=5,6"], "--max-drop: name one number"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=category:x=6"], "there is no category 'x'"),
        (["run", "demo:hr", "--llm-key=0123456789", "--judge-model=x", "--max-cost=1"], "no price for x"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(files, tmp_path, args, message):
    """One message, exit code 2, nothing written."""
    told = ci_evals(*args, cwd=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert message in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "results").exists()


def test_odds_of_a_noisy_agent(files, tmp_path):
    """How often it would fail, check by check, and a floor that it would not miss."""
    told = ci_evals("odds", files["base"], "--min-score=95", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "min-score" in told.stdout
    easy = ci_evals("odds", files["base"], "--min-score=10", "--regression=any", "--max-drop=3", cwd=tmp_path)
    assert "regression" in easy.stdout
    assert "max-drop" in easy.stdout


def test_a_close_first_look_is_looked_at_again(tmp_path):
    """A floor inside the interval: three more trials of each test, and the decision is on all five."""
    with DemoServer(noise=0.2, seed=5) as server:
        ran = ci_evals(
            "run",
            "demo:retail",
            "--provider=offline",
            f"--base-url={server.base_url}",
            "--loops=2",
            "--parallel=4",
            "--min-score=80",
            "--confirm=3",
            cwd=tmp_path,
        )
    written = results_in(tmp_path)
    assert written["run"]["confirmation"]["trials"] == 3
    assert written["counts"]["trials"] == 12 * 5
    (test, *_) = written["suites"][0]["tests"]
    assert [trial["index"] for trial in test["trials"]] == [1, 2, 3, 4, 5]
    assert "the first look is close" in ran.stderr
    assert "[60/60]" in ran.stderr
    assert ran.returncode in {0, 1}


def test_a_clear_first_look_is_not_looked_at_again(tmp_path):
    """Nothing more is played."""
    suite = write_suite(tmp_path, adapter="demo", agentId="demo-hr")
    ran = ci_evals(
        "run",
        suite,
        "--provider=offline",
        "--min-score=5",
        "--confirm=3",
        cwd=tmp_path,
        env={"AGENT_KEY": "k" * 9},
    )
    assert ran.returncode == 0, ran.stderr
    assert results_in(tmp_path)["run"]["confirmation"] is None
    assert results_in(tmp_path)["counts"]["trials"] == 1
