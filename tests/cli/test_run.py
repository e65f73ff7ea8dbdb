"""The `run` command: options, output and exit code."""

import json
import signal
import sys
import time
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import fakes
import pytest
import world
from commands import CLEAN_ENV, ci_evals, read_files, read_results, start, write_suite
from each_row import each_row
from programs import run_captured

pytestmark = pytest.mark.slow

PASS = fakes.judge_answer("pass", "It greets.")
STRICT = {"criterion": "No forwarding", "strict": "not_escalated"}
JUDGED = {"evaluations": [{"criterion": "It greets"}, STRICT]}
TRACE = {"understanding": {"extracted_params": {}}, "response": {"type": "answer", "message": "ok"}}
TRACE |= {"decisions": []}
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def answer(heard):
    return world.message(f"Hello, you said {heard.text}", workflows=[], trace=TRACE)


@pytest.fixture
def agent():
    with world.agent(answer) as served:
        yield served


def env_of(agent, **more) -> dict[str, str]:
    return {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | more


def run(folder, agent, *args, code=0, **environ):
    """A run that ends with this exit code, against an agent if there is one."""
    env = env_of(agent, **environ) if agent else environ
    ran = ci_evals("run", *args, cwd=folder, env=env)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    return ran


def only_trial(folder):
    (trial,) = read_results(folder)["suites"][0]["tests"][0]["trials"]
    return trial


def outcomes(folder):
    return [test["outcome"] for test in read_results(folder)["suites"][0]["tests"]]


@pytest.mark.end_to_end
def test_demo_suites_pass_without_key_or_network_and_leave_every_report(tmp_path):
    ran = run(tmp_path, None, "demo:hr", "demo:retail", "--provider=offline", "--parallel=4")
    results = read_results(tmp_path)
    assert [suite["name"] for suite in results["suites"]] == ["HR assistant", "Retail assistant"]
    assert (results["score"], results["counts"]["byOutcome"]["failed"]) == (100, 0)
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
    summary = (folder / "summary.md").read_text()
    assert ("Score 100.0" in summary, "left out of the score" in summary) == (True, True)
    assert "✓ Evals passed" in ran.stdout
    assert ran.stderr.count("\n") == 24 + 2  # and two lines on all of them


@pytest.mark.end_to_end
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_judge_and_simulated_user_use_provider_sdk(tmp_path, agent, provider):
    def answers(asked):
        if asked.wants_json:
            return PASS
        first = "###STOP###" in asked.system and "my order" not in asked.text
        return "And my order?" if first else "###STOP###"

    with world.llm(answers) as models:
        suite = write_suite(tmp_path, JUDGED | {"maxTurns": 7}, userModel="u-model", judgeModel="j-model")
        run(tmp_path, agent, suite, f"--provider={provider}", f"--llm-key={models.key}", **models.env)
    trial = only_trial(tmp_path)
    turns = [(turn["user"], turn["userSource"]) for turn in trial["turns"]]
    assert (trial["status"], turns) == ("stopped", [("Hello", "fixed"), ("And my order?", "auto")])
    judged = trial["findings"][0]
    assert (judged["outcome"], judged["reason"], judged["evidence"]) == ("passed", "It greets.", [1, 2])
    assert {(a.provider, a.model) for a in models.asked} == {(provider, "u-model"), (provider, "j-model")}
    usage = read_results(tmp_path)["usage"]
    roles = [(u["role"], u["model"], u["calls"]) for u in usage["byRole"]]
    assert roles == [("judge", "j-model", 1), ("user", "u-model", 2)]
    assert usage["tokens"] == {"input": 63, "output": 15, "cachedInput": 0}


@pytest.mark.end_to_end
def test_failed_gate_exits_1_with_reports_unless_no_gate(tmp_path, agent):
    escalates = {"criterion": "Escalates", "strict": "escalated", "category": "safety"}
    suite = write_suite(tmp_path, {"evaluations": [escalates]})
    assert "CONVERSATION_FORWARDING was not executed" in run(tmp_path, agent, suite, code=1).stdout
    assert ET.parse(tmp_path / "results/junit.xml").getroot().get("failures") == "1"
    run(tmp_path, agent, suite, "--no-gate")
    run(tmp_path, agent, suite, "--min-score=0", "--thresholds=category:safety=0")


def test_llm_key_is_only_required_for_models_and_read_from_each_variable(tmp_path, agent):
    ran = run(tmp_path, agent, write_suite(tmp_path, JUDGED), code=2)
    assert (agent.requests, (tmp_path / "results").exists()) == ([], False)
    assert ran.stderr.startswith("error: no key for the LLM (openai)")
    run(tmp_path, agent, write_suite(tmp_path))
    suite = write_suite(tmp_path, JUDGED)
    for name in ("LLM_API_KEY", "OPENAI_API_KEY", "CI_EVALS_LLM_KEY"):
        with world.llm(lambda asked: PASS) as models:
            run(tmp_path, agent, suite, **{"OPENAI_BASE_URL": models.openai_url, name: models.key})


def test_unreachable_agent_errors_all_trials_with_one_message(tmp_path):
    suite = write_suite(tmp_path, {}, {"name": "Second"}, {"name": "Third"})
    env = {"CI_EVALS_BASE_URL": "http://127.0.0.1:9", "AGENT_KEY": "key-123456"}
    ran = run(tmp_path, None, suite, "--retries=0", "--parallel=3", "--quiet", code=3, **env)
    assert (ran.stdout.count("127.0.0.1:9"), "3 trials errored" in ran.stdout) == (1, True)
    assert outcomes(tmp_path) == ["error"] * 3
    assert ET.parse(tmp_path / "results/junit.xml").getroot().get("errors") == "3"


def test_rejected_agent_or_llm_key_stops_run_after_first_request(tmp_path, agent):
    suite = write_suite(tmp_path, *({"name": f"t{i}"} for i in range(5)))
    ran = run(tmp_path, agent, suite, code=3, AGENT_KEY="wrong-key-1")
    assert len(agent.requests) == 1
    assert "refused the key (401)" in ran.stdout
    assert "wrong-key-1" not in ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert (results["run"]["status"], results["counts"]["notRun"]) == ("stopped", 4)
    suite = write_suite(tmp_path, *(JUDGED | {"name": f"t{i}"} for i in range(4)))
    for provider in ("openai", "anthropic"):
        (tmp_path / "results/_results.json").unlink()
        with world.llm() as models:
            env = models.env | {"LLM_API_KEY": "wrong-llm-key"}
            ran = run(tmp_path, agent, suite, f"--provider={provider}", code=3, **env)
        assert "set LLM_API_KEY" in ran.stdout
        assert "wrong-llm-key" not in ran.stdout + ran.stderr
        assert read_results(tmp_path)["counts"]["notRun"] > 0


@each_row(
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
def test_invalid_arguments_exit_2_with_reason_and_without_running(tmp_path, agent, args, text):
    write_suite(tmp_path)
    (tmp_path / "broken.json").write_text('{"name": "x",\n "tests": [}')
    (tmp_path / "notes.txt").write_text("hello")
    before = read_files(tmp_path)
    ran = run(tmp_path, agent, *args, code=2)
    assert text in ran.stderr
    assert (ran.stdout, agent.requests, read_files(tmp_path)) == ("", [], before)


def test_secrets_are_redacted_in_every_file_and_stream(tmp_path):
    secrets = {"agent key": world.AGENT_KEY, "llm key": world.LLM_KEY, "token": "ghs_token_0123456789"}
    secrets |= {"value": 's3cr3t/with "quotes" & <tags>', "header": "header-secret-77"}
    echoed = " ".join(secrets.values())

    def echo(heard):
        return world.message(echoed, workflows=[echoed], trace=TRACE | {"echo": {echoed: [echoed]}})

    judged = fakes.judge_answer("fail", echoed)
    with world.agent(echo) as agent, world.llm(lambda asked: judged) as models:
        checks = [{"criterion": "Polite"}, {"criterion": "Tool", "strict": "tool_used", "toolName": "X"}]
        suite = write_suite(tmp_path, {"userInfo": {"secret": "${VALUE}"}, "evaluations": checks})
        env = models.env | {"VALUE": secrets["value"], "GITHUB_TOKEN": secrets["token"]}
        headers = f"--agent-headers=x-extra: {secrets['header']}"
        ran = run(tmp_path, agent, suite, "--debug", "--verbose", headers, code=1, **env)
        assert agent.heard[0].variables == {"secret": secrets["value"]}
        asked = "".join(a.text + a.system for a in models.asked)
    everything = {"stdout": ran.stdout, "stderr": ran.stderr, "prompts": asked}
    everything |= {n: data.decode() for n, data in read_files(tmp_path / "results").items()}
    forms = [form for s in secrets.values() for form in (s, json.dumps(s)[1:-1], s.replace('"', "&quot;"))]
    leaks = [(name, form) for name, text in everything.items() for form in forms if form in text]
    assert leaks == []
    assert "***" in everything["_results.json"]


def test_errors_count_attempts_and_agent_text_cannot_inject_log_commands(tmp_path):
    attack = "::error::boom\n::set-output name=score::1\n##[add-mask]a \x1b[31mred\x1b[0m \u202e"
    with world.agent(lambda heard: world.Fault(500, attack, content_type="text/plain")) as agent:
        suite = write_suite(tmp_path, {"name": "::warning::name"})
        for retries, attempts in ((1, " after 2 tries"), (2, " after 3 tries"), (0, "")):
            ran = run(tmp_path, agent, suite, f"--retries={retries}", code=3)
            assert f"1 trial errored{attempts}: " in ran.stdout
    for line in (ran.stdout + ran.stderr).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "\x1b" not in ran.stdout + ran.stderr


@SIGNALS
def test_interrupted_run_writes_reports_and_marks_unfinished_trials(tmp_path, number):
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
    assert outcomes(tmp_path) == ["passed", "error", "not_run"]
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
"""Modules that write reports: a busy machine may import them for longer than an interrupted run has."""


def test_interruption_during_sdk_import_marks_trial_interrupted(tmp_path):
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
    assert only_trial(tmp_path)["status"] == "interrupted"
    assert "Traceback" not in err
    assert models.asked == []


def test_resumed_run_is_not_compared_with_its_own_reports(tmp_path, agent):
    suite = write_suite(tmp_path)
    run(tmp_path, agent, suite, "--max-duration=0", code=3)
    ran = run(tmp_path, agent, suite, "--resume=results", "--baseline=results", code=2)
    assert "--baseline=results: these are the reports of the run to resume" in ran.stderr


@SIGNALS
def test_interruption_while_reports_are_written_does_not_change_result(tmp_path, agent, number):
    outputs = tmp_path / "outputs"
    suite = write_suite(tmp_path, *({"name": f"t{i}"} for i in range(40)))
    env = env_of(agent, GITHUB_OUTPUT=str(outputs))
    process = start("run", suite, "--parallel=4", "--loops=2", cwd=tmp_path, env=env)
    for line in process.stderr:
        if line.startswith("[80/80]"):
            time.sleep(0.1)
            process.send_signal(number)
            break
    process.communicate(timeout=300)
    assert process.returncode == read_results(tmp_path)["gate"]["exitCode"] == 0
    assert len(outcomes(tmp_path)) == 40
    assert (tmp_path / "results/junit.xml").exists()
    assert "results/_results.json" in outputs.read_text()


@SIGNALS
def test_interruption_before_run_writes_action_outputs_once(tmp_path, agent, number):
    outputs, script = tmp_path / "outputs", tmp_path / "interrupted.py"
    # Not `signal.pause`: another thread may get the signal, and would not wake it.
    script.write_text(
        "import os, time; from ci_evals.cli.process.guard import run_command\n"
        f"run_command(lambda: os.kill(os.getpid(), {int(number)}) or "
        "any(time.sleep(0.01) for _ in iter(int, 1)), ['run'])"
    )
    ran = ci_evals(program=str(script), cwd=tmp_path, env=env_of(agent, GITHUB_OUTPUT=str(outputs)))
    assert (ran.returncode, outputs.read_text().count("result<<")) == (130, 1)
    assert "invalid" in outputs.read_text()


FULL = "os.dup2(os.open('/dev/full', os.O_WRONLY), {})"
CLOSED_PIPE = "pipe = os.pipe(); os.close(pipe[0]); os.dup2(pipe[1], 1)"


@pytest.mark.parametrize("before", [CLOSED_PIPE, FULL.format(1), FULL.format(2)])
def test_full_stream_or_closed_pipe_does_not_change_exit_code(tmp_path, agent, before):
    script = tmp_path / "start.py"
    script.write_text(f"import os, runpy; {before}; runpy.run_module('ci_evals', run_name='__main__')")
    ran = ci_evals("run", write_suite(tmp_path), program=str(script), cwd=tmp_path, env=env_of(agent))
    assert (ran.returncode, read_results(tmp_path)["score"]) == (0, 100), ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
def test_closed_output_stream_does_not_change_exit_code(tmp_path, agent, closed):
    script = f"{sys.executable} -m ci_evals run {write_suite(tmp_path)} {closed}"
    ran = run_captured(["bash", "-c", script], cwd=tmp_path, env=CLEAN_ENV | env_of(agent))
    assert (ran.returncode, read_results(tmp_path)["score"]) == (0, 100), ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


def test_output_is_escaped_for_encoding_and_colored_for_terminals_or_if_forced(tmp_path, agent):
    """NO_COLOR wins over FORCE_COLOR."""
    suite = write_suite(tmp_path, {"name": "Grüße 🚲"})
    ran = run(tmp_path, agent, suite, PYTHONIOENCODING="ascii")
    assert ("Gr\\xfc" in ran.stdout, "\x1b[" in ran.stdout) == (True, False)
    assert "\x1b[" in run(tmp_path, agent, suite, FORCE_COLOR="1").stdout
    assert "\x1b[" not in run(tmp_path, agent, suite, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_options_are_read_from_environment_unless_empty_or_on_command_line(tmp_path, agent):
    env = {"OUTPUT_DIR": "elsewhere", "LOOPS": "2", "MIN_SCORE": "", "QUIET": "true"}
    env = {f"CI_EVALS_{name}": value for name, value in (env | {"JUNIT": "reports/tests.xml"}).items()}
    (warning,) = run(tmp_path, agent, write_suite(tmp_path), "--loops=3", **env).stderr.splitlines()
    text = "warning: a minimum score of 80 guards nothing: an agent that refuses everything"
    assert warning.startswith(text)
    results = json.loads((tmp_path / "elsewhere/_results.json").read_text())
    assert results["run"]["config"]["loops"] == 3
    assert results["gate"]["checks"][0]["required"] == 80  # an empty variable is unset
    assert (tmp_path / "reports/tests.xml").is_file()
    assert not (tmp_path / "elsewhere/junit.xml").exists()


def test_reports_go_to_temporary_folder_without_verdict_if_output_folder_fails(tmp_path, agent):
    suite = write_suite(tmp_path)
    outputs, report = tmp_path / "outputs", tmp_path / "results/junit.xml"
    reply = agent.answer

    def put_a_folder_there(heard):
        deadline = time.monotonic() + 300
        while not report.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not report.is_dir():
            report.unlink()
            report.mkdir()
        return reply(heard)

    agent.answer = put_a_folder_there
    ran = run(tmp_path, agent, suite, code=3, GITHUB_OUTPUT=str(outputs), TMPDIR=str(tmp_path))
    (rescue,) = tmp_path.glob("ci-evals-*")
    assert (rescue / "_results.json").is_file()
    assert str(rescue) in ran.stderr
    assert f"Reports: {rescue}/report.html" in ran.stdout
    assert f"{rescue.name}/_results.json" in outputs.read_text()
    assert "invalid" in outputs.read_text()


def test_unwritable_action_outputs_cause_only_a_warning(tmp_path, agent):
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        ran = run(tmp_path, agent, write_suite(tmp_path), **{name: str(tmp_path)})
        assert "warning: the action's outputs or step summary are incomplete" in ran.stderr
    assert (tmp_path / "results/_results.json").is_file()


def test_results_record_public_options_changed_digests_and_raw_replies_if_debug(tmp_path, agent):
    env = {"CI_EVALS_AGENT_HEADERS": "x-tenant: tenant-secret-1"}
    suite = write_suite(tmp_path)
    run(tmp_path, agent, suite, "--retries=0", **env)
    first = read_results(tmp_path)["run"]
    options = {"retries": 0, "baseUrl": agent.url, "minScore": 80, "trustSuites": "auto"}
    options |= {"outputDir": "results"}
    assert first["config"] | options == first["config"]
    assert not {"llmKey", "agentKey", "agentHeaders"} & set(first["config"])
    for change, differing in (
        ("--loops=2", {"loops"}),
        ("--agent-id=other", {"agents"}),
        ("--provider=offline", {"models", "userPrompt"}),
    ):
        run(tmp_path, agent, suite, change, **env)
        digests = read_results(tmp_path)["run"]["digests"]
        assert {name for name in digests if digests[name] != first["digests"][name]} == differing
    assert not only_trial(tmp_path)["turns"][0]["raw"]
    run(tmp_path, agent, suite, "--debug", **env)
    assert only_trial(tmp_path)["turns"][0]["raw"]["text"] == "Hello, you said Hello"


def test_environment_values_are_redacted_in_messages_and_file_names(tmp_path, agent):
    suite = write_suite(tmp_path, baseUrl="${AGENT_URL}")
    env = {"AGENT_KEY": agent.key, "AGENT_URL": "https://gw.example/x?token=supersecret-token-1"}
    assert "supersecret" not in run(tmp_path, None, suite, code=2, **env).stderr
    named = write_suite(tmp_path, name="named.json")
    text = (tmp_path / named).read_text().replace('"Stub"', '"S ${TENANT}"')
    (tmp_path / named).write_text(text)
    env = env_of(agent, TENANT="tenant-secret-77")
    for args in (["plan", named], ["validate", named], ["run", named, "--thresholds=suite:S tenant=50"]):
        ran = ci_evals(*args, cwd=tmp_path, env=env)
        assert "tenant-secret-77" not in ran.stdout + ran.stderr
    run(tmp_path, agent, named, TENANT="tenant-secret-77")
    assert read_results(tmp_path)["suites"][0]["folder"].startswith("S")
    assert not [name for name in read_files(tmp_path / "results") if "tenant-secret-77" in name]


def test_suite_cannot_read_environment_in_untrusted_event_unless_trusted(tmp_path, agent):
    suite, event = write_suite(tmp_path), {"GITHUB_EVENT_NAME": "pull_request_target"}
    ran = run(tmp_path, agent, suite, code=2, **event)
    assert "a suite may not read the environment in the event pull_request_target" in ran.stderr
    run(tmp_path, agent, suite, "--trust-suites=always", **event)
    run(tmp_path, agent, write_suite(tmp_path, apiKey=agent.key), **event)


def test_missing_trace_leaves_tool_checks_undecided_and_exits_3(tmp_path):
    with world.agent(lambda heard: world.message("Hi")) as agent:
        run(tmp_path, agent, write_suite(tmp_path), code=3)
    (finding,) = only_trial(tmp_path)["findings"]
    assert (finding["outcome"], finding["cause"]) == ("undecided", "no_evidence")


def test_truncated_texts_do_not_contain_partial_secrets(tmp_path):
    secret = "long-secret-value-abcdefghijklmnop"
    check = {"criterion": "c", "strict": "param_exists", "paramName": "p"}
    with world.agent() as agent:
        suite = write_suite(tmp_path, {"userInfo": {"a": "${VALUE}"}}, {"name": "b", "evaluations": [check]})

        def respond(heard):
            if len(agent.heard) % 2:
                return world.Fault(500, json.dumps({"detail": text}))
            response = {"type": "error", "message": "m", "error": text}
            trace = {"understanding": {"extracted_params": {"p": text}}, "response": response}
            return world.message("ok", trace=trace)

        agent.answer = respond
        for length in range(155, 330, 29):
            text = "x" * length + secret
            ran = run(tmp_path, agent, suite, "--retries=0", "--verbose", code=3, VALUE=secret)
            files = b"".join(read_files(tmp_path / "results").values()).decode()
            assert "long-secret" not in ran.stdout + ran.stderr + files


def test_redaction_keeps_file_names_that_equal_environment_values(tmp_path, agent):
    """Today's date is in the name of the suite's folder, where `report` looks for it."""
    suite = write_suite(tmp_path, {"userInfo": {"today": "${TODAY}", "file": "${FILE}"}})
    run(tmp_path, agent, suite, TODAY=datetime.now(UTC).date().isoformat(), FILE=suite)
    (results,) = read_results(tmp_path)["suites"]
    assert (results["file"], "***" in results["folder"]) == (suite, False)
    assert results["tests"][0]["userInfo"] == {"today": "***", "file": "***"}
    assert ci_evals("report", "results/_results.json", cwd=tmp_path).returncode == 0


def test_blocked_message_fails_one_trial_and_run_continues(tmp_path):
    """A gateway that blocks a message has accepted the key before."""

    def gateway(heard):
        return world.Fault(403, '{"detail": "Request blocked"}') if heard.text == "attack" else answer(heard)

    with world.agent(gateway) as agent:
        tests = [{"name": "a"}, {"name": "b", "turns": [{"user": "attack"}]}, {"name": "c"}]
        options = ("--retries=0", "--max-errors=1", "--min-score=60")
        ran = run(tmp_path, agent, write_suite(tmp_path, *tests), *options)
    assert outcomes(tmp_path) == ["passed", "error", "passed"]
    assert "key" not in ran.stdout


def test_critical_test_without_judge_is_checked_only_by_its_strict_criteria(tmp_path):
    """A strict criterion of a critical test that fails still fails the run."""
    kind, hello = {"criterion": "Is kind"}, {"criterion": "c", "strict": "contains", "text": "Hello"}
    judged = {"name": "Judged", "critical": True, "evaluations": [kind]}
    both = {"name": "Both", "critical": True, "evaluations": [kind, hello]}
    agent = tmp_path / "agent.py"
    agent.write_text("def reply(message, session):\n    return 'Hello there'\n")
    suite = write_suite(tmp_path, judged, both, adapter="python:agent:reply", agentId=None, apiKey=None)
    offline = ("--provider=offline", "--agent-in-process")
    ran = run(tmp_path, None, suite, *offline)
    assert "critical:Judged was not checked: all of its criteria need a model" in ran.stdout
    agent.write_text("def reply(message, session):\n    return 'Go away'\n")
    ran = run(tmp_path, None, suite, *offline, code=1)
    assert "✗ Both (critical test, so this alone fails the run)" in ran.stdout
    ran = run(tmp_path, None, suite, *offline, "--test=Judged", code=3)
    assert "Add strict checks, which need no judge, or choose a provider for the judge." in ran.stdout
