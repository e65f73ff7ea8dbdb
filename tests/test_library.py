"""The main job as a library."""

import json
import re
import sys

import fakes
import pytest
import report_page
import world
from commands import ci_evals as run_program
from commands import write_suite
from doc_pages import ROOT, blocks
from each_row import each_row
from page_files import free_port
from programs import run_captured

import ci_evals
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.prices import Price, PriceTable
from ci_evals.gate.policy import Policy
from ci_evals.ports import Completion
from ci_evals.runner import Participants
from ci_evals.support import dataclass_json


async def test_bundled_suite_passes_offline():
    suite = ci_evals.load_suite("demo:hr")
    adapter = ci_evals.create_aui_adapter(provider="offline")
    results = await ci_evals.run_suite(adapter, suite, parallel=4, tag="happy-path")
    assert (results.score, results.gate.passed) == (100, True)
    assert "HR assistant" in ci_evals.format_suite_result(results)


async def test_adapter_key_and_address_override_those_of_suite(tmp_path, monkeypatch):
    with world.agent() as agent, world.llm(lambda asked: fakes.judge_answer()) as models:
        monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
        path = write_suite(tmp_path, {"evaluations": [{"criterion": "polite"}]}, apiKey="another-key")
        suite = ci_evals.load_suite(tmp_path / path)
        adapter = ci_evals.create_aui_adapter(agent.key, models.key, base_url=agent.url)
        results = await ci_evals.run_suite(adapter, suite, judge_check="off")
    assert results.gate.passed
    assert world.AGENT_KEY not in dataclass_json.to_json(results)
    with world.agent() as agent:  # in place of the embedded demo agent
        adapter = ci_evals.create_aui_adapter(agent.key, provider="offline", base_url=agent.url)
        results = await ci_evals.run_suite(adapter, ci_evals.load_suite("demo:hr"), test="vacation")
    assert agent.tasks
    assert results.suites[0].adapter == "aui"


async def test_unexpected_exception_in_run_suite_is_raised_unchanged(tmp_path):
    suite = ci_evals.load_suite(tmp_path / write_suite(tmp_path, apiKey="key-123456"))
    with pytest.raises(ZeroDivisionError):
        await ci_evals.run_suite(Participants(fakes.ScriptedAgent([ZeroDivisionError()])), suite)


async def test_any_object_with_port_methods_can_be_the_agent(tmp_path):
    """Its suite needs neither id nor key of an agent."""
    suite = ci_evals.load_suite(tmp_path / write_suite(tmp_path, apiKey=None, agentId=None))
    agent = fakes.ScriptedAgent(["Hello"])
    results = await ci_evals.run_suite(Participants(agent), suite, loops=2, policy=Policy(min_score=100))
    assert [trial.status for trial in results.suites[0].tests[0].trials] == ["completed", "completed"]
    assert len(agent.sessions) == 2


def test_run_suite_sync_needs_no_event_loop(tmp_path):
    suite = ci_evals.load_suite("demo:retail")
    results = ci_evals.run_suite_sync(ci_evals.create_aui_adapter(provider="offline"), suite, test="parcel")
    assert results.counts.tests == 1


def offline(**fields):
    return ci_evals.create_adapter(provider="offline", **fields)


def run(adapter=None, suite="demo:hr", **options):
    return ci_evals.run_suite_sync(adapter or offline(), suite, **options)


NO_ADAPTER = "'opnai' is not an adapter; did you mean 'openai'"
UNKNOWN_PROVIDER = "unknown provider 'opnai'; available: openai, anthropic"


@each_row(
    ("mistake", "error", "message"),
    [
        (lambda: ci_evals.load_suite("nowhere.json"), UsageError, "No file"),
        (lambda: run(suite=GREETS | {"maxTurns": 0}), SuiteError, "maxTurns"),
        (lambda: run(ci_evals.create_aui_adapter("key")), UsageError, "no key for the LLM"),
        (lambda: ci_evals.create_aui_adapter(provider="opnai"), UsageError, UNKNOWN_PROVIDER),
        (lambda: run(loops=0), UsageError, "at least"),
        (lambda: run(parallel=0), UsageError, "at least"),
        (lambda: run(retries=-1), UsageError, "at least"),
        (lambda: run(42), UsageError, "int"),
        (lambda: run(rounds=(2, 3), loops=2), UsageError, "omit loops"),
        (lambda: run(rounds=(3, 2)), UsageError, "ascending"),
        (lambda: run(rounds=(0, 2)), UsageError, "ascending"),
        (lambda: run(offline(adapter="opnai")), UsageError, NO_ADAPTER),
        (lambda: run(offline(adapter="http", adapter_options={"send": {}})), SuiteError, "reply: is missing"),
    ],
)
def test_invalid_library_call_raises_usage_or_suite_error(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake()


def judged_suite(tmp_path):
    tests = [{"name": name, "evaluations": [{"criterion": "polite"}]} for name in "ab"]
    return ci_evals.load_suite(tmp_path / write_suite(tmp_path, *tests, apiKey="key-123456"))


async def run_judged(tmp_path, judge: fakes.ScriptedLLM, **options):
    agent = fakes.ScriptedAgent(["Hello"])
    options = {"judge_check": "off"} | options
    return await ci_evals.run_suite(Participants(agent, judge_llm=judge), judged_suite(tmp_path), **options)


def answering(verdict: str, model: str) -> fakes.ScriptedLLM:
    return fakes.ScriptedLLM([fakes.judge_answer(verdict)], model=model)


async def test_lenient_judge_exits_3_or_only_warns_with_judge_check_warn(tmp_path):
    judge = answering("pass", "one")
    results = await run_judged(tmp_path, judge, judge_check="auto")
    assert (results.gate.exit_code, results.judge_check.passed, len(judge.prompts)) == (3, False, 18)
    assert (await run_judged(tmp_path, judge)).judge_check is None
    warned = await run_judged(tmp_path, judge, judge_check="warn")
    assert warned.gate.exit_code == 0
    assert any("judge check: one answered 6 of 16" in warning for warning in warned.run.warnings)


async def test_runs_are_comparable_only_with_same_judge_model(tmp_path):
    base = await run_judged(tmp_path, answering("pass", "one"))
    same = await run_judged(tmp_path, answering("fail", "one"), baseline=base)
    assert (same.comparison.comparable, same.comparison.delta) == (True, -100)
    other = (await run_judged(tmp_path, answering("fail", "two"), baseline=base)).comparison
    assert (other.comparable, other.reasons) == (False, ("the judge changed from one to two",))


async def test_max_cost_without_price_of_judge_is_rejected_before_run(tmp_path):
    judge = answering("pass", "nobody")
    with pytest.raises(UsageError, match="no price for nobody"):
        await run_judged(tmp_path, judge, policy=Policy(max_cost=5))
    assert not judge.prompts


async def test_run_that_spends_max_cost_before_end_of_rounds_has_no_verdict(tmp_path):
    prices = PriceTable(models={"one": Price(input=1000, output=0)})
    judge = fakes.ScriptedLLM([Completion(fakes.judge_answer("pass"), 10, 0)], model="one")
    policy = Policy(max_cost=0.05, min_score=100)
    results = await run_judged(tmp_path, judge, policy=policy, prices=prices, rounds=(2, 7))
    assert (results.gate.passed, results.gate.exit_code) == (False, 3)
    assert "max-cost" in results.run.stopped_because


async def test_rounds_with_history_end_at_first_look():
    adapter, one = offline(), {"test": "vacation", "parallel": 4}
    earlier = [await ci_evals.run_suite(adapter, "demo:hr", loops=3, **one) for _ in range(3)]
    policy = Policy(min_score=0, regression=Regression.SIGNIFICANT)
    more = {"policy": policy, "baseline": earlier[1], "history": earlier, "rounds": (2, 3, 5, 7)}
    played = await ci_evals.run_suite(adapter, "demo:hr", **one, **more)
    assert (played.run.rounds.looks, played.run.rounds.played, played.gate.passed) == ((2, 3, 5, 7), 2, True)
    assert (played.comparison.history.runs, played.comparison.baseline.run_id) == (3, earlier[1].run.id)


async def test_suite_is_accepted_by_name_and_as_data_and_validated_with_paths():
    by_name = await ci_evals.run_suite(offline(), "demo:hr", test="colleague")
    data = json.loads((ci_evals.demo_suites_path() / "hr.json").read_text())
    by_data = await ci_evals.run_suite(offline(), data, test="colleague")
    assert by_name.score == by_data.score == 100
    assert ci_evals.quack_suites_path().name == "quack"
    assert ci_evals.suite_schema()["properties"]["tests"]
    assert ci_evals.validate_suite("demo:retail") == ()
    problems = ci_evals.validate_suite({"name": "S", "agentId": "a", "tests": [{"name": "t", "turns": []}]})
    assert {problem.path for problem in problems} >= {"tests[0].turns", "tests[0].guidelines"}


SERVER = """
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"Hello"')

print("key:", os.environ["AGENT_KEY"], flush=True)
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
"""
GREETS = {
    "name": "Greets", "adapter": "http",
    "adapterOptions": {"send": {"body": "{{message}}"}, "reply": {"text": "$"}},
    "tests": [{
        "name": "Greets", "guidelines": "You say hello.", "turns": [{"user": "Hello"}],
        "evaluations": [{"criterion": "It greets", "strict": "contains", "text": "Hello"}],
    }],
}  # fmt: skip


@pytest.fixture
def port(monkeypatch):
    number = free_port()
    monkeypatch.setenv("PORT", str(number))
    return number


async def test_agent_is_started_and_stopped_and_its_log_has_no_key(tmp_path, port):
    (tmp_path / "server.py").write_text(SERVER)
    log = tmp_path / "agent.log"
    url, command = f"http://127.0.0.1:{port}", f"{sys.executable} {tmp_path / 'server.py'}"
    started = {"start": command, "wait_for": port, "agent_log": log}
    adapter = offline(base_url=url, agent_key="agent-key-7c1e90b2", **started)
    for _ in range(2):  # the port is free again
        results = await ci_evals.run_suite(adapter, GREETS)
        assert results.gate.passed, results.run.stopped_because
    assert log.read_text().startswith("key: ***\n")


async def test_agent_that_does_not_start_gives_no_verdict(port):
    url = f"http://127.0.0.1:{port}"
    dead = offline(base_url=url, start="echo no model; exit 7")
    results = await ci_evals.run_suite(dead, GREETS)
    assert results.gate.exit_code == 3
    assert "ended with exit code 7 before anything answered" in results.run.stopped_because
    assert "(its output ends: no model)" in results.run.stopped_because


async def test_malformed_wait_for_is_rejected(port):
    with pytest.raises(UsageError, match="`wait_for=`: '8o80' is neither"):
        await ci_evals.run_suite(offline(base_url=f"http://127.0.0.1:{port}", wait_for="8o80"), GREETS)


async def test_write_reports_and_format_functions_return_all_reports(tmp_path):
    results = await ci_evals.run_suite(offline(), "demo:hr", test="colleague")
    written = ci_evals.write_reports(results, tmp_path)
    assert {file.name for file in written} >= {"_results.json", "summary.md", "junit.xml", "report.html"}
    assert all(file.is_file() for file in written)
    assert ci_evals.load_results(tmp_path).run.id == results.run.id
    name = results.suites[0].tests[0].name
    assert name in ci_evals.format_test_result(results, name)
    assert ci_evals.format_test_result(results, results.suites[0].tests[0]).startswith("#")
    with pytest.raises(UsageError, match="no test of the run is named 'x'"):
        ci_evals.format_test_result(results, "x")


async def test_report_page_embeds_conversations_of_baseline(tmp_path):
    adapter = offline()
    results = await ci_evals.run_suite(adapter, "demo:hr", test="colleague")
    sizes = [
        sum(len(text) for text in report_page.embedded_data(file.read_text()).values())
        for baseline in (None, results)
        for file in ci_evals.write_reports(results, tmp_path, baseline=baseline)
        if file.name == "report.html"
    ]
    assert sizes[1] > 1.6 * sizes[0]
    compared = await ci_evals.run_suite(adapter, "demo:hr", test="colleague", baseline=results)
    with pytest.raises(UsageError, match="not the run that the results were compared with"):
        ci_evals.write_reports(compared, tmp_path / "other", baseline=compared)
    assert not (tmp_path / "other").exists()
    ci_evals.write_reports(compared, tmp_path / "other", baseline=results)


TYPED = """
from ci_evals import Integration, Policy, Reply, Test, PlannedTurn


class Mine:
    async def open_session(self, test: Test) -> str:
        return test.name

    async def send_message(self, session: str, text: str, *, timeout: float) -> Reply:
        called = (Integration(code="crm"),)
        return Reply(agent=f"{session}: {text}", latency_seconds=0.1, integrations=called)

    async def close(self, session: str) -> None:
        pass


print(Mine(), Policy(min_score=90), PlannedTurn(user="Hello"))
"""


@pytest.mark.slow
def test_mypy_strict_accepts_user_code_without_plugin(tmp_path):
    (tmp_path / "mine.py").write_text(TYPED)
    cache = f"--cache-dir={ROOT / '.mypy_cache/user_code'}"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", cache, "mine.py"]
    done = run_captured(command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


COPIES = """\
from ci_evals.domain.transcript import Integration, Reply, ToolCall

def changed(reply: Reply, call: ToolCall | Integration) -> None:
    reply.copy_with(agent="Hello", tool_calls=())
    call.copy_with(arguments=None)
    reply.copy_with(agnet="Hello")
    reply.copy_with(agent=None)
    call.copy_with(tools=())
    reply.model_copy(update={"agent": "Hello"})
    reply.model_copy(deep=True)
    Reply(agent="Hello", latency_seconds=1, agnet="Hello")
"""
"""Lines 6, 7, 8, 9 and 11 are wrong: a field is unknown or of another type, or cannot be seen."""


@pytest.mark.slow
def test_mypy_plugin_rejects_unknown_or_mistyped_field_in_copy(tmp_path):
    source = tmp_path / "copies.py"
    source.write_text(COPIES)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(source)]  # by the cache of `make lint`
    checked = run_captured(command, cwd=ROOT, timeout=300)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    lines = {int(line.removeprefix(str(source)).split(":")[1]) for line in errors}
    assert lines == {6, 7, 8, 9, 11}, checked


@pytest.mark.slow
def test_library_page_examples_print_what_their_comments_say(tmp_path):
    """All but the one that needs keys."""
    examples = blocks("python", (ROOT / "docs/library.md").read_text())
    needing_keys = [example for example in examples if "# needs keys" in example]
    assert len(needing_keys) == 1
    for example in examples:
        if example not in needing_keys:
            (tmp_path / "example.py").write_text(example)
            done = run_program(cwd=tmp_path, program=str(tmp_path / "example.py"))
            assert done.returncode == 0, done.stderr
            for text in re.findall(r"\)  # (.+)$", example, flags=re.MULTILINE):
                assert text in done.stdout


class FourMethods:
    """An adapter as `@aui.io/evals` has it, in Python's spelling: agent and models in one object."""

    def __init__(self):
        self.sessions, self.judged = [], []

    async def spawn_session(self, agent_id, api_key, label, model=None):
        self.sessions.append((agent_id, api_key, label, model))
        return f"session-{len(self.sessions)}"

    async def send_message(self, session_key, message, user_info=None, timeout=None):  # noqa: ASYNC109
        text, trace = f"{user_info['name']}, I heard {message!r}.", {"response": {"type": "answer"}}
        return {"text": text, "executed_workflows": ["GREETING"], "trace_info": trace}

    async def call_judge(self, prompt, model=None):
        self.judged.append(prompt)
        return fakes.judge_answer("pass")

    def generate_user_message(self, prompt, model=None):
        return "Thank you. ###STOP###"


async def test_object_with_four_methods_is_agent_user_and_judge(tmp_path):
    evaluations = [
        {"criterion": "greets", "strict": "tool_used", "toolName": "GREETING"},
        {"criterion": "no error", "strict": "not_escalated_due_to_error"},
        {"criterion": "polite"},
    ]
    test = {"userInfo": {"name": "Ida"}, "turns": [{"user": "Hello"}, {"user": "auto"}]}
    path = write_suite(tmp_path, test | {"evaluations": evaluations}, agentId="a1", apiKey="key-123456")
    adapter = FourMethods()
    results = await ci_evals.run_suite(adapter, tmp_path / path)
    (trial,) = results.suites[0].tests[0].trials
    assert (results.score, trial.status, trial.closing_remark) == (100, "stopped", "Thank you.")
    assert (trial.turns[0].agent, adapter.sessions[0][:2]) == ("Ida, I heard 'Hello'.", ("a1", "key-123456"))
    (prompt,) = adapter.judged
    assert "polite" in prompt
    assert "key-123456" not in dataclass_json.to_json(results)


@pytest.mark.parametrize(
    ("own_judge", "options", "checked"),
    [
        (False, {}, "off"),
        (False, {"judge_check": "off"}, "off"),
        (False, {"judge_check": "warn"}, "warn"),
        (True, {}, "auto"),
    ],
)
async def test_judge_check_runs_for_own_judge_and_for_call_judge_on_request(
    tmp_path, own_judge, options, checked
):
    """`call_judge` may know the suite's criteria alone."""
    test = {"turns": [{"user": "Hello"}], "evaluations": [{"criterion": "polite"}]}
    path = write_suite(tmp_path, test, agentId="a1", apiKey="key-123456")
    judge = fakes.ScriptedLLM(lambda *_: fakes.judge_answer())
    adapter = Participants(fakes.ScriptedAgent(["Hello"]), judge_llm=judge) if own_judge else FourMethods()
    results = await ci_evals.run_suite(adapter, tmp_path / path, **options)
    assert results.run.config["judgeCheck"] == checked
    assert bool(results.judge_checks) is (checked != "off")
    asked = judge.prompts if own_judge else adapter.judged
    assert (len(asked) > 1) is (checked != "off")
