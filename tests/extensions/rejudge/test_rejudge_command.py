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


def judge_saying(verdict: str):
    answer = fakes.judge_answer(verdict, f"I say {verdict}.")
    return lambda asked: answer if asked.wants_json else "Hello"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    root = tmp_path_factory.mktemp("played")
    reply = world.message("Hi", workflows=[])
    with world.agent(lambda heard: reply) as agent, world.llm(judge_saying("pass")) as llm:
        own = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": TENANT}
        ran = ci_evals("run", write_suite(root, *TESTS), "--quiet", cwd=root, env=own | llm.env)
    assert ran.returncode == 0, ran.stderr
    return root, sorted(asked.text for asked in llm.asked if asked.wants_json)


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    shutil.copytree(finished_run[0] / "results", tmp_path / "results")
    return tmp_path


@pytest.mark.end_to_end
def test_rejudge_asks_same_questions_and_writes_all_reports(finished_run, run):
    before = read_files(run / "results")
    (run / "step").mkdir()
    step = Step(run / "step")
    with world.llm(judge_saying("fail")) as llm:
        options = ("--provider=anthropic", "--output-dir=again", "--junit=j/tests.xml")
        env = step.variables(step.folder, {}) | llm.env
        completed = ci_evals("rejudge", "results", *options, cwd=run, env=env)
    assert completed.returncode == 1, completed.stderr
    assert sorted(asked.text for asked in llm.asked) == finished_run[1]
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


def test_interrupted_rejudge_writes_partial_results(run):
    (own,) = (run / "results/Stub").glob("*/_results.json")

    def answer(asked):
        time.sleep(0.1 if len(llm.asked) < 4 else 60)
        return judge_saying("pass")(asked)

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


def test_missing_key_and_unusable_options_are_refused_before_any_request(run, monkeypatch):
    (run / "step").mkdir()
    step = Step(run / "step")
    env = step.variables(step.folder, {})
    completed = ci_evals("rejudge", "results", "--output-dir=again", cwd=run, env=env)
    assert (completed.returncode, step.outputs["result"]) == (2, "invalid")
    assert "no key for the LLM (openai)" in completed.stderr
    assert not (run / "again").exists()
    monkeypatch.chdir(run)
    for name in ("LLM_API_KEY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    before = read_files(run)
    (own,) = Path("results/Stub").glob("*/_results.json")
    for options, message in (
        ({"provider": "offline"}, "`provider=offline` has no judge"),
        ({"output_dir": Path("results")}, "would be overwritten. Omit `output_dir=`"),
        ({"output_dir": Path("other/../results")}, "would be overwritten. Omit `output_dir=`"),
        ({"results": own, "output_dir": Path("results")}, "would be overwritten"),
        ({"junit": Path("results/_results.json")}, "this is the file to judge again"),
        ({"results": Path("nowhere")}, "nowhere: cannot be read"),
        ({"thresholds": "category:safty=100"}, "there is no category"),
    ):
        fields = {"results": Path("results"), "output_dir": Path("again"), "llm_key": "k"} | options
        with pytest.raises(UsageError, match=message):
            rejudge_run(RejudgeSettings(**fields), RunContext())
    assert read_files(run) == before


def test_rejudge_of_run_without_judged_criteria_changes_nothing(tmp_path):
    strict = [{"criterion": "No forwarding", "strict": "not_escalated"}]
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "Hello"}], "evaluations": strict}
    suite = {"name": "S", "adapter": "demo", "agentId": "demo-hr", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    ran = ci_evals("run", "suite.json", "--provider=offline", cwd=tmp_path)
    assert ran.returncode == 0, finished_run.stderr
    before = read_files(tmp_path)
    done = ci_evals("rejudge", "results", cwd=tmp_path)
    assert done.returncode == 0
    assert "contains no judged verdict: nothing to judge again, the run stands." in done.stderr
    assert read_files(tmp_path) == before


def test_rejudge_writes_to_subfolder_of_run_and_unfinished_results_if_killed(run):
    before, again = (run / "results/_results.json").read_text(), run / "results/rejudged"
    options = ("rejudge", "results", "--provider=openai", "--junit=out.xml")
    with world.llm(judge_saying("pass")) as llm:
        for _ in range(2):
            done = ci_evals(*options, cwd=run, env=llm.env)
            assert done.returncode == 0, done.stderr
    assert json.loads((again / "_results.json").read_text())["run"]["status"] == "completed"
    with world.llm(lambda _: time.sleep(20)) as llm:
        judging = start(*options, cwd=run, env=llm.env)
        while not llm.asked:
            time.sleep(0.05)
        judging.kill()
        judging.communicate(timeout=300)
    results = json.loads((again / "_results.json").read_text())
    gate = results["gate"]
    assert (results["run"]["status"], gate["passed"], gate["exitCode"]) == ("unfinished", False, 3)
    files = {path.name for path in again.iterdir() if path.is_file()}
    assert files == {"_results.json", "ctrf.json", "summary.md"}
    assert 'errors="1"' in (run / "out.xml").read_text()
    ran = ci_evals("report", "results/rejudged", cwd=run)
    assert (ran.returncode, "has not finished" in ran.stderr) == (2, True)
    assert (run / "results/_results.json").read_text() == before
