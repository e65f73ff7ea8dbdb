"""The contract of agents, checked with fakes and with all real adapters."""

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agent_cases
import pytest
import world
from every_evaluation import EVALUATIONS
from fakes import ScriptedAgent

from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.python.hosting.host import Host
from ci_evals.agents.python.loading import load_plugin, load_python
from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Agent
from ci_evals.support.redaction import Redactor

MODULE = """
import asyncio, threading
from ci_evals import AgentAccessError

def gone(message):
    raise ConnectionError("refused")

async def locked(message):
    raise AgentAccessError("the agent refused the key")

def reply(message, session):
    if message == "fail":
        raise KeyError("order")
    if message == "stall":
        threading.Event().wait(10)
    number = len(session.history) // 2 + 1
    return {"text": f"{number}: {message}", "escalated": message == "person", "workflows": []}

async def reply_later(message, session):
    if message == "stall":
        await asyncio.sleep(10)
    return reply(message, session)

class Echo:
    def __init__(self, calls=None):
        self.calls = calls

    def open_session(self, test):
        return []

    def send_message(self, session, text, *, timeout):
        session.append(text)
        if text == "fail":
            raise ValueError("no such order")
        if text == "stall":
            threading.Event().wait(10)
        workflows = ["CONVERSATION_FORWARDING"] if text == "person" else []
        return {"text": f"{len(session)}: {text}", "workflows": workflows}

    def close(self, session):
        raise OSError("closing is of no account")
"""


class Ported(AgentContract):
    """Bundled adapters, with every kind of evaluation in the test."""

    played_test = Test.model_validate(
        AgentContract.played_test.model_dump(by_alias=True)
        | {"evaluations": [{"criterion": name, **form} for name, form in EVALUATIONS.items()]}
    )

    def played(self, made: Any) -> Agent:
        return made


class Scripted(Ported):
    __test__ = True

    def agent(self) -> Any:
        return ScriptedAgent(self.answer)

    def answer(self, test: Test, texts: Any) -> Any:
        number, text = len(texts), texts[-1]
        if text == "fail":
            return AgentError("the agent answered with status 500")
        workflows = ("CONVERSATION_FORWARDING",) if text == "person" else ()
        return Reply(agent=f"{number}: {text}", latency_seconds=0.1, workflows=workflows)

    def unreachable(self) -> Any:
        return ScriptedAgent(opening=AgentError("the agent could not be reached"))

    def locked(self) -> Any:
        return ScriptedAgent(opening=AgentAccessError("the agent refused the key"))


class Aui(Ported):
    __test__ = True
    stalls = True

    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        stalled = threading.Event()

        def answer(heard: world.AgentMessage) -> Any:
            if heard.text == "fail":
                return world.SERVER_ERROR
            if heard.text == "stall":
                stalled.wait(10)
            workflows = ["CONVERSATION_FORWARDING"] if heard.text == "person" else []
            return world.message(f"{heard.number}: {heard.text}", workflows=workflows)

        with world.agent(answer) as stub:
            self.url = stub.url
            yield
            stalled.set()

    def at(self, key: str, url: str) -> AuiAgent:
        return AuiAgent(AgentSettings("a1", key, url), limiter=world.limiter())

    def agent(self) -> Any:
        return self.at(world.AGENT_KEY, self.url)

    def unreachable(self) -> Any:
        return self.at(world.AGENT_KEY, "http://127.0.0.1:1")

    def locked(self) -> Any:
        return self.at("wrong", self.url)


class Chat(Ported):
    __test__ = True
    stalls = True
    protocol = "chat"

    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with getattr(agent_cases, f"{self.protocol}_server")() as url:
            self.case = getattr(agent_cases, f"{self.protocol}_case")(url)
            yield

    def agent(self) -> Any:
        return self.case.agent

    def unreachable(self) -> Any:
        return self.case.unreachable

    def locked(self) -> Any:
        return self.case.locked


class Http(Chat):
    protocol = "http"


class Responses(Chat):
    protocol = "responses"


class AgUi(Chat):
    protocol = "ag_ui"


class Adk(Chat):
    protocol = "adk"


class A2a(Chat):
    protocol = "a2a"


class Rasa(Chat):
    protocol = "rasa"


class Function(Ported):
    __test__ = True
    stalls = True
    name = "reply"

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "echoing.py").write_text(MODULE)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "echoing", raising=False)
        self.path = tmp_path

    def named(self, name: str) -> Agent:
        return load_python(f"python:echoing:{name}", AgentSettings(), self.path)

    def agent(self) -> Any:
        return self.named(self.name)

    def unreachable(self) -> Any:
        return self.named("gone")

    def locked(self) -> Any:
        return self.named("locked")


class Coroutine(Function):
    name = "reply_later"


class Class(Function):
    name = "Echo"


class Object(AgentContract):
    __test__ = True
    stalls = True

    def agent(self, *error: Exception) -> Any:
        return EchoLater(*error)

    def unreachable(self) -> Any:
        return self.agent(ConnectionError("refused"))

    def locked(self) -> Any:
        return self.agent(AgentAccessError("the agent refused the key"))


class EchoLater:
    """Coroutines without the test as an argument; replies are `Reply` values."""

    def __init__(self, refuses: Exception | None = None) -> None:
        self.refuses = refuses

    async def open_session(self) -> list[str]:
        if self.refuses:
            raise self.refuses
        return []

    async def send_message(self, session: list[str], text: str) -> Reply:
        session.append(text)
        if text == "fail":
            raise ZeroDivisionError
        if text == "stall":
            await asyncio.sleep(10)
        output = f"{len(session)}: {text}"
        return Reply(agent=output, latency_seconds=0.1, handed_over=text == "person")


class OfFourMethods(Object):
    stalls = False

    def agent(self, *error: Exception) -> Any:
        return FourMethods(*error)


class FourMethods:
    def __init__(self, refuses: Exception | None = None) -> None:
        self.message_counts: dict[str, int] = {}
        self.refuses = refuses

    def spawn_session(self, agent_id: str, api_key: str, label: str, model: str | None = None) -> str:
        if self.refuses:
            raise self.refuses
        self.message_counts[label] = 0
        return label

    async def send_message(self, session_key: str, message: str, user_info: Any, timeout: float) -> Any:  # noqa: ASYNC109  # as the original has it
        self.message_counts[session_key] += 1
        if message == "fail":
            raise RuntimeError("the server fell over")
        workflows = ["CONVERSATION_FORWARDING"] if message == "person" else []
        return {"text": f"{self.message_counts[session_key]}: {message}", "executed_workflows": workflows}

    async def call_judge(self, prompt: str, model: str | None) -> str:
        return "{}"


PROGRAM = """
import json, sys, time
number = 0
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] != "message":
        continue
    number += 1
    text = heard["text"]
    if text == "fail":
        sys.exit("it fell over")
    if text == "stall":
        time.sleep(10)
    print(json.dumps({"text": f"{number}: {text}", "escalated": text == "person"}), flush=True)
"""


class Command(Ported):
    __test__ = True
    stalls = True

    @pytest.fixture(autouse=True)
    def program(self, tmp_path: Path) -> None:
        self.file = tmp_path / "agent.py"
        self.file.write_text(PROGRAM)

    def running(self, arguments: str) -> CommandAgent:
        return CommandAgent(f"{sys.executable} {arguments}", AgentSettings(), os.environ)

    def agent(self) -> Any:
        return self.running(f"-I {self.file}")

    def unreachable(self) -> Any:
        return self.running("-I nowhere.py")


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, dict[str, Agent]]]:
    """Agents in a process of their own, as in a run, by their names; all tests share the process."""
    folder = tmp_path_factory.mktemp("hosted")
    (folder / "echoing.py").write_text(MODULE)
    host = Host(os.environ, Redactor())
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner:
        patch.syspath_prepend(folder)
        names = ("reply", "reply_later", "Echo", "gone", "locked")
        yield runner, {name: host.agent(f"python:echoing:{name}", AgentSettings()) for name in names}
        runner.run(host.end())


class Hosted(Function):
    runner: asyncio.Runner
    agents: dict[str, Agent]

    @pytest.fixture(autouse=True)
    def process(self, hosted: tuple[asyncio.Runner, dict[str, Agent]]) -> None:
        self.runner, self.agents = hosted

    def named(self, name: str) -> Agent:
        return self.agents[name]

    def _play(self, work: Any, given: Any = None) -> None:
        self.runner.run(work((given or self.agent)()))


class HostedCoroutine(Hosted):
    name = "reply_later"


class HostedObject(Hosted):
    name = "Echo"


class PlugIn(Function):
    def agent(self) -> Any:
        info = self.path / "acme_evals-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-evals\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[ci_evals.adapters]\nacme = echoing:Echo\n")
        return load_plugin("acme", AgentSettings())
