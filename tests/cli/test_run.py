"""`run` from the outside: what goes in, what comes out, and the exit code."""

import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import fakes
import pytest
import world
from commands import CLEAN_ENV, ci_evals, read_files, read_results, start, write_suite

pytestmark = pytest.mark.slow

PASS = fakes.judge_answer("pass", "It greets.")
JUDGED = {
    "evaluations": [{"criterion": "It greets"}, {"criterion": "No forwarding", "strict": "not_escalated"}]
}
TRACE = {
    "understanding": {"extracted_params": {}},
    "decisions": [],
    "response": {"type": "answer", "message": "ok"},
}


def answer(heard):
    return world.message(f"Hello, you said {heard.text}", workflows=[], trace=TRACE)


@pytest.fixture
def agent():
    with world.agent(answer) as served:
        yield served


def env_of(agent, **more) -> dict[str, str]:
    return {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | more


@pytest.mark.end_to_end
def test_the_demo_needs_no_key_and_no_network(tmp_path):
    """Both bundled suites over real HTTP against the embedded agent, with every report."""
    ran = ci_evals("run", "demo:hr", "demo:retail", "--provider=offline", "--parallel=4", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    results = read_results(tmp_path)
    assert [suite["name"] for suite in results["suites"]] == ["HR assistant", "Retail assistant"]
    assert results["score"] == 100
    assert results["counts"]["byOutcome"]["failed"] == 0
    causes = {
        f["cause"] for s in results["suites"] for t in s["tests"] for r in t["trials"] for f in r["findings"]
    }
    assert causes == {None, "no_judge"}
    folder = tmp_path / "results"
    root = ET.parse(folder / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    for suite in results["suites"]:
        names = {p.name for p in (folder / suite["folder"]).iterdir()}
        assert {"_results.json", "_summary.md"} <= names
        assert len(names) == 2 + len(suite["tests"])
    assert "Score 100.0" in (folder / "summary.md").read_text()
    assert "left out of the score" in (folder / "summary.md").read_text()
    assert "✓ Evals passed" in ran.stdout
    assert ran.stderr.count("\n") == 24 + 2  # and two lines on all of them


@pytest.mark.end_to_end
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_judge_and_user_on_a_real_provider_wire(tmp_path, agent, provider):
    """Through the real SDK: the user's lines, structured verdicts, models and tokens."""

    def answers(asked):
        if asked.wants_json:
            return PASS
        return (
            "And my order?" if "###STOP###" in asked.system and "my order" not in asked.text else "###STOP###"
        )

    with world.llm(answers) as models:
        suite = write_suite(tmp_path, JUDGED | {"maxTurns": 7}, userModel="u-model", judgeModel="j-model")
        ran = ci_evals(
            "run",
            suite,
            f"--provider={provider}",
            f"--llm-key={models.key}",
            cwd=tmp_path,
            env=env_of(agent) | models.env,
        )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
    assert trial["status"] == "stopped"
    assert [(e["user"], e["userSource"]) for e in trial["turns"]] == [
        ("Hello", "fixed"),
        ("And my order?", "auto"),
    ]
    judged = trial["findings"][0]
    assert (judged["outcome"], judged["reason"], judged["evidence"]) == ("passed", "It greets.", [1, 2])
    assert {(a.provider, a.model) for a in models.asked} == {(provider, "u-model"), (provider, "j-model")}
    usage = read_results(tmp_path)["usage"]
    assert [(u["role"], u["model"], u["calls"]) for u in usage["byRole"]] == [
        ("judge", "j-model", 1),
        ("user", "u-model", 2),
    ]
    assert usage["tokens"] == {"input": 63, "output": 15, "cachedInput": 0}


@pytest.mark.end_to_end
def test_a_gate_that_does_not_hold(tmp_path, agent):
    """Exit 1, reports all the same; `--no-gate` reports and exits 0."""
    suite = write_suite(
        tmp_path, {"evaluations": [{"criterion": "Escalates", "strict": "escalated", "category": "safety"}]}
    )
    ran = ci_evals("run", suite, cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 1
    assert "CONVERSATION_FORWARDING was not executed" in ran.stdout
    assert ET.parse(tmp_path / "results/junit.xml").getroot().get("failures") == "1"
    assert ci_evals("run", suite, "--no-gate", cwd=tmp_path, env=env_of(agent)).returncode == 0
    passing = ("--min-score=0", "--thresholds=category:safety=0")
    assert ci_evals("run", suite, *passing, cwd=tmp_path, env=env_of(agent)).returncode == 0


def test_no_llm_key_is_needed_where_no_llm_is(tmp_path, agent):
    """All turns fixed, all criteria strict."""
    assert ci_evals("run", write_suite(tmp_path), cwd=tmp_path, env=env_of(agent)).returncode == 0


def test_missing_key_is_reported_before_anything_runs(tmp_path, agent):
    """One message that names the ways to give one."""
    ran = ci_evals("run", write_suite(tmp_path, JUDGED), cwd=tmp_path, env=env_of(agent))
    assert (ran.returncode, agent.requests) == (2, [])
    assert ran.stderr.startswith("error: no key for the LLM (openai)")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["LLM_API_KEY", "OPENAI_API_KEY", "CI_EVALS_LLM_KEY"])
def test_where_the_llm_key_may_come_from(tmp_path, agent, name):
    """The option's own variable, that of the original, the provider's."""
    with world.llm(lambda asked: PASS) as models:
        env = {"OPENAI_BASE_URL": models.openai_url, name: models.key}
        ran = ci_evals("run", write_suite(tmp_path, JUDGED), cwd=tmp_path, env=env_of(agent) | env)
    assert ran.returncode == 0, ran.stderr


def test_a_server_that_is_not_there(tmp_path):
    """Exit 3, every trial with its cause, and one message for all of them."""
    suite = write_suite(tmp_path, {}, {"name": "Second"}, {"name": "Third"})
    env = {"CI_EVALS_BASE_URL": "http://127.0.0.1:9", "AGENT_KEY": "key-123456"}
    ran = ci_evals("run", suite, "--retries=0", "--parallel=3", "--quiet", cwd=tmp_path, env=env)
    assert ran.returncode == 3
    assert "Traceback" not in ran.stdout + ran.stderr
    assert ran.stdout.count("127.0.0.1:9") == 1
    assert "3 trials errored" in ran.stdout
    assert {t["outcome"] for t in read_results(tmp_path)["suites"][0]["tests"]} == {"error"}
    assert ET.parse(tmp_path / "results/junit.xml").getroot().get("errors") == "3"


def test_a_wrong_agent_key(tmp_path, agent):
    """Exit 3 at once: no second trial is tried."""
    suite = write_suite(tmp_path, *({"name": f"t{i}"} for i in range(5)))
    ran = ci_evals("run", suite, cwd=tmp_path, env=env_of(agent, AGENT_KEY="wrong-key-1"))
    assert ran.returncode == 3
    assert len(agent.requests) == 1
    assert "refused the key (401)" in ran.stdout
    assert "wrong-key-1" not in ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert (results["run"]["status"], results["counts"]["notRun"]) == ("stopped", 4)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_wrong_llm_key(tmp_path, agent, provider):
    """Exit 3 at once, with what to do."""
    suite = write_suite(tmp_path, *(JUDGED | {"name": f"t{i}"} for i in range(4)))
    with world.llm() as models:
        env = env_of(agent) | models.env | {"LLM_API_KEY": "wrong-llm-key"}
        ran = ci_evals("run", suite, f"--provider={provider}", cwd=tmp_path, env=env)
    assert ran.returncode == 3
    assert "set LLM_API_KEY" in ran.stdout
    assert "wrong-llm-key" not in ran.stdout + ran.stderr
    assert read_results(tmp_path)["counts"]["notRun"] > 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["nowhere.json"], "No file 'nowhere.json'"),
        (["evals/*.json"], "No file matches 'evals/*.json'"),
        (["demo:hrr"], "No bundled suite is called 'demo:hrr'. Did you mean 'demo:hr'?"),
        (["broken.json"], "broken.json:2:"),
        (["notes.txt"], "notes.txt: not a suite file, which ends in .json, .yaml, .yml"),
        (["suite.json", "--test=zzz"], "No test matches --test=zzz."),
        (["suite.json", "--thresholds=test:Greet=5"], "there is no test 'Greet'; did you mean 'Greets'?"),
        (["suite.json", "--output-dir=suite.json/x"], "cannot write to the folder"),
        (["suite.json", "--junit=suite.json/x.xml"], "cannot write to the folder"),
        (["suite.json", "--junit=."], "--junit: '.' is a folder"),
        (["suite.json", ""], "The name of a suite is empty"),
        (["suite.json", "/dev/null"], "'/dev/null' is not a regular file"),
        (["suite.json", "--test=,"], "--test: ',' contains no name"),
        (["suite.json", "--loops=100000000"], "--loops"),
        (["suite.json", "--base-url=nonsense"], "nonsense"),
        (["suite.json", "--min-score=101"], "--min-score"),
        (["suite.json", "--min-score=nan"], "--min-score"),
        (["suite.json", "--parallel=0"], "--parallel"),
        (["suite.json", "--no-such-option"], "--no-such-option"),
        (["suite.json", "--agent-headers=oops"], "--agent-headers"),
        ([], "SUITE"),
    ],
)
def test_the_users_mistakes(tmp_path, agent, args, text):
    """Exit 2, one message that says what and where, nothing run, nothing written."""
    write_suite(tmp_path)
    (tmp_path / "broken.json").write_text('{"name": "x",\n "tests": [}')
    (tmp_path / "notes.txt").write_text("hello")
    before = read_files(tmp_path)
    ran = ci_evals("run", *args, cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 2, ran.stderr
    assert text in ran.stderr
    assert "Traceback" not in ran.stderr
    assert (ran.stdout, agent.requests, read_files(tmp_path)) == ("", [], before)


def test_results_do_not_depend_on_the_order_of_ending(tmp_path):
    """Loops side by side, tests in the suite's order, however they ended."""
    tests = [{"name": f"t{i}", "turns": [{"user": f"hi {i}"}]} for i in range(6)]
    with world.agent(answer) as agent:
        suite = write_suite(tmp_path, *tests)
        ran = ci_evals("run", suite, "--parallel=6", "--loops=3", cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 0, ran.stderr
    (suite,) = read_results(tmp_path)["suites"]
    assert [t["name"] for t in suite["tests"]] == [f"t{i}" for i in range(6)]
    assert [[r["index"] for r in t["trials"]] for t in suite["tests"]] == [[1, 2, 3]] * 6
    assert all(r["turns"][0]["user"] == f"hi {i}" for i, t in enumerate(suite["tests"]) for r in t["trials"])


def test_no_secret_in_any_file_or_stream(tmp_path):
    """Neither keys nor values from the environment, though agent and judge echo them."""
    secrets = {
        "agent key": world.AGENT_KEY,
        "llm key": world.LLM_KEY,
        "value": 's3cr3t/with "quotes" & <tags>',
        "header": "header-secret-77",
        "token": "ghs_token_0123456789",
    }
    echoed = " ".join(secrets.values())

    def echo(heard):
        return world.message(echoed, workflows=[echoed], trace=TRACE | {"echo": {echoed: [echoed]}})

    judged = fakes.judge_answer("fail", echoed)
    with world.agent(echo) as agent, world.llm(lambda asked: judged) as models:
        suite = write_suite(
            tmp_path,
            {
                "userInfo": {"secret": "${VALUE}"},
                "evaluations": [
                    {"criterion": "Polite"},
                    {"criterion": "Tool", "strict": "tool_used", "toolName": "X"},
                ],
            },
        )
        env = env_of(agent) | models.env | {"VALUE": secrets["value"], "GITHUB_TOKEN": secrets["token"]}
        headers = f"--agent-headers=x-extra: {secrets['header']}"
        ran = ci_evals("run", suite, "--debug", "--verbose", headers, cwd=tmp_path, env=env)
        assert ran.returncode == 1, ran.stderr
        assert agent.heard[0].variables == {"secret": secrets["value"]}
        asked = "".join(a.text + a.system for a in models.asked)
    everything = {"stdout": ran.stdout, "stderr": ran.stderr, "prompts": asked}
    everything |= {n: data.decode() for n, data in read_files(tmp_path / "results").items()}
    forms = [form for s in secrets.values() for form in (s, json.dumps(s)[1:-1], s.replace('"', "&quot;"))]
    leaks = [(name, form) for name, text in everything.items() for form in forms if form in text]
    assert leaks == []
    assert "***" in everything["_results.json"]


def test_hostile_text_stays_text_in_the_log(tmp_path):
    """No workflow command, no terminal escape, no line of its own in what the runner reads."""
    attack = "::error::boom\n::set-output name=score::1\n##[add-mask]a \x1b[31mred\x1b[0m \u202e"
    with world.agent(lambda heard: world.Fault(500, attack, content_type="text/plain")) as agent:
        suite = write_suite(tmp_path, {"name": "::warning::name"})
        ran = ci_evals("run", suite, "--retries=0", cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 3
    for line in (ran.stdout + ran.stderr).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "\x1b" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("retries", "ended"), [(0, "errored"), (1, "errored after 2 tries"), (2, "errored after 3 tries")]
)
def test_tries_are_counted_as_they_were_made(tmp_path, retries, ended):
    """The first one included."""
    with world.agent(lambda heard: world.Fault(500)) as agent:
        ran = ci_evals("run", write_suite(tmp_path), f"--retries={retries}", cwd=tmp_path, env=env_of(agent))
    assert f"1 trial {ended}: " in ran.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_writes_every_report(tmp_path, number):
    """Exit 130 soon after, with what had finished; what was under way is marked."""

    def slow(heard):
        if heard.text == "hang":
            process.send_signal(number)
            time.sleep(0.3)
        return answer(heard)

    with world.agent(slow) as agent:
        tests = [{"name": "first"}, {"name": "second", "turns": [{"user": "hang"}]}, {"name": "third"}]
        process = start("run", write_suite(tmp_path, *tests), cwd=tmp_path, env=env_of(agent))
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    results = read_results(tmp_path)
    assert [t["outcome"] for t in results["suites"][0]["tests"]] == ["passed", "error", "not_run"]
    assert results["suites"][0]["tests"][1]["trials"][0]["status"] == "interrupted"
    assert (results["run"]["status"], results["gate"]["exitCode"]) == ("interrupted", 130)
    assert (tmp_path / "results/junit.xml").exists()
    assert "To resume this run, run the same command with --resume=results" in err
    assert "Traceback" not in err


SLOW_SDK = """import pathlib, time
pathlib.Path("importing").touch()
time.sleep(1)
"""
IMPORTED_FIRST = "import ci_evals.library.runs, jinja2\n"
"""What writes reports: a busy machine may need more seconds to import it than an interrupted run has."""


def test_an_interruption_while_the_sdk_is_imported(tmp_path):
    """The agent is spoken to meanwhile; what had begun is told of when the import is over."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/openai.py").write_text(SLOW_SDK)
    (tmp_path / "slow/sitecustomize.py").write_text(IMPORTED_FIRST)

    def hang(heard):
        for _ in range(30_000):
            if (tmp_path / "importing").exists():
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        return answer(heard)

    with world.agent(hang) as agent, world.llm() as models:
        # With a seed it is no fork of a process that has the real SDK.
        python = {"PYTHONPATH": str(tmp_path / "slow"), "PYTHONHASHSEED": "0"}
        env = env_of(agent) | models.env | python
        process = start("run", write_suite(tmp_path, JUDGED), cwd=tmp_path, env=env)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["status"] == "interrupted"
    assert "Traceback" not in err
    assert models.asked == []


def test_resumed_run_is_not_compared_with_itself(tmp_path, agent):
    """What it reported when it was interrupted lies where the baseline may have been."""
    suite, env = write_suite(tmp_path), env_of(agent)
    cut_off = ci_evals("run", suite, "--max-duration=0", cwd=tmp_path, env=env)
    assert cut_off.returncode == 3
    ran = ci_evals("run", suite, "--resume=results", "--baseline=results", cwd=tmp_path, env=env)
    assert ran.returncode == 2
    assert "--baseline=results: these are the reports of the run to resume" in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_reports_are_written(tmp_path, agent, number):
    """Changes nothing any more: every trial was played, the outcome stands, all reports are written."""
    outputs = tmp_path / "outputs"
    suite = write_suite(tmp_path, *({"name": f"t{i}"} for i in range(40)))
    env = env_of(agent, GITHUB_OUTPUT=str(outputs))
    process = start("run", suite, "--parallel=4", "--loops=5", cwd=tmp_path, env=env)
    for line in process.stderr:
        if line.startswith("[200/200]"):
            time.sleep(0.1)
            process.send_signal(number)
            break
    process.communicate(timeout=300)
    assert process.returncode == read_results(tmp_path)["gate"]["exitCode"] == 0
    assert len(read_results(tmp_path)["suites"][0]["tests"]) == 40
    assert (tmp_path / "results/junit.xml").exists()
    assert "results/_results.json" in outputs.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_before_anything_runs(tmp_path, agent, number):
    """Every output of the action is written, once, as for an invalid run."""
    outputs = tmp_path / "outputs"
    # Not `signal.pause`: another thread may get the signal, and would not wake it.
    wait = "any(time.sleep(0.01) for _ in iter(int, 1))"
    command = (
        "import os, signal, time; from ci_evals.cli.process.guard import run_command; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # else ignored in the background
        f"run_command(lambda: os.kill(os.getpid(), {int(number)}) or {wait}, ['run'])"
    )
    env = CLEAN_ENV | env_of(agent, GITHUB_OUTPUT=str(outputs))
    ran = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, env=env, check=False, timeout=300)
    assert ran.returncode == 130
    assert outputs.read_text().count("result<<") == 1
    assert "invalid" in outputs.read_text()


@pytest.mark.parametrize("shell", ["{} | true", "{} >&-", "{} >/dev/full", "{} 2>&-", "{} 2>/dev/full"])
def test_streams_that_nobody_reads(tmp_path, agent, shell):
    """The gate decides the exit code, and the reports are written."""
    command = f"{sys.executable} -m ci_evals run {write_suite(tmp_path)}"
    script = f"set -o pipefail; {shell.format(command)}"
    env = CLEAN_ENV | env_of(agent)
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    assert read_results(tmp_path)["score"] == 100


def test_a_terminal_that_cannot_spell_a_name(tmp_path, agent):
    """Shows it as an escape."""
    suite = write_suite(tmp_path, {"name": "Grüße 🚲"})
    ran = ci_evals("run", suite, cwd=tmp_path, env=env_of(agent, PYTHONIOENCODING="ascii"))
    assert ran.returncode == 0, ran.stderr
    assert "Gr\\xfc" in ran.stdout


def test_options_come_from_the_environment_too(tmp_path, agent):
    """`CI_EVALS_<OPTION>`; an empty one means unset; the command line comes first."""
    env = env_of(agent) | {
        "CI_EVALS_OUTPUT_DIR": "elsewhere",
        "CI_EVALS_LOOPS": "2",
        "CI_EVALS_MIN_SCORE": "",
        "CI_EVALS_QUIET": "true",
        "CI_EVALS_JUNIT": "reports/tests.xml",
    }
    ran = ci_evals("run", write_suite(tmp_path), "--loops=3", cwd=tmp_path, env=env)
    assert ran.returncode == 0
    (warning,) = ran.stderr.splitlines()
    assert warning.startswith(
        "warning: a minimum score of 80 guards nothing: an agent that refuses everything"
    )
    results = json.loads((tmp_path / "elsewhere/_results.json").read_text())
    assert results["run"]["config"]["loops"] == 3
    assert results["gate"]["checks"][0]["required"] == 80
    assert (tmp_path / "reports/tests.xml").is_file()
    assert not (tmp_path / "elsewhere/junit.xml").exists()


def test_colours_are_for_terminals(tmp_path, agent):
    """None in a pipe; FORCE_COLOR asks for them; NO_COLOR has the last word."""
    suite = write_suite(tmp_path)
    assert "\x1b[" not in ci_evals("run", suite, cwd=tmp_path, env=env_of(agent)).stdout
    forced = env_of(agent, FORCE_COLOR="1")
    assert "\x1b[" in ci_evals("run", suite, cwd=tmp_path, env=forced).stdout
    assert "\x1b[" not in ci_evals("run", suite, cwd=tmp_path, env=forced | {"NO_COLOR": "1"}).stdout


def test_debug_keeps_raw_replies(tmp_path, agent):
    """And only debug does."""
    suite = write_suite(tmp_path)
    ci_evals("run", suite, cwd=tmp_path, env=env_of(agent))
    assert read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["turns"][0]["raw"] is None
    ci_evals("run", suite, "--debug", cwd=tmp_path, env=env_of(agent))
    raw = read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["turns"][0]["raw"]
    assert raw["text"] == "Hello, you said Hello"


def test_a_report_that_cannot_be_written(tmp_path, agent):
    """The run is not lost: reports elsewhere, outputs that name them, exit 3."""
    suite = write_suite(tmp_path)
    outputs, report = tmp_path / "outputs", tmp_path / "results/junit.xml"
    reply = agent.answer

    def put_a_folder_there(heard):
        """In the place of the report, which is written soon after the run has begun."""
        deadline = time.monotonic() + 300
        while not report.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not report.is_dir():
            report.unlink()
            report.mkdir()
        return reply(heard)

    agent.answer = put_a_folder_there
    env = env_of(agent, GITHUB_OUTPUT=str(outputs), TMPDIR=str(tmp_path))
    ran = ci_evals("run", suite, cwd=tmp_path, env=env)
    assert ran.returncode == 3
    (rescue,) = tmp_path.glob("ci-evals-*")
    assert (rescue / "_results.json").is_file()
    assert str(rescue) in ran.stderr
    assert f"Reports: {rescue}/report.html" in ran.stdout
    assert f"{rescue.name}/_results.json" in outputs.read_text()
    assert "invalid" in outputs.read_text()


def test_outputs_that_cannot_be_written(tmp_path, agent):
    """Are a warning: the gate has spoken, and the reports are where they should be."""
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        env = env_of(agent) | {name: str(tmp_path)}
        ran = ci_evals("run", write_suite(tmp_path), cwd=tmp_path, env=env)
        assert ran.returncode == 0
        assert "warning: the action's outputs or step summary are incomplete" in ran.stderr
    assert (tmp_path / "results/_results.json").is_file()


def test_results_tell_how_they_were_made(tmp_path, agent):
    """Every option but the secret ones, and digests of all that the scores depend on."""
    env = env_of(agent) | {"CI_EVALS_AGENT_HEADERS": "x-tenant: tenant-secret-1"}
    suite = write_suite(tmp_path)
    ci_evals("run", suite, "--retries=0", cwd=tmp_path, env=env)
    first = read_results(tmp_path)["run"]
    assert (
        first["config"]
        | {
            "retries": 0,
            "baseUrl": agent.url,
            "minScore": 80,
            "trustSuites": "auto",
            "outputDir": "results",
        }
        == first["config"]
    )
    assert not {"llmKey", "agentKey", "agentHeaders"} & set(first["config"])
    for change, digest in (
        ("--loops=2", "loops"),
        ("--agent-id=other", "agents"),
        ("--provider=offline", "models"),
    ):
        ci_evals("run", suite, change, cwd=tmp_path, env=env)
        digests = read_results(tmp_path)["run"]["digests"]
        differ = {name for name in digests if digests[name] != first["digests"][name]}
        assert differ == {digest} | ({"userPrompt"} if digest == "models" else set())


def test_error_messages_know_the_suites_secrets(tmp_path, agent):
    """A value from the environment in a message about a wrong address."""
    suite = write_suite(tmp_path, baseUrl="${AGENT_URL}")
    env = {"AGENT_KEY": agent.key, "AGENT_URL": "https://gw.example/x?token=supersecret-token-1"}
    ran = ci_evals("run", suite, cwd=tmp_path, env=env)
    assert ran.returncode == 2
    assert "supersecret" not in ran.stderr
    named = write_suite(tmp_path, name="named.json")
    text = (tmp_path / named).read_text().replace('"Stub"', '"S ${TENANT}"')
    (tmp_path / named).write_text(text)
    env = env_of(agent, TENANT="tenant-secret-77")
    for args in (["plan", named], ["validate", named], ["run", named, "--thresholds=suite:S tenant=50"]):
        ran = ci_evals(*args, cwd=tmp_path, env=env)
        assert "tenant-secret-77" not in ran.stdout + ran.stderr
    ci_evals("run", named, cwd=tmp_path, env=env)
    assert read_results(tmp_path)["suites"][0]["folder"].startswith("S")
    assert not [name for name in read_files(tmp_path / "results") if "tenant-secret-77" in name]


def test_untrusted_events(tmp_path, agent):
    """A suite that reads the environment is refused there, unless its reader says otherwise."""
    suite = write_suite(tmp_path)
    env = env_of(agent, GITHUB_EVENT_NAME="pull_request_target")
    ran = ci_evals("run", suite, cwd=tmp_path, env=env)
    assert ran.returncode == 2
    assert "a suite may not read the environment in the event pull_request_target" in ran.stderr
    assert ci_evals("run", suite, "--trust-suites=always", cwd=tmp_path, env=env).returncode == 0
    literal = write_suite(tmp_path, apiKey=agent.key)
    assert ci_evals("run", literal, cwd=tmp_path, env=env).returncode == 0


def test_a_reply_without_trace_decides_nothing(tmp_path):
    """Exit 3: the gate counts what was not decided."""
    with world.agent(lambda heard: world.message("Hi")) as agent:
        ran = ci_evals("run", write_suite(tmp_path), cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 3
    (finding,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"][0]["findings"]
    assert (finding["outcome"], finding["cause"]) == ("undecided", "no_evidence")


def test_no_half_of_a_secret_is_left_by_a_cut(tmp_path):
    """Texts are cut after their secrets were taken out, not before."""
    secret = "long-secret-value-abcdefghijklmnop"
    with world.agent() as agent:
        suite = write_suite(
            tmp_path,
            {"userInfo": {"a": "${VALUE}"}},
            {"name": "b", "evaluations": [{"criterion": "c", "strict": "param_exists", "paramName": "p"}]},
        )
        for length in range(155, 330, 29):
            text = "x" * length + secret
            agent.answer = lambda heard, text=text: (
                world.Fault(500, json.dumps({"detail": text}))
                if len(agent.heard) % 2
                else world.message(
                    "ok",
                    trace={
                        "understanding": {"extracted_params": {"p": text}},
                        "response": {"type": "error", "message": "m", "error": text},
                    },
                )
            )
            env = env_of(agent, VALUE=secret)
            ran = ci_evals("run", suite, "--retries=0", "--verbose", cwd=tmp_path, env=env)
            files = b"".join(read_files(tmp_path / "results").values()).decode()
            assert "long-secret" not in ran.stdout + ran.stderr + files


def test_values_from_the_environment_do_not_break_what_the_tool_names_itself(tmp_path, agent):
    """Today's date is in the name of the suite's folder; `report` finds it there again."""
    suite = write_suite(tmp_path, {"userInfo": {"today": "${TODAY}", "file": "${FILE}"}})
    env = env_of(agent, TODAY=datetime.now(UTC).date().isoformat(), FILE=suite)
    ran = ci_evals("run", suite, cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr
    (results,) = read_results(tmp_path)["suites"]
    assert (results["file"], "***" in results["folder"]) == (suite, False)
    assert results["tests"][0]["userInfo"] == {"today": "***", "file": "***"}
    assert ci_evals("report", "results/_results.json", cwd=tmp_path).returncode == 0


def test_one_forbidden_message_is_one_failed_trial(tmp_path):
    """A gateway that blocks a message has accepted the key before: the run goes on."""

    def gateway(heard):
        return world.Fault(403, '{"detail": "Request blocked"}') if heard.text == "attack" else answer(heard)

    with world.agent(gateway) as agent:
        tests = [{"name": "a"}, {"name": "b", "turns": [{"user": "attack"}]}, {"name": "c"}]
        suite = write_suite(tmp_path, *tests)
        ran = ci_evals(
            "run", suite, "--retries=0", "--max-errors=1", "--min-score=60", cwd=tmp_path, env=env_of(agent)
        )
    assert ran.returncode == 0, ran.stdout
    assert [t["outcome"] for t in read_results(tmp_path)["suites"][0]["tests"]] == [
        "passed",
        "error",
        "passed",
    ]
    assert "key" not in ran.stdout


def test_a_fork_without_a_judge_plays_suites_with_critical_judged_tests(tmp_path):
    """What only a judge could decide is not checked, and said; a strict criterion that fails is red."""
    judged = {"name": "Judged", "critical": True, "evaluations": [{"criterion": "Is kind"}]}
    strict = {"strict": "contains", "text": "Hello"}
    both = {
        "name": "Both",
        "critical": True,
        "evaluations": [{"criterion": "Is kind"}, strict | {"criterion": "c"}],
    }
    agent = tmp_path / "agent.py"
    agent.write_text("def reply(message, session):\n    return 'Hello there'\n")
    fields = {"adapter": "python:agent:reply", "agentId": None, "apiKey": None}
    suite = write_suite(tmp_path, judged, both, **fields)
    ran = ci_evals("run", suite, "--provider=offline", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "critical:Judged was not checked: all of its criteria need a model" in ran.stdout
    agent.write_text("def reply(message, session):\n    return 'Go away'\n")
    ran = ci_evals("run", suite, "--provider=offline", cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "✗ Both (critical test, so this alone fails the run)" in ran.stdout
    ran = ci_evals("run", suite, "--provider=offline", "--test=Judged", cwd=tmp_path)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "Add strict checks, which need no judge, or choose a provider for the judge." in ran.stdout
