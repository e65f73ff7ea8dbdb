"""`run --record` and `run --replay`: recorded with keys, replayed without."""

import json
import re
import shutil
import sys
from collections import Counter
from contextlib import closing
from dataclasses import fields, replace

import builders as build
import fakes
import pytest
import world
from commands import CLEAN_ENV, ci_evals, read_results, write_suite
from plans import make_plan
from programs import run_captured

from ci_evals.adapters.journal import records
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.reading import Recording
from ci_evals.adapters.journal.records import RECORDING, RecordedSuite
from ci_evals.cli.files.suite_loading import load_suites
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run import recording
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.progress import TrialFinished
from ci_evals.domain.results.run import Digests, Tool
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, evaluate
from ci_evals.planning.selection import Selection, plan
from ci_evals.runner import Options, Participants
from ci_evals.support.redaction import Redactor

ORDER = "ORDER/77 & 10294830571"
BOT = "def reply(message):\n    return {'text': f'You said {message}', 'workflows': ['ECHO']}\n"
GUARDED_REPLAY = """
import atexit, runpy, sys

def refuse(event, _):
    if event in {"socket.connect", "socket.bind", "subprocess.Popen", "os.exec", "os.posix_spawn"}:
        raise RuntimeError(f"a replay must not: {event}")

sys.addaudithook(refuse)
modules = {"openai", "anthropic", "bot"}
atexit.register(lambda: print("imported:", sorted(modules & sys.modules.keys()), file=sys.stderr))
runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
"""
ENDS = {
    "head": {"sha": "d" * 40, "ref": "topic", "repo": {"full_name": "stranger/fork"}},
    "base": {"sha": "b" * 40, "ref": "main", "repo": {"full_name": "org/repo"}},
}


def fork_job(folder, **variables):
    """The environment of a job of a fork's pull request; its secrets are empty."""
    path = folder / "event.json"
    path.write_text(json.dumps({"number": 7, "pull_request": {"number": 7, **ENDS}}))
    env = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(path), "AGENT_KEY": ""}
    return env | {"GITHUB_REPOSITORY": "org/repo", "CI_EVALS_BASELINE": "none"} | variables


def write_suites(folder):
    """Write two suites: one for the AUI API with secrets in all fields, one for Python code."""
    aui = {
        "name": "Looks up an order",
        "userInfo": {"order": "${ORDER}"},
        "guidelines": "You ask for ${ORDER}.",
        "turns": [{"user": "Where is ${ORDER}?"}],
        "maxTurns": 3,
        "evaluations": [
            {"criterion": "It finds ${ORDER}"},
            {"criterion": "It names it", "strict": "contains", "text": "${ORDER}"},
        ],
    }
    write_suite(folder, aui, name="aui.json", baseUrl="${AGENT_URL}", judgeModel="judge-1")
    write_suite(folder, {}, name="code.json", adapter="python:bot:reply", apiKey=None, agentId=None)
    (folder / "bot.py").write_text(BOT)


def comparable(results):
    """Results without what depends on time, waits and the id of the run, from which the odds are drawn."""
    run = {name: results["run"][name] for name in ("status", "digests")}
    run["digests"] = {name: value for name, value in run["digests"].items() if name != "agents"}
    fields = {name: value for name, value in results.items() if name not in {"suites", "odds"}}
    fields["run"] = run
    del fields["process"]["times"]
    for suite in results["suites"]:
        del suite["folder"], suite["process"]["times"]
        for test in suite["tests"]:
            del test["process"]["times"]
            for trial in test["trials"]:
                del trial["durationSeconds"], trial["times"]
    return fields | {"suites": results["suites"]}


@pytest.mark.end_to_end
@pytest.mark.slow
def test_run_recorded_with_keys_is_replayed_in_fork_without_keys(tmp_path):
    """The same results, with no network, process, key, SDK or code of the suite."""
    write_suites(tmp_path)

    def llm(asked):
        if asked.wants_json:
            return fakes.judge_answer("pass", f"{ORDER} is found.")
        return f"And {ORDER}?" if f"And {ORDER}?" not in asked.text else "###STOP###"

    def agent(heard):
        return world.message(f"Hello, {ORDER} is on its way", workflows=["LOOKUP"])

    with world.agent(agent) as served, world.llm(llm) as models:
        secrets = {"ORDER": ORDER, "AGENT_URL": served.url, "AGENT_KEY": served.key}
        env = secrets | models.env | {"LLM_API_KEY": models.key}
        recorded = ci_evals("run", "aui.json", "code.json", "--record=recording", cwd=tmp_path, env=env)
        calls = len(models.asked)
    assert recorded.returncode == 0, recorded.stderr + recorded.stdout
    assert calls
    first = read_results(tmp_path)
    text = (tmp_path / "recording/recording.jsonl").read_text()
    assert not [secret for secret in (*secrets.values(), models.key, "10294830571") if secret in text]

    (tmp_path / "bot.py").unlink()
    env = CLEAN_ENV | fork_job(tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(tmp_path / "step.md"))
    command = [sys.executable, "-c", GUARDED_REPLAY, "run", "aui.json", "code.json", "--replay=recording"]
    replayed = run_captured(command, cwd=tmp_path, env=env)
    assert replayed.returncode == 0, replayed.stderr + replayed.stdout
    assert replayed.stderr.splitlines()[-1] == "imported: []"
    again = read_results(tmp_path)
    origin = {"how": "replay", "run": first["run"]["id"], "startedAt": first["run"]["startedAt"]}
    assert (again["run"]["origin"], again["run"]["warnings"]) == (origin, [])
    assert first["process"]["times"]["user"] > 0
    assert (again["process"]["times"], comparable(again)) == (None, comparable(first))
    texts = [(tmp_path / name).read_text() for name in ("step.md", "results/summary.md")]
    assert all("Replayed from a recording of " in text for text in (replayed.stdout, *texts))


@pytest.mark.slow
def test_replay_of_recording_without_trials_needs_no_key_and_has_no_verdict(tmp_path):
    write_suite(tmp_path, {}, agentId="agent-1")
    write_recording(tmp_path, RecordedSuite(file="suite.json", name="Stub", adapter="aui"), provider="openai")
    ran = ci_evals("run", "suite.json", "--replay=.", "--comment=never", cwd=tmp_path, env=fork_job(tmp_path))
    assert (ran.returncode, "it has no trial 1 of the test" in ran.stdout) == (3, True), ran.stdout


def write_recording(folder, *recorded, torn="", **models):
    digests = Digests(**{field.name: field.name for field in fields(Digests)})
    used = records.RecordedModels(**({"provider": "anthropic"} | models))
    run = {"run": "run-1", "started_at": build.STARTED_AT, "digests": digests}
    of = records.Recorded(models=used, suites=recorded)
    header = records.JournalHeader(tool=Tool(version="0.1.0"), recorded=of, **run)
    (folder / "recording.jsonl").write_text(header.model_dump_json(by_alias=True) + "\n" + torn)
    return folder


def test_replay_uses_recorded_provider_and_models_and_rejects_conflicting_options(tmp_path):
    for options, message in (
        ({"record": tmp_path}, "a replay has nothing to record"),
        ({"resume": tmp_path}, "Omit `resume=`"),
        ({}, f"`replay=`: there is no recording in '{tmp_path}'"),
    ):
        with pytest.raises(UsageError, match=message):
            recording.open_recording(RunSettings(suites=[], replay=tmp_path, **options))
    write_recording(tmp_path, judge_model="judge-1", user_model="user-1")
    settings, result = recording.open_recording(RunSettings(suites=[], replay=tmp_path, user_model="user-2"))
    models = (settings.provider, settings.judge_model, settings.user_model)
    assert models == ("anthropic", "judge-1", "user-2")
    assert result is not None
    with pytest.raises(UsageError, match="`provider=offline`: the recording was made with anthropic"):
        recording.open_recording(RunSettings(suites=[], replay=tmp_path, provider="offline"))
    write_recording(tmp_path, provider="nobody")
    with pytest.raises(UsageError, match="names the unknown provider 'nobody'"):
        recording.open_recording(RunSettings(suites=[], replay=tmp_path))


def plan_for_replay(folder, *tests, replay=True, **fields):
    """The plan of a suite with these fields, read for a replay."""
    name = write_suite(folder, *tests, **fields)
    settings = RunSettings(suites=[str(folder / name)], trust_suites=SuiteTrust.ALWAYS)
    context = RunContext({"SET": "a-known-value", "SHORT": "abc"})
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    return plan(load_suites(settings, trust, replay=replay), Selection(), 1)


async def test_resumed_run_completes_its_recording(tmp_path):
    one = {"turns": [{"user": "x"}], "evaluations": [{"criterion": "c", "strict": "not_escalated"}]}
    plan = make_plan(*({"name": f"t{index}"} | one for index in range(4)), maxTurns=1)
    job = Job(plan=plan, policy=Policy(), options=Options(parallel=2), redactor=Redactor())
    whole, left, count, messages = tmp_path / "whole", tmp_path / "left", Counter(), []

    def listen(event):
        count.update([type(event)])
        if isinstance(event, TrialFinished) and count[TrialFinished] == 2:
            shutil.copytree(whole, left)

    async def play(folder, listen=lambda _: None, *, resume=False):
        journal = Journal(folder, resume=resume, record=folder / "recording", say=messages.append)
        with closing(journal):
            agent = Participants(fakes.ScriptedAgent())
            return await evaluate(replace(job, journal=journal), agent, listen=listen)

    await play(whole, listen)
    done = Journal(left, resume=True).past.done
    assert 2 <= len(done) < 4
    assert 2 <= Recording(left / "recording").count < 4
    results = await play(left, resume=True)
    assert messages == []
    result = Recording(left / "recording")
    assert (result.count, result.header.run) == (4, results.run.id)
    path, whole_file = left / "recording" / RECORDING, (left / "recording" / RECORDING).read_bytes()
    path.write_bytes(whole_file[:-2000])
    results = await play(left, resume=True)
    assert (results.run.resumed.trials, Recording(left / "recording").count) == (4, 4)
    shutil.rmtree(left / "recording")
    await play(left, resume=True)
    assert Recording(left / "recording").count == 4


def test_replay_uses_recorded_agent_and_warns_if_suite_names_another(tmp_path):
    now = plan_for_replay(tmp_path)
    then = RecordedSuite(file="elsewhere.json", name="Stub", adapter="http", agent_id="agent-0")
    write_recording(tmp_path, then, torn='{"file":')
    played = recording.with_recorded_agents(now, Recording(tmp_path), Redactor())
    (suite,) = played.plan.suites
    assert (suite.suite.adapter, suite.suite.agent_id) == ("http", "agent-0")
    torn, other = played.warnings
    assert "is incomplete" in torn
    assert "names the agent 'agent-1', but the recording is of 'agent-0'" in other
    write_recording(tmp_path, then.model_copy(update={"name": "Other"}))
    with pytest.raises(UsageError, match=r"none of these suites is in .* It contains: 'Other'"):
        recording.with_recorded_agents(now, Recording(tmp_path), Redactor())


def test_suite_is_read_for_replay_without_secrets(tmp_path):
    """Set or not, they read as in the recording; what is no secret, and a default, as always."""
    text = "${SET}, ${UNSET}, ${SHORT}, ${env:SET}, ${UNSET:-a default}"
    check = {"criterion": "c", "strict": "regex", "pattern": "^${SET}$"}
    fields = {"baseUrl": "${UNSET}", "apiKey": None, "agentId": None}
    (suite,) = plan_for_replay(tmp_path, {"guidelines": text, "evaluations": [check]}, **fields).suites
    (test,) = suite.suite.tests
    assert test.guidelines == "***, ***, abc, a-known-value, a default"
    assert re.fullmatch(test.evaluations[0].pattern, "***")
    assert suite.suite.base_url == "***"
    with pytest.raises(SuiteError, match="UNSET is not set"):
        plan_for_replay(tmp_path, replay=False, baseUrl="${UNSET}")
