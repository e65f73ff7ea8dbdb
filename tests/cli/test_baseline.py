"""A run against its baseline, as its users do it: real runs of a bundled suite against the embedded agent."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_texts
from commands import ci_evals, read_results, write_suite

from ci_evals import compare_results, create_aui_adapter, load_suite, run_suite_sync
from ci_evals.domain.results.run import Results
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.reports.names import RESULTS

pytestmark = pytest.mark.slow

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
    (folder / RESULTS).write_text(report_texts.results_json_text(results))
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
    completed = ci_evals("compare", files["broken"], files["base"], "--regression=significant", cwd=tmp_path)
    assert completed.returncode == 1, completed.stdout + completed.stderr
    for name in FLOWS:
        assert name in completed.stdout
    assert "✗ Evals failed" in completed.stdout
    other = ci_evals("compare", files["same"], files["base"], "--regression=significant", cwd=tmp_path)
    assert other.returncode == 0, other.stdout + other.stderr


@pytest.mark.end_to_end
def test_the_comparison_as_json_and_markdown(files, tmp_path):
    """For programs, and for a comment of one's own."""
    completed = ci_evals(
        "compare", files["broken"], files["base"], "--max-drop=2", "--format=json", cwd=tmp_path
    )
    assert completed.returncode == 1
    found = json.loads(completed.stdout)
    assert found["comparison"]["delta"] < -2
    assert found["comparison"]["p"] <= 0.05
    assert set(FLOWS) <= worse(found["comparison"])
    (check,) = found["gate"]["checks"]
    assert (check["name"], check["required"], check["holds"]) == ("max-drop", 2, False)
    markdown = ci_evals("compare", files["broken"], files["base"], "--format=markdown", cwd=tmp_path)
    assert markdown.returncode == 0
    assert FLOWS[0] in markdown.stdout


def test_baseline_is_named_in_every_report(files, tmp_path):
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
    written = read_results(tmp_path)
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
    (tmp_path / "results/summary.md").unlink()
    again = ci_evals("report", "results", cwd=tmp_path)
    assert again.returncode == 0
    assert not (tmp_path / "summary.md").exists()
    assert (tmp_path / "results/summary.md").read_text() == summary


@pytest.mark.parametrize("suite", ["demo:hr", pytest.param("demo:retail", marks=pytest.mark.simulate)])
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


def test_a_comparison_that_was_asked_for_and_cannot_be_made_is_no_verdict(files, runs, tmp_path):
    """With the reason, and exit code 3; both runs were named, so somebody wants to know."""
    digests = replace(runs["base"].run.digests, judge_prompt="other")
    other = replace(runs["base"], run=replace(runs["base"].run, digests=digests))
    base = saved(tmp_path / "other", other)
    for check in ("--regression=any", "--max-drop=5"):
        completed = ci_evals("compare", files["broken"], base, check, cwd=tmp_path)
        assert completed.returncode == 3, completed.stdout + completed.stderr
        assert "was not checked: the judge's prompt changed" in completed.stdout
        assert "not checked" in completed.stdout
        assert "holds" not in completed.stdout
    alone = ci_evals("compare", files["broken"], base, cwd=tmp_path)
    assert (alone.returncode, "the judge's prompt changed" in alone.stdout) == (0, True)


def test_a_drop_that_could_not_be_looked_at_heads_every_report(tmp_path):
    """Without a baseline nothing failed, and no report says that the check holds."""
    run = ("run", "demo:hr", "--provider=offline", "--min-score=0", "--max-drop=5")
    passed = ci_evals(*run, cwd=tmp_path)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    output = "max-drop was not checked: there is no baseline."
    assert "! Evals passed" in passed.stdout
    assert "max-drop was not checked" in passed.stdout
    results = tmp_path / "results"
    for text in (
        passed.stdout,
        *((results / name).read_text() for name in ("summary.md", "report.html", "junit.xml")),
    ):
        assert output in text
    assert (results / "summary.md").read_text().startswith("## ⚠️ Evals passed: 100 / 100, no baseline")
    checks = json.loads((results / RESULTS).read_text())["gate"]["checks"]
    assert [check["holds"] for check in checks if check["kind"] == "max-drop"] == [None]
    required = ci_evals(*run, "--baseline=required", cwd=tmp_path)
    assert required.returncode == 3, required.stdout + required.stderr
    why = "GITHUB_REPOSITORY"
    assert why in required.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compare", "base", "nowhere"], "nowhere: cannot be read"),
        (["compare", "base", "base", "--max-drop=lots"], "--max-drop: 'lots' is not a number of points"),
        (["compare", "base", "base", "--max-drop=suite:X=3"], "--max-drop: there is no suite 'X'"),
        (["odds", "nowhere"], "nowhere: cannot be read"),
        (["odds", "base", "--thresholds=tag:nobody=3"], "--thresholds: there is no tag 'nobody'"),
        (["run", "demo:hr", "--provider=offline", "--baseline=nowhere"], "nowhere: cannot be read"),
        (["run", "demo:hr", "--provider=offline", "--max-cost=inf"], "--max-cost=inf: it is not a limit"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=5,6"], "--max-drop: name one number"),
        (["run", "demo:hr", "--provider=offline", "--max-drop=category:x=6"], "there is no category 'x'"),
        (["run", "demo:hr", "--llm-key=0123456789", "--judge-model=x", "--max-cost=1"], "no price for x"),
    ],
)
def test_unusable_input_is_one_message_before_anything_runs(files, tmp_path, args, message):
    """One message, exit code 2, nothing written."""
    completed = ci_evals(*args, cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert message in completed.stderr
    assert "Traceback" not in completed.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.end_to_end
def test_odds_of_a_noisy_agent(files, tmp_path):
    """How often it would fail, check by check, and a floor that it would not miss."""
    completed = ci_evals("odds", files["base"], "--min-score=95", cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert "min-score" in completed.stdout
    easy = ci_evals("odds", files["base"], "--min-score=10", "--regression=any", "--max-drop=3", cwd=tmp_path)
    assert "regression" in easy.stdout
    assert "max-drop" in easy.stdout


def odd(results: Results, change) -> str:
    data = json.loads(report_texts.results_json_text(results))
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(score=1e300),
        lambda data: data["run"].update(startedAt="0001-01-01T00:00:00+14:00"),
        lambda data: data["usage"]["tokens"].update(input=10**400),
        lambda data: data["latency"].update(p95=1e308),
        lambda data: data["suites"][0]["tests"][0]["trials"][0]["findings"][0].update(weight=1e308),
        lambda data: data["suites"][0]["tests"][0]["trials"][0]["turns"][0].update(latencySeconds=-1),
    ],
)
def test_a_baseline_of_impossible_numbers_is_refused(runs, tmp_path, change):
    """Before anything is played."""
    (tmp_path / "odd.json").write_text(odd(runs["base"], change))
    completed = ci_evals("run", "demo:retail", "--provider=offline", "--baseline=odd.json", cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert "--baseline: odd.json: " in completed.stderr
    assert "Traceback" not in completed.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_keys_of_the_environment_and_commands_in_a_baseline_are_not_shown(runs, tmp_path, form):
    """Whoever wrote the file may not have known them; and a runner obeys what looks like a command."""
    key = "sk-0123456789-abcdefghij-0123456789"

    def hostile(data):
        data["run"]["id"] = data["run"]["git"]["commit"] = f"{key} ##[error]boom"
        for test in data["suites"][0]["tests"]:
            test["name"] = f"{test['name']} {'x' * 40} {key} \n::error::boom ##[error]boom"

    for name in ("base", "broken"):
        (tmp_path / f"{name}.json").write_text(odd(runs[name], hostile))
    args = ("compare", "broken.json", "base.json", f"--format={form}")
    completed = ci_evals(*args, cwd=tmp_path, env={"OPENAI_API_KEY": key})
    assert completed.returncode == 0, completed.stderr
    assert key[:20] not in completed.stdout
    assert "##[" not in completed.stdout
    assert not any(line.lstrip().startswith("::") for line in completed.stdout.splitlines())
    if form == "json":
        assert json.loads(completed.stdout)["comparison"]["comparable"]


def test_a_floor_on_a_name_that_holds_a_secret_is_held(tmp_path):
    """In the results the name reads `***`, and the floor is of that test all the same."""
    test = {
        "name": "Login as ${USER_A}",
        "evaluations": [{"criterion": "c", "strict": "escalated", "category": "x"}],
    }
    suite = write_suite(tmp_path, test, adapter="demo", agentId="demo-hr", name="s.json")
    env = {"AGENT_KEY": "k" * 9, "USER_A": "alice-the-first"}
    args = (
        "run",
        suite,
        "--provider=offline",
        "--min-score=0",
        "--thresholds=test:Login as alice-the-first=99",
    )
    completed = ci_evals(*args, cwd=tmp_path, env=env)
    assert completed.returncode == 1, completed.stdout + completed.stderr
    assert "alice" not in completed.stdout + (tmp_path / "results/_results.json").read_text()


def test_a_run_that_cannot_be_trusted_is_not_called_good(runs, tmp_path):
    """Every trial of it failed, so nothing can be said of a drop."""

    def dead(data):
        data["score"] = None
        for test in data["suites"][0]["tests"]:
            for trial in test["trials"]:
                trial.update(status="failed", error="no answer")

    (tmp_path / "dead.json").write_text(odd(runs["same"], dead))
    base = saved(tmp_path / "base", runs["base"])
    completed = ci_evals("compare", "dead.json", base, "--max-drop=5", "--regression=any", cwd=tmp_path)
    assert completed.returncode == 3, completed.stdout
    assert "nothing could be scored" in completed.stdout


@pytest.mark.parametrize(("seconds", "code"), [("0.000001", 1), ("60", 0)])
def test_a_budget_of_seconds_is_held(tmp_path, seconds, code):
    """Of the agent's replies; without a model a budget of no dollars holds."""
    limits = (f"--max-p95-latency={seconds}", "--max-cost=0")
    completed = ci_evals("run", "demo:hr", "--provider=offline", "--tag=happy-path", *limits, cwd=tmp_path)
    assert completed.returncode == code, completed.stdout + completed.stderr
    written = read_results(tmp_path)
    checks = {check["name"]: check for check in written["gate"]["checks"]}
    assert checks["max-p95-latency"]["seen"] == written["latency"]["p95"] > 0
    assert (checks["max-p95-latency"]["holds"], checks["max-cost"]["holds"]) == (code == 0, True)
