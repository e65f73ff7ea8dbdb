"""The adapter `http` and servers of starlette that stream: only `make frameworks` runs these."""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import commands
import pytest
import world
from doc_pages import ROOT, code, table
from frameworks.environments import AGENTS, environment, free_port, server

from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.suite import Test
from ci_evals.extensions.http.agent import HttpAgent

pytestmark = pytest.mark.frameworks

PACKAGES = ["starlette==1.10.0", "uvicorn==0.54.0", "websockets==17.4"]
STREAMS = ("sse", "ndjson", "websocket")
REFUND = {"strict": "tool_called", "toolName": "refund", "args": {"order": "A-1", "amount": 42}}
TEST = Test(
    name="Refund", guidelines="You want a refund.", turns=({"user": "Hi"},),
    evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
MOST_MB = 60
PAIRS, MESSAGES, EVENTS = 1, 5, 64
MOST_CALLS = {"sse": 85, "ndjson": 75, "websocket": 70}
"""For each event, where events come one by one, as from a server on a busy machine: 72, 61 and 57 were
counted. If several come at once, they cost less."""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of the server."""
    port, folder = free_port(), tmp_path_factory.mktemp("streams")
    command = [environment(PACKAGES) / "bin/python", AGENTS / "stream_server.py", port]
    with server(command, port, "/ok", cwd=folder) as address:
        yield address


def options(path):
    """How the agent at a path is asked."""
    common = {
        "send": {"path": f"/{path}", "body": {"say": "{{message}}", "chat": "{{session}}"}},
        "reply": {
            "text": "$[?@.type == 'text'].delta", "toolCalls": "$[?@.type == 'call']",
            "error": "$[?@.type == 'error'].message", "escalated": "$[?@.type == 'end'].person",
        },
    }  # fmt: skip
    return common if path == "whole" else common | {"stream": path, "until": "$[?@.type == 'end']"}


def run(folder, url, path, *lines, timeout=120):
    """Play a suite; return the command's end, its trials and its seconds of processor."""
    return play(folder, url, options(path), *lines, timeout=timeout)


def play(folder, url, options, *lines, timeout=120):
    """Play a suite with these options of the adapter; return the same."""
    turns = [{"user": line, "timeout": timeout} for line in lines]
    test = {
        "name": "Refund", "guidelines": "You want order A-1 refunded.", "turns": turns,
        "maxTurns": len(turns),
        "evaluations": [
            {"criterion": "refunds", **REFUND},
            {"criterion": "deletes nothing", "strict": "tool_not_used", "toolName": "delete"},
        ],
    }  # fmt: skip
    agent = {"adapter": "http", "baseUrl": url, "adapterOptions": options}
    (folder / "suite.json").write_text(json.dumps({"name": "Streams", "tests": [test], **agent}))
    command = [sys.executable, "-m", "ci_evals", "run", "suite.json", "--provider=offline", "--retries=0"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=commands.CLEAN_ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert "Traceback" not in output, output
    results = json.loads((folder / "results/_results.json").read_text())
    return process.returncode, results["suites"][0]["tests"][0]["trials"], usage


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("line", "code"), [("Refund A-1", 0), ("person", 1)])
def test_calls_of_a_streamed_reply_are_checked(stream, line, code, url, tmp_path):
    ended, (trial,), _ = run(tmp_path, url, stream, "Hello", line)
    assert (ended, trial["findings"][0]["outcome"]) == (code, "failed" if code else "passed")
    assert trial["findings"][1]["outcome"] == "passed"
    assert [turn["agent"] for turn in trial["turns"]] == ["1: Hello", f"2: {line}"]
    assert 0 < trial["turns"][0]["firstTokenSeconds"] <= trial["turns"][0]["latencySeconds"]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("line", "message"), [
    ("broken", r"sent an event that cannot be read \(not JSON\): {'type': 'text'}"),
    ("cut", "broke|before the answer was complete"),
    ("endless", "its stream did not end, after |sent more than 20,000 events"),
    ("stall", "did not answer within 2 s"),
])  # fmt: skip
def test_unusable_stream_errors_the_trial_in_bounded_time_and_memory(stream, line, message, url, tmp_path):
    timeout = 2 if line in {"stall", "endless"} else 120
    code, (trial,), usage = run(tmp_path, url, stream, line, timeout=timeout)
    assert (code, trial["status"], trial["turns"]) == (3, "failed", [])
    assert trial["error"]
    assert re.search(message, trial["error"])
    assert len(trial["error"]) < 400
    assert {finding["outcome"] for finding in trial["findings"]} == {"undecided"}
    assert trial["durationSeconds"] < 100
    _, _, usual = run(tmp_path, url, stream, "Hello")
    assert (usage.ru_maxrss - usual.ru_maxrss) / 1024 < MOST_MB


async def conversations(url, path, *, user_seconds, pairs):
    """Have conversations with the adapter alone, two at a time."""

    async def conversation():
        agent = HttpAgent(AgentSettings(base_url=url, options=options(path)), limiter=world.limiter())
        session = await agent.open_session(TEST)
        for _ in range(MESSAGES):
            await asyncio.sleep(user_seconds)
            await agent.send_message(session, "long", timeout=120)
        await agent.close(session)

    for _ in range(pairs):
        await asyncio.gather(conversation(), conversation())


def calls(url, path, user_seconds=0.0):
    """Return the calls, into Python and C, that the adapter makes for two conversations at a time."""
    made = itertools.count()
    sys.setprofile(lambda _frame, event, _: next(made) if event in ("call", "c_call") else None)
    try:
        asyncio.run(conversations(url, path, user_seconds=user_seconds, pairs=PAIRS))
    finally:
        sys.setprofile(None)
    return next(made)


@pytest.mark.parametrize("user_seconds", [0.0, 0.15], ids=["at once", "as a model"])
@pytest.mark.parametrize("stream", STREAMS)
def test_streamed_event_takes_bounded_number_of_function_calls(stream, user_seconds, url):
    """Of each of 64 events; whether or not a WebSocket waits for silence."""
    calls(url, "whole"), calls(url, stream)  # they import what the others need
    added = calls(url, stream, user_seconds) - calls(url, "whole", user_seconds)
    each = added / (2 * PAIRS * MESSAGES * EVENTS)
    print(f"{stream}: {each:.0f} calls for each event")
    assert each < MOST_CALLS[stream]


PAGE = (ROOT / "docs/http-streams.md").read_text()
LANGSERVE = ["langserve==0.3.3", "langchain-core==1.8.3", "sse-starlette==3.7.0", "fastapi==0.165.0"]
LANGSERVE += ["uvicorn==0.54.0"]
PATHS = {
    "sse-starlette": "/sse-starlette", "FastAPI": "/fastapi", "LangServe": "/langserve/stream",
    "websockets": "/",
}  # fmt: skip


def of_page(name):
    """Options for a server as its row on the page has them."""
    (row,) = (row for row in table("server", PAGE) if row[0].startswith(name))
    stream, call, until = (code(cell) for cell in row[1:])
    say = {"say": "{{message}}"}
    return {
        "stream": stream,
        "until": until,
        "send": {"path": PATHS[name], "body": {"input": say} if name == "LangServe" else say},
        "reply": {"text": f"{call.replace('call', 'text')}.delta", "toolCalls": call},
    }


@contextmanager
def other(folder, *, name, **environ):
    """An agent of another server; yields its address and its options."""
    port, kinds = free_port(), ["websockets"] if name == "websockets" else []
    made = environment(PACKAGES if kinds else LANGSERVE)
    command = [made / "bin/python", AGENTS / "other_streams.py", port, *kinds]
    with server(command, port, "/ok", cwd=folder, **environ) as url:
        yield url, of_page(name)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize(("environ", "exit_code"), [({}, 0), ({"WRONG": "amount"}, 1)])
def test_options_of_the_page_work_with_other_stream_servers(name, environ, exit_code, tmp_path):
    with other(tmp_path, name=name, **environ) as (url, options):
        ended, (trial,), _ = play(tmp_path, url, options, "Hello", "Refund A-1")
    assert trial["error"] is None
    refunds, deletes = trial["findings"]
    assert (ended, refunds["outcome"]) == (exit_code, "failed" if exit_code else "passed")
    assert deletes["outcome"] == "passed"
    assert ("amount: 24" in refunds["reason"]) is bool(exit_code)
    assert trial["turns"][0]["agent"] == "You said: Hello"
    assert trial["turns"][0]["firstTokenSeconds"] > 0


class SseServer(AgentContract):
    """The contract of every agent, held to the adapter and the real server."""

    __test__ = True
    stalls = True
    patience = 10.0
    stream = "sse"

    @pytest.fixture(autouse=True)
    def serving(self, url):
        self.url = url

    def played(self, made):
        return made

    def agent(self):
        return self._at(self.url)

    def unreachable(self):
        return self._at("http://127.0.0.1:1")

    def _at(self, url):
        return HttpAgent(AgentSettings(base_url=url, options=options(self.stream)), limiter=world.limiter())


class JsonLinesServer(SseServer):
    stream = "ndjson"


class WebSocketServer(SseServer):
    stream = "websocket"
