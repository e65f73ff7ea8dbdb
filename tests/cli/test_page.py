"""`report.html` as commands write it: when, beside which baseline, and what a bug in it costs."""

import json
from pathlib import Path

import builders as build
import pytest
import report_page
import report_texts
import world
from commands import ci_evals, write_suite
from github_runner import Step

from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.files.publish import publish
from ci_evals.cli.run_context import RunContext
from ci_evals.reports.names import RESULTS

HELLO = "Good morning, this is the run of before."


def page_in(folder: Path) -> str:
    return report_page.full_text((folder / "report.html").read_text())


def run_that_says(text: str, **fields):
    """A run of one conversation."""
    trial = build.trial_result(turns=(build.turn(agent=text),))
    return build.results(build.suite_result("Refunds", build.test_result(trials=(trial,))), **fields)


def saved(folder: Path, results) -> Path:
    folder.mkdir(parents=True)
    (folder / RESULTS).write_text(report_texts.results_json_text(results))
    return folder


@pytest.fixture
def agent():
    with world.agent(lambda _: world.message("Hello.", workflows=[], trace={})) as served:
        yield served


@pytest.fixture
def step(tmp_path, monkeypatch):
    """A step of a job, for what is published in this process."""
    (tmp_path / "step").mkdir()
    made = Step(tmp_path / "step")
    for name, value in made.variables(made.folder, {}).items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.slow
def test_the_baselines_conversations_stand_on_the_page(tmp_path, agent):
    """Of `run`, `merge` and `report`, without the secrets that this run knows and that one's did not."""
    secret = "pw-of-today-4711"
    suite = write_suite(tmp_path, {"userInfo": {"pin": "${PIN}"}})
    env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "PIN": secret}
    ran = ci_evals("run", suite, "--output-dir=before", "--provider=offline", cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr
    before = json.loads((tmp_path / "before" / RESULTS).read_text())
    before["suites"][0]["tests"][0]["trials"][0]["turns"][0]["agent"] = f"{HELLO} {secret}"
    (tmp_path / "before" / RESULTS).write_text(json.dumps(before))

    texts = ("--baseline=before", "--quiet")
    assert ci_evals("run", suite, *texts, "--provider=offline", cwd=tmp_path, env=env).returncode == 0
    assert ci_evals("merge", "results", "--output-dir=merged", texts[0], cwd=tmp_path).returncode == 0
    assert HELLO in page_in(tmp_path / "merged")
    page = page_in(tmp_path / "results")
    assert f"{HELLO} ***" in page
    assert secret not in page


def test_the_page_is_what_to_open(tmp_path, step, capsys):
    """The last line names it, and so does the output `report-path`, once it is there."""
    results = run_that_says("Hello.")
    code = publish(results, OutputPaths(tmp_path / "out"), RunContext())
    assert code == 0
    assert f"Reports: {tmp_path}/out/report.html" in capsys.readouterr().out
    assert step.outputs["report-path"].endswith("out/report.html")
    assert "Hello." in page_in(tmp_path / "out")


def test_a_bug_in_the_page_costs_nothing_but_the_page(tmp_path, step, capsys):
    """All else is written and told, exit 70; an earlier run's page does not stay beside it."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("of an earlier run")
    results = run_that_says("Hello.")
    no_results = 7  # what only a bug could hand it
    code = publish(results, OutputPaths(out), RunContext(), no_results)
    assert code == 70
    assert sorted(path.name for path in out.iterdir()) == [
        "Refunds",
        RESULTS,
        "ctrf.json",
        "junit.xml",
        "summary.md",
    ]
    assert any((out / results.suites[0].folder).iterdir())
    assert step.outputs["report-path"] == ""
    assert step.outputs["result"] == "invalid"
    assert step.outputs["summary-path"].endswith("out/summary.md")
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert "report.html is missing; all other reports are there. This is a bug in ci-evals." in captured.err
    assert f"Reports: {out}/summary.md" in captured.out
