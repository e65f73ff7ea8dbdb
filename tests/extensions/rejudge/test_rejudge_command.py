"""`ci-evals rejudge` as its users start it: after a run, with another judge, over the wires of providers."""

import json
import shutil
import signal
import time
from pathlib import Path

import fakes
import pytest
import world
from commands import ci_evals, read_files, read_results, start, write_suite
from github_runner import Step

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.rejudge.rejudge_run import rejudge_run
from ci_evals.extensions.rejudge.settings import RejudgeSettings

pytestmark = pytest.mark.slow

TESTS = [
    {
        "name": name,
        "userInfo": {"tenant": "${TENANT}"},
        "turns": [{"user": "auto", "expectation": "It greets"}],
        "evaluations": [
            {"criterion": "It greets"},
            {"criterion": "It is brief"},
            {"criterion": "No forwarding", "strict": "not_escalated"},
        ],
    }
    for name in ("First", "Second")
]
TENANT = "tenant-4711-blue"


def says(verdict: str):
    """A model that plays the user, and judges so."""
    answer = fakes.judge_answer(verdict, f"I say {verdict}.")
    return lambda asked: answer if asked.wants_json else "Hello"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run in which every criterion passed, and what its judge was asked."""
    root = tmp_path_factory.mktemp("played")
    with (
        world.agent(lambda heard: world.message("Hi", workflows=[])) as agent,
        world.llm(says("pass")) as llm,
    ):
        own = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": TENANT}
        ran = ci_evals("run", write_suite(root, *TESTS), "--quiet", cwd=root, env=own | llm.env)
    assert ran.returncode == 0, ran.stderr
    return root, sorted(asked.text for asked in llm.asked if asked.wants_json)


@pytest.fixture
def run(played, tmp_path) -> Path:
    shutil.copytree(played[0] / "results", tmp_path / "results")
    return tmp_path


@pytest.mark.end_to_end
def test_another_judge(played, run):
    """Asked the very same; the gate decides anew, all reports are written, and what changed is told."""
    before = read_files(run / "results")
    (run / "step").mkdir()
    step = Step(run / "step")
    with world.llm(says("fail")) as llm:
        completed = ci_evals(
            *("rejudge", "results", "--provider=anthropic", "--output-dir=again", "--junit=j/tests.xml"),
            cwd=run,
            env=step.variables(step.folder, {}) | llm.env,
        )
    assert completed.returncode == 1, completed.stderr
    assert sorted(asked.text for asked in llm.asked) == played[1]
    assert {(asked.provider, asked.model) for asked in llm.asked} == {("anthropic", "claude-sonnet-5-5")}
    assert read_files(run / "results") == before
    again = json.loads((run / "again/_results.json").read_text())
    origin = {"how": "rejudge", "run": read_results(run)["run"]["id"]}
    assert origin.items() <= again["run"]["origin"].items()
    assert again["score"] == pytest.approx(100 / 3)
    assert again["usage"]["calls"] == 2 + 4  # the user's then, the judge's now
    written = set(read_files(run / "again"))
    assert {"_results.json", "summary.md", f"{again['suites'][0]['folder']}/First.md"} <= written
    assert (run / "j/tests.xml").exists()
    assert "by claude-sonnet-5-5; before by gpt-6.1-terra" in completed.stdout
    assert "4 of 4 judged verdicts changed: 4 from passed to failed" in completed.stdout
    assert completed.stdout.count("I say fail.") >= 4
    assert "Stub › First  2 failed; 2 changed" in completed.stderr
    assert (step.outputs["result"], step.outputs["failed-tests"]) == ("failed", "2")
    assert TENANT not in completed.stdout + completed.stderr + (run / "again/_results.json").read_text()


def test_an_interruption(run):
    """SIGTERM ends it in time with every report; a suite's own results are judged as well as a run's."""
    (own,) = (run / "results/Stub").glob("*/_results.json")

    def answer(asked):
        time.sleep(0.1 if len(llm.asked) < 4 else 60)
        return says("pass")(asked)

    with world.llm(answer) as llm:
        asked = ("rejudge", str(own), "--output-dir=again", "--parallel=1", "--quiet")
        process = start(*asked, cwd=run, env=llm.env)
        deadline = time.monotonic() + 300
        while len(llm.asked) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130, err
        again = json.loads((run / "again/_results.json").read_text())
    assert again["run"]["status"] == "interrupted"
    assert again["counts"]["byOutcome"]["undecided"] >= 1
    assert "could not be given again: the run ended before" in out


def test_without_a_key(run):
    """Told before anything is made, and in GitHub's outputs."""
    (run / "step").mkdir()
    step = Step(run / "step")
    completed = ci_evals(
        "rejudge", "results", "--output-dir=again", cwd=run, env=step.variables(step.folder, {})
    )
    assert completed.returncode == 2
    assert "no key for the LLM (openai)" in completed.stderr
    assert not (run / "again").exists()
    assert step.outputs["result"] == "invalid"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"provider": "offline"}, "`provider=offline` has no judge"),
        ({"output_dir": Path("results")}, "would be overwritten. Omit `output_dir=`"),
        ({"output_dir": Path("other/../results")}, "would be overwritten. Omit `output_dir=`"),
        ({"junit": Path("results/_results.json")}, "this is the file to judge again"),
        ({"results": Path("nowhere")}, "nowhere: cannot be read"),
        ({"thresholds": "category:safty=100"}, "there is no category"),
    ],
)
def test_what_is_refused(run, monkeypatch, asked, message):
    """Before anybody is asked; what is there stays as it is."""
    monkeypatch.chdir(run)
    for name in ("LLM_API_KEY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    before = read_files(run)
    with pytest.raises(UsageError, match=message):
        rejudge_run(
            RejudgeSettings(
                **{"results": Path("results"), "output_dir": Path("again"), "llm_key": "k"} | asked
            ),
            RunContext(),
        )
    assert read_files(run) == before


def test_without_a_folder_it_writes_below_the_run(run):
    """So that nothing is written over, and the next one finds the run where it was."""
    before = (run / "results/_results.json").read_text()
    with world.llm(says("pass")) as llm:
        for _ in range(2):
            done = ci_evals("rejudge", "results", "--provider=openai", cwd=run, env=llm.env)
            assert done.returncode == 0, done.stderr
    again = json.loads((run / "results/rejudged/_results.json").read_text())
    assert again["run"]["status"] == "completed"
    assert (run / "results/_results.json").read_text() == before


def test_run_without_judged_criteria_is_valid(tmp_path):
    """It says so; nothing is asked or written."""
    strict = [{"criterion": "No forwarding", "strict": "not_escalated"}]
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "Hello"}], "evaluations": strict}
    (tmp_path / "suite.json").write_text(
        json.dumps({"name": "S", "adapter": "demo", "agentId": "demo-hr", "tests": [test]})
    )
    played = ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    before = read_files(tmp_path)
    done = ci_evals("rejudge", "results", cwd=tmp_path)
    assert done.returncode == 0
    assert "contains no judged verdict: nothing to judge again, the run stands." in done.stderr
    assert read_files(tmp_path) == before


def test_a_suites_own_results_do_not_lead_to_writing_over_the_run(run, monkeypatch):
    """The run's file is above it."""
    monkeypatch.chdir(run)
    (own,) = (run / "results/Stub").glob("*/_results.json")
    with pytest.raises(UsageError, match="would be overwritten"):
        rejudge_run(RejudgeSettings(results=own, output_dir=Path("results"), llm_key="k"), RunContext())


def test_a_killed_rejudge_leaves_no_green_reports_of_an_earlier_one(run):
    """Until all judges have answered, its folder says that it has not finished."""
    with world.llm(says("pass")) as llm:
        options = ("rejudge", "results", "--provider=openai", "--output-dir=again", "--junit=out.xml")
        assert ci_evals(*options, cwd=run, env=llm.env).returncode == 0
        assert json.loads((run / "again/_results.json").read_text())["run"]["status"] == "completed"

    def hang(_):
        time.sleep(20)

    with world.llm(hang) as llm:
        judging = start(*options, cwd=run, env=llm.env)
        while not llm.asked:
            time.sleep(0.05)
        judging.kill()
        judging.communicate(timeout=300)
    fields = json.loads((run / "again/_results.json").read_text())
    assert (fields["run"]["status"], fields["gate"]["passed"], fields["gate"]["exitCode"]) == (
        "unfinished",
        False,
        3,
    )
    assert {path.name for path in (run / "again").iterdir() if path.is_file()} == {
        "_results.json",
        "ctrf.json",
        "summary.md",
    }
    assert 'errors="1"' in (run / "out.xml").read_text()
    ran = ci_evals("report", "again", cwd=run)
    assert ran.returncode == 2
    assert "has not finished" in ran.stderr
