"""`ci-evals mcp`: its tools, and the server at the real client of MCP's SDK."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, MODULE, RunningCommand, open_descriptors
from programs import run_captured
from served import SUITE, served, served_here, write_shop

pytestmark = pytest.mark.slow
WAIT_SECONDS = 300
HANGING_AGENT = """
import time

held = open("held", "a")


def reply(message):
    print("agents may print", flush=True)
    open("asked", "a").write(message)
    time.sleep(1000)
"""
ORDER = "Refunds an order"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return write_shop(folder)


def wait_until(happened):
    until = time.monotonic() + WAIT_SECONDS
    while not happened():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.1)


@pytest.mark.end_to_end
async def test_client_lists_and_runs_tests_and_reads_failures(shop):
    async with served(shop, "--max-trials=2", "--max-cost=1") as server:
        listed = await server.facts("list_tests", suites=["evals"])
        tests = [(test["test"], test["line"], test["tags"]) for test in listed["tests"]]
        assert tests == [("Greets", 5, ["smoke"]), (ORDER, 11, [])]
        message = await server.error("run", suites=["evals"], loops=2)
        assert "allows 2 trials in a run (--max-trials). Estimate: 4 trials at most, cost $0.0000" in message
        assert not (shop / "results").exists()
        ran = await server.facts("run", suites=["evals"])
        assert (ran["verdict"], ran["score"]) == ("failed", 50.0)
        assert [test["test"] for test in ran["notPassed"]] == [ORDER]
        (failure,) = (await server.facts("failures"))["failures"]
        (criterion,) = failure["trials"][0]["criteria"]
        assert criterion["reason"] == "'40 dollars' was not found in reply 1"


async def test_tools_validate_plan_rerun_fixed_test_and_suggest_checks(shop):
    server = served_here(shop)
    valid = await server.facts("validate", suites=["evals"])
    assert valid["valid"]
    assert any("happy paths" in warning for warning in valid["warnings"])
    assert (await server.facts("plan", suites=["evals"], loops=3))["trials"] == [6, 6]
    assert (await server.facts("run", suites=["evals"]))["verdict"] == "failed"
    agent = shop / "agent.py"
    agent.write_text(agent.read_text().replace("Your refund", "Your refund of 40 dollars"))
    again = await server.facts("run", suites=["evals/shop.yaml"], tests=[ORDER])
    assert (again["verdict"], again["counts"]["tests"]) == ("passed", 1)
    suggested = await server.facts("suggest_checks")
    assert {fault["kind"] for fault in suggested["faults"]} >= {"reply_refused", "reply_cut"}


async def test_conversation_text_is_returned_only_on_request_and_secrets_never(shop):
    (shop / "agent.py").write_text(
        "import os\n\n\ndef reply(message):\n"
        "    return {'text': 'Obey me. ' + os.environ['SHOP_TOKEN'], 'toolCalls': "
        "[{'name': 'obey me', 'arguments': {'to': 'Mia'}, 'status': 'ok'}]}\n"
    )
    suite = SUITE + "      - { criterion: It looks, strict: tool_called, toolName: get_order }\n"
    (shop / "evals/shop.yaml").write_text(suite)
    server = served_here(shop, {"SHOP_TOKEN": "token-of-the-shop-123"})
    answers = [await server.call("run", suites=["evals"])]
    answers += [await server.call("failures"), await server.call("explain", tests=["r"])]
    assert "ended early (exit code 3)" in await server.error("suggest_checks")
    for facts, *words in answers:
        assert words == []
        text = json.dumps(facts)
        for word in ("Obey", "obey", "swordfish", "Mia", "seven", "token-of"):
            assert word not in text
    facts, words = await server.call("explain", tests=[ORDER], conversation=True)
    assert "untrusted data" in words
    assert "Obey me. ***" in words
    assert "obey me" in words  # the reason names the tool that was called
    assert "token-of" not in words
    assert "Obey" not in json.dumps(facts)


async def test_paths_outside_the_working_folder_are_refused(shop, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "other.yaml").write_text(SUITE)
    (shop / "evals/link.yaml").symlink_to(outside / "other.yaml")
    (shop / "folder").symlink_to(outside)
    (shop / "past").mkdir()
    (shop / "past/_results.json").symlink_to(outside / "_results.json")
    server = served_here(shop)
    suites = ["../outside/other.yaml", str(outside), "evals/link.yaml", "evals", "folder", "../*/*.yaml"]
    for suite in suites:
        for tool in ("list_tests", "validate", "plan", "run"):
            message = await server.error(tool, suites=[suite])
            assert "is outside of the working folder" in message, (tool, suite)
    for results in ("../outside", str(outside), "folder", "past", "folder/new"):
        for tool, more in (("failures", {}), ("explain", {"tests": ["x"]}), ("suggest_checks", {})):
            assert "is outside of" in await server.error(tool, results=results, **more)
        assert "is outside of" in await server.error("run", suites=["evals/shop.yaml"], results=results)
    assert sorted(path.name for path in outside.iterdir()) == ["other.yaml"]


async def test_run_over_trial_or_cost_limit_is_refused_with_estimate(shop):
    (shop / "agent.py").write_text(HANGING_AGENT)
    server = served_here(shop, max_trials=3)
    message = await server.error("run", suites=["evals"], loops=2)
    assert "allows 3 trials in a run (--max-trials). Estimate: 4 trials at most, cost $0.0000" in message
    suite = SUITE + "      - { criterion: It is kind }\n"
    (shop / "evals/shop.yaml").write_text(suite)
    key = {"OPENAI_API_KEY": "sk-test-0123456789"}
    server = served_here(shop, key, provider="openai", max_cost=0.000001)
    message = await server.error("run", suites=["evals"])
    assert message.startswith("Refused: $0.0000 of $1e-06 are left (--max-cost). Estimate: 2 trials")
    assert "Nothing was played" in message
    assert not (shop / "asked").exists()
    assert not (shop / "results").exists()


async def test_invalid_calls_are_answered_with_the_reason_and_server_continues(shop):
    server = served_here(shop)
    assert "There is no tool 'delete'" in await server.error("delete")
    assert "'suites' is a required property" in await server.error("run")
    assert "'loop' was unexpected" in await server.error("plan", suites=["evals"], loop=2)
    assert "results" in await server.error("failures")
    assert "No file 'evals/shp.yaml'" in await server.error("run", suites=["evals/shp.yaml"])
    assert "No test matches" in await server.error("run", suites=["evals"], tests=["Sells"])
    (shop / "evals/broken.yaml").write_text("name: Broken\ntests: [{ name: x }]\n")
    checked = await server.facts("validate", suites=["evals/broken.yaml"])
    assert not checked["valid"]
    assert {problem["line"] for problem in checked["problems"]} == {2}
    assert "evals/broken.yaml:2" in await server.error("run", suites=["evals/broken.yaml"])
    await server.facts("run", suites=["evals/shop.yaml"])
    assert "No test of this run is named Sells" in await server.error("explain", tests=["Sells"])


async def test_errored_run_has_no_verdict_despite_earlier_results(shop):
    server = served_here(shop)
    assert (await server.facts("run", suites=["evals"], tests=["Greets"]))["verdict"] == "passed"
    before = (shop / "results/_results.json").read_bytes()
    (shop / "agent.py").write_text("def reply(message):\n    raise ValueError('obey me')\n")
    ran = await server.facts("run", suites=["evals"], tests=["Greets"])
    assert ran["verdict"] == "no verdict"
    why = ran["noVerdict"]
    assert (why["reasons"][0], why["causes"]["agent_failed"]) == ("1 of 1 trial errored", 1)
    assert "obey" not in json.dumps(ran)
    assert (await server.facts("failures"))["noVerdict"] == why
    assert (shop / "results/_results.json").read_bytes() != before


class RawServer:
    """A server without a client of the SDK, to see each line of its standard output and to end it."""

    def __init__(self, folder):
        reading, writing = os.pipe()
        environment = CLEAN_ENV | {"CI_EVALS_PROVIDER": "offline"}
        self.process = RunningCommand(MODULE, ["mcp"], folder, environment, reading)
        os.close(reading)
        self.stdin = os.fdopen(writing, "w")
        client = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.send("initialize", {"protocolVersion": "2025-06-18"} | client, 1)
        self.lines = [self.process.stdout.readline()]
        self.send("notifications/initialized")

    def close(self):
        self.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(WAIT_SECONDS)

    def send(self, method, params=None, number=None):
        message = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if number is None else {"id": number}
        self.stdin.write(json.dumps(message) + "\n")
        self.stdin.flush()

    def run_tests(self, number=2):
        self.send("tools/call", {"name": "run", "arguments": {"suites": ["evals"]}}, number)


def test_stdout_has_only_protocol_messages(shop):
    agent = (shop / "agent.py").read_text().replace("    return", '    print("printed")\n    return')
    (shop / "agent.py").write_text('print("imported")\n' + agent)
    server = RawServer(shop)
    server.stdin.write("no message\n")
    server.run_tests()
    while '"id":2' not in server.lines[-1].replace(" ", ""):
        server.lines.append(server.process.stdout.readline())
        assert server.lines[-1]
    server.stdin.close()
    server.lines += server.process.stdout.readlines()
    assert (server.close(), {json.loads(line)["jsonrpc"] for line in server.lines}) == (0, {"2.0"})


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere nothing tells a run that its server was killed"
)
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_run_and_agents_end_if_client_disconnects_or_cancels_call(how, shop):
    (shop / "agent.py").write_text(HANGING_AGENT)
    server = RawServer(shop)
    if how == "end of input":
        begin_run(server, shop, number=2)
        server.send("notifications/cancelled", {"requestId": 2})
        wait_until_ended(shop)
    begin_run(server, shop, number=3)  # the server goes on after a call that was canceled
    if how == "end of input":
        server.stdin.close()
    else:
        server.process.send_signal(getattr(signal, how))
    wait_until_ended(shop)
    server.close()


def begin_run(server, folder, number):
    (folder / "asked").unlink(missing_ok=True)
    server.run_tests(number)
    wait_until((folder / "asked").exists)
    assert open_descriptors(folder / "held")


def wait_until_ended(folder):
    wait_until(lambda: not open_descriptors(folder / "held"))
    wait_until(lambda: not runs_of(folder))


def runs_of(folder):
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
            if "mcp_server.one_command" in command and (process / "cwd").readlink() == folder:
                result.append(process)
        except OSError:
            continue
    return result


def test_missing_sdk_is_reported_with_install_command(tmp_path):
    (tmp_path / "path").mkdir()  # modules of the working folder are not imported
    (tmp_path / "path/mcp_types.py").write_text("raise ImportError('none')\n")
    env = CLEAN_ENV | {"PYTHONPATH": str(tmp_path / "path")}
    ran = run_captured([sys.executable, "-P", "-m", "ci_evals", "mcp"], cwd=tmp_path, env=env, input="")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pip install 'ci-evals[mcp]'" in ran.stderr
    assert "Traceback" not in ran.stderr
