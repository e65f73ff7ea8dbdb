"""`report.html` as commands write it: with its baseline, and after a bug in it."""

import json
from pathlib import Path

import builders as build
import pytest
import report_page
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
    trial = build.trial_result(turns=(build.turn(agent=text),))
    return build.results(build.suite_result("Refunds", build.test_result(trials=(trial,))), **fields)


@pytest.fixture
def agent():
    with world.agent(lambda _: world.message("Hello.", workflows=[], trace={})) as served:
        yield served


@pytest.fixture
def step(tmp_path, monkeypatch):
    (tmp_path / "step").mkdir()
    made = Step(tmp_path / "step")
    for name, value in made.variables(made.folder, {}).items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.slow
def test_page_shows_redacted_conversations_of_baseline(tmp_path, agent):
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
    assert (f"{HELLO} ***" in page, secret in page) == (True, False)


def test_report_page_is_named_in_console_and_in_action_output(tmp_path, step, capsys):
    results = run_that_says("Hello.")
    assert publish(results, OutputPaths(tmp_path / "out"), RunContext()) == 0
    assert f"Reports: {tmp_path}/out/report.html" in capsys.readouterr().out
    assert step.outputs["report-path"].endswith("out/report.html")
    assert "Hello." in page_in(tmp_path / "out")


def test_bug_in_page_exits_70_with_all_other_reports(tmp_path, step, capsys):
    """An earlier run's page does not stay beside them."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("of an earlier run")
    results = run_that_says("Hello.")
    no_results = 7  # what only a bug could pass
    assert publish(results, OutputPaths(out), RunContext(), no_results) == 70
    names = sorted(path.name for path in out.iterdir())
    assert names == ["Refunds", RESULTS, "ctrf.json", "junit.xml", "summary.md"]
    assert any((out / results.suites[0].folder).iterdir())
    assert (step.outputs["report-path"], step.outputs["result"]) == ("", "invalid")
    assert step.outputs["summary-path"].endswith("out/summary.md")
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert "report.html is missing; all other reports are there. This is a bug in ci-evals." in captured.err
    assert f"Reports: {out}/summary.md" in captured.out
