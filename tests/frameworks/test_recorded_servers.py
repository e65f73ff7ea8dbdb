"""Adapters and the real servers that they are for: only `make frameworks` runs these.

With RECORD=1 what the servers send is written to tests/agents/recorded_http/, where other tests read it.
"""

import asyncio
import json
import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import commands
import framework_chats
import pytest
import recorded_http
from frameworks.environments import AGENTS, environment, found, free_port, server

from ci_evals.contract import AgentContract

pytestmark = pytest.mark.frameworks
RECORDED = Path(__file__).parents[1] / "agents/recorded_http"

LANGGRAPH = ["langgraph-cli[inmem]==0.4.40", "langgraph-api==0.16.7", "langgraph==1.2.22"]


@contextmanager
def langgraph(folder, **environ):
    """A LangGraph Server with two graphs; yields its address."""
    program, port = environment(LANGGRAPH) / "bin/langgraph", free_port()
    shutil.copytree(AGENTS / "langgraph_server", folder / "app")
    command = [program, "dev", "--no-browser", "--no-reload", f"--port={port}", "--n-jobs-per-worker=10"]
    with server(command, port, "/ok", cwd=folder / "app", LANGSMITH_TRACING="false", **environ) as url:
        yield url


AG_UI = ["pydantic-ai-slim[ag-ui]==2.68.0", "ag-ui-protocol==1.0.0", "uvicorn==0.54.0"]


@contextmanager
def ag_ui(folder, **environ):
    """An agent of pydantic-ai that speaks AG-UI; yields its address."""
    program, port = environment(AG_UI) / "bin/python", free_port()
    with server([program, AGENTS / "ag_ui_agent.py", port], port, "/ok", cwd=folder, **environ) as url:
        yield url


@contextmanager
def adk(folder, **environ):
    """The server of Google's ADK with an app; yields its address."""
    program, port = environment(["google-adk==2.13.0"]) / "bin/adk", free_port()
    shutil.copytree(AGENTS / "adk_apps", folder / "apps")
    command = [program, "api_server", f"--port={port}", "apps"]
    with server(command, port, "/list-apps", cwd=folder, **environ) as url:
        yield url


A2A = ["a2a-sdk[http-server]==1.3.0", "uvicorn==0.54.0"]
A2A_SERVERS = {
    "a2a": ["1.0", "streaming"], "a2a-blocking": ["1.0"], "a2a-rest": ["rest", "streaming"],
    "a2a-0.3": ["0.3", "streaming"], "a2a-0.3-blocking": ["0.3"],
}  # fmt: skip
A2A_TROUBLES = {"grpc": ["grpc"], "misnamed": ["misnamed"]}


@contextmanager
def a2a(folder, *, name="a2a", **environ):
    """An agent behind A2A; yields its address."""
    port = free_port()
    speaks = (A2A_SERVERS | A2A_TROUBLES)[name]
    command = [environment(A2A) / "bin/python", AGENTS / "a2a_server.py", port, *speaks]
    with server(command, port, "/.well-known/agent-card.json", cwd=folder, **environ) as url:
        yield url


RASA = ["rasa==3.6.21", "setuptools<81"]
"""The last release without a license, for Python 3.10 at most."""


@contextmanager
def rasa(folder, **environ):
    """A Rasa server with its action server; yields its address."""
    programs, port, action_port = environment(RASA, python="python3.10") / "bin", free_port(), free_port()
    shutil.copytree(AGENTS / "rasa_server", folder / "rasa")
    environ |= {
        "RASA_TELEMETRY_ENABLED": "false", "PYTHONWARNINGS": "ignore", "ACTION_PORT": str(action_port),
        "HOME": str(folder),
    }  # fmt: skip
    options = ["--domain=domain.yml", "--data", "nlu.yml", "rules.yml", "--config=config.yml", "--out=models"]
    subprocess.run(
        [programs / "rasa", "train", *options],
        cwd=folder / "rasa",
        env={"PATH": os.environ["PATH"], **environ},
        check=True,
        capture_output=True,
    )
    actions = [programs / "python", "-m", "rasa_sdk", "--actions", "actions", "-p", action_port]
    run = [programs / "rasa", "run", "--enable-api", f"--port={port}", "-i", "127.0.0.1", "-m", "models"]
    run += ["--credentials=credentials.yml", "--endpoints=endpoints.yml"]
    cwd = folder / "rasa"
    with (
        server(actions, action_port, "/health", cwd=cwd, **environ),
        server(run, port, "/status", cwd=cwd, **environ) as url,
    ):
        yield url


LITELLM = """
model_list:
  - model_name: refund-agent
    litellm_params: { model: deepseek/planned, api_base: http://127.0.0.1:PORT/v1, api_key: none }
"""
"""A model that speaks chat completions alone, so that the proxy translates them."""


@contextmanager
def litellm(folder, **environ):
    """The proxy of LiteLLM, which serves the Responses API in front of a model; yields its address."""
    programs, port, model_port = environment(["litellm[proxy]==1.106.2"]) / "bin", free_port(), free_port()
    (folder / "config.yaml").write_text(LITELLM.replace("PORT", str(model_port)))
    environ |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    command = [programs / "litellm", "--config", "config.yaml", "--host=127.0.0.1", f"--port={port}"]
    model = [programs / "python", AGENTS / "chat_model.py", model_port]
    with (
        server(model, model_port, "/", cwd=folder, **environ),
        server(command, port, "/health/liveliness", cwd=folder, **environ) as url,
    ):
        yield f"{url}/v1"


AGENT_FRAMEWORK = ["agent-framework-hosting-responses==1.0.0a261022", "agent-framework-core==1.23.0"]
AGENT_FRAMEWORK += ["fastapi==0.141.1", "uvicorn==0.54.0"]


@contextmanager
def agent_framework(folder, **environ):
    """An agent of Microsoft's Agent Framework, which keeps conversations; yields its address."""
    program, port = environment(AGENT_FRAMEWORK) / "bin/python", free_port()
    command = [program, AGENTS / "agent_framework_server.py", port]
    with server(command, port, "/ok", cwd=folder, **environ) as url:
        yield url


AI_SDK = ["ai@7.0.173", "zod@4.6.7"]


@contextmanager
def ai_sdk(folder, **environ):
    """An agent of Vercel's AI SDK, as its chats are served; yields its address."""
    made, port = environment(AI_SDK, node=True), free_port()
    program = shutil.copy(AGENTS / "ai_sdk_server.mjs", made)  # modules are looked for beside the program
    with server(["node", program, port], port, "/", cwd=folder, **environ) as url:
        yield url


SERVERS = {"langgraph": langgraph, "ag-ui": ag_ui, "adk": adk, "responses": litellm}
SERVERS |= {"responses-agent": agent_framework, "ai-sdk": ai_sdk}
if found("python3.10"):
    SERVERS["rasa"] = rasa
SERVERS |= {name: partial(a2a, name=name) for name in A2A_SERVERS}


def suite(name, url):
    """A suite of one test, with arguments."""
    refund = {"strict": "tool_called", "toolName": "refund", "args": {"order": "A-1", "amount": 42}}
    checks = {
        "amount, once": refund | {"times": 1},
        "in order": {"strict": "tool_sequence", "tools": ["lookup", "refund"]},
        "words": {"strict": "contains", "text": "I refunded 42"},
    }
    if name not in ("responses", "responses-agent", "ai-sdk", *framework_chats.A2A):  # which have no state
        checks["state"] = {"strict": "state", "probe": "agent_state", "path": "$.refunded", "equals": 42}
    test = {
        "name": "Refund", "guidelines": "You want order A-1 refunded.", "userInfo": {"name": "Ida Berg"},
        "turns": [{"user": "Hello"}, {"user": "Refund order A-1"}],
        "evaluations": [{"criterion": name, **check} for name, check in checks.items()],
    }  # fmt: skip
    return {
        "name": "Refunds", "adapter": "a2a" if name in framework_chats.A2A else name, "baseUrl": url,
        "tests": [test], **framework_chats.AGENT_SETTINGS[name],
    }  # fmt: skip


def played(folder, suite, *args):
    """Play a suite of one test; return the exit code and the trial."""
    (folder / "suite.json").write_text(json.dumps(suite))
    done = commands.ci_evals("run", "suite.json", "--provider=offline", *args, cwd=folder)
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    (trial,) = commands.read_results(folder)["suites"][0]["tests"][0]["trials"]
    return done.returncode, trial


def findings(name, url, folder) -> list[dict]:
    """Play the suite with a server; return the findings."""
    _, trial = played(folder, suite(name, url))
    assert trial["error"] is None
    return trial["findings"]


@pytest.mark.parametrize("name", SERVERS)
def test_served_agent_passes_with_calls_and_state(name, tmp_path):
    with SERVERS[name](tmp_path) as url:
        result = findings(name, url, tmp_path)
    assert {each["outcome"] for each in result} == {"passed"}, result


@pytest.mark.parametrize("name", SERVERS)
def test_served_agent_with_a_wrong_amount_fails_for_that_reason(name, tmp_path):
    with SERVERS[name](tmp_path, WRONG="amount") as url:
        result = findings(name, url, tmp_path)
    assert [each["outcome"] for each in result] == ["failed", "passed", "passed", "failed"][: len(result)], (
        result
    )
    assert "amount: 24" in result[0]["reason"]


@pytest.mark.parametrize("name", SERVERS)
def test_recorded_responses_have_the_shapes_of_the_real_server(name, tmp_path):
    """The same requests get answers of the same shapes as those that the normal tests read."""
    with SERVERS[name](tmp_path) as url:
        for talk, say in framework_chats.CONVERSATIONS[name].items():
            with recorded_http.recording_proxy(url) as (proxy, exchanges):
                asyncio.run(say(proxy))
            file = RECORDED / f"{name}-{talk}.json"
            if os.environ.get("RECORD"):
                recorded_http.save(file, exchanges)
            assert recorded_http.shapes(recorded_http.load(file)) == recorded_http.shapes(exchanges)


def lines_said(folder, name, *lines):
    """Say lines to a server of a2a-sdk; return the exit code of the command and the trial."""
    with a2a(folder, name=name) as url:
        whole = suite("a2a", url)
        test = whole["tests"][0] | {"turns": [{"user": line} for line in lines], "maxTurns": len(lines)}
        return played(folder, whole | {"tests": [test]}, "--retries=0")


@pytest.mark.parametrize(("name", "line", "message"), [
    ("a2a", "Refund with key", "waits for an authorization (AUTH_REQUIRED), which no message can give"),
    ("a2a-blocking", "Refund with key", "waits for an authorization (AUTH_REQUIRED), which no message"),
    ("a2a-0.3", "Refund with key", "waits for an authorization (AUTH_REQUIRED), which no message"),
    ("grpc", "Hello", "no interface that can be used: it offers GRPC 1.0; ci-evals needs JSONRPC"),
    ("misnamed", "Hello", "(its card promises A2A 0.3)"),
])  # fmt: skip
def test_server_error_or_wait_for_authorization_errors_the_trial(name, line, message, tmp_path):
    code, trial = lines_said(tmp_path, name, line)
    assert (code, trial["status"], trial["turns"]) == (3, "failed", [])
    assert message in trial["error"]
    assert {finding["outcome"] for finding in trial["findings"]} == {"undecided"}


@pytest.mark.parametrize("name", A2A_SERVERS)
def test_task_that_only_asks_ends_with_the_last_message(name, tmp_path):
    code, trial = lines_said(tmp_path, name, "Refund some order", "some", "some order")
    assert (code, trial["error"]) == (1, None)
    assert [turn["agent"] for turn in trial["turns"]] == ["Which order?"] * 3
    assert {finding["outcome"] for finding in trial["findings"]} == {"failed"}


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    """The address of one server of each kind for all tests of the contract, started when it is needed."""
    with ExitStack() as stack:
        started = {}

        def url(name):
            if name not in started:
                started[name] = stack.enter_context(SERVERS[name](tmp_path_factory.mktemp(name)))
            return started[name]

        yield url


class LangGraphServer(AgentContract):
    """The contract of every agent, held to the adapter and the real server."""

    __test__ = True
    stalls = True
    patience = 10.0
    name = "langgraph"

    @pytest.fixture(autouse=True)
    def serving(self, urls):
        self.url = urls(self.name)

    def played(self, made):
        return made

    def agent(self):
        return framework_chats.agent(self.name, self.url)

    def unreachable(self):
        return framework_chats.agent(self.name, "http://127.0.0.1:1")


class AgUiServer(LangGraphServer):
    name = "ag-ui"


class A2aServer(LangGraphServer):
    name = "a2a"


class AdkServer(LangGraphServer):
    name = "adk"


class ResponsesServer(LangGraphServer):
    name = "responses"


class AgentFrameworkServer(LangGraphServer):
    name = "responses-agent"
