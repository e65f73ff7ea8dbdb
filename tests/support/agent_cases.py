"""Agents over HTTP as the contract wants them: they echo, and heed `person`, `fail` and `stall`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import endpoints
import world
from endpoints import EndpointRequest, completion

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.agents.settings import AgentSettings
from ci_evals.ports import Agent

STALL_SECONDS = 10


@dataclass(frozen=True)
class AgentCase:
    """One that answers, one that is not there, and one whose key is refused."""

    agent: Agent
    unreachable: Agent
    locked: Agent


def server_agent(adapter: str, settings: AgentSettings) -> Agent:
    """An agent of the adapter of this name. Options may be read already."""
    options = settings.options if isinstance(settings.options, dict) else {}
    return AGENT_KINDS[adapter].agent_class(options)(settings, limiter=world.limiter())


@contextmanager
def chat_server() -> Iterator[str]:
    """Serves a chat-completions endpoint; gives its address."""

    def answer(number: int, text: str) -> Any:
        if text == "person":
            return completion(f"{number}: {text}", tool_calls=endpoints.tool_calls(("to_person", {})))
        return completion(f"{number}: {text}", tool_calls=[])

    with _serving(lambda asked: (len(asked.texts), asked.texts[-1]), answer) as url:
        yield url


@contextmanager
def http_server() -> Iterator[str]:
    """Serves a JSON endpoint of no known kind; gives its address."""

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        return len(asked.body["earlier"]) // 2 + 1, asked.body["text"]

    with _serving(
        number_and_text, lambda number, text: {"say": f"{number}: {text}", "handover": text == "person"}
    ) as url:
        yield url


def chat_case(url: str) -> AgentCase:
    """Agents of the adapter `openai`, at a `chat_server`."""
    options = {"escalationTools": ["to_person"]}

    def agent(key: str, where: str) -> Agent:
        return server_agent("openai", AgentSettings(None, key, where, "refund-agent", options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


def http_case(url: str) -> AgentCase:
    """Agents of the adapter `http`, at an `http_server`."""
    options = {
        "send": {"body": {"text": "{{message}}", "earlier": "{{history}}"}},
        "reply": {"text": "$.say", "escalated": "$.handover"},
    }

    def agent(key: str, where: str) -> Agent:
        return server_agent("http", AgentSettings(None, key, where, None, options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


@contextmanager
def responses_server() -> Iterator[str]:
    """Serves an endpoint of the Responses API; gives its address."""

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        number = int(asked.body.get("previous_response_id", "0")) + 1
        return number, asked.body["input"][-1]["content"]

    def answer(number: int, text: str) -> Any:
        call = {"type": "function_call", "call_id": "c", "name": "to_person", "arguments": "{}"}
        calls = [call] if text == "person" else []
        return endpoints.response(*calls, f"{number}: {text}", id=str(number), tools=[{"type": "mcp"}])

    with _serving(number_and_text, answer) as url:
        yield url


def responses_case(url: str) -> AgentCase:
    """Agents of the adapter `openai` with `api: responses`, at a `responses_server`."""
    options = {"api": "responses", "escalationTools": ["to_person"]}

    def agent(key: str, where: str) -> Agent:
        return server_agent("openai", AgentSettings(None, key, where, "refund-agent", options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


@contextmanager
def ag_ui_server() -> Iterator[str]:
    """Serves an agent that speaks AG-UI; gives its address."""

    def answer(number: int, text: str) -> Any:
        call = [endpoints.ag_ui_call("to_person", {})] if text == "person" else []
        return endpoints.ag_ui_run(*(event for events in call for event in events), text=f"{number}: {text}")

    with _serving(lambda asked: (len(asked.texts), asked.texts[-1]), answer) as url:
        yield url


def ag_ui_case(url: str) -> AgentCase:
    """Agents of the adapter `ag-ui`, at an `ag_ui_server`."""
    options = {"escalationTools": ["to_person"]}

    def agent(key: str, where: str) -> Agent:
        return server_agent("ag-ui", AgentSettings(None, key, where, None, options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


@contextmanager
def adk_server() -> Iterator[str]:
    """Serves an app of ADK; gives its address."""
    counts: dict[str, int] = {}

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        if "newMessage" not in asked.body:
            return 0, ""
        session = asked.body["sessionId"]
        counts[session] = counts.get(session, 0) + 1
        return counts[session], asked.body["newMessage"]["parts"][0]["text"]

    def answer(number: int, text: str) -> Any:
        if not number:
            return {"state": {}}
        call = {"functionCall": {"id": "c1", "name": "to_person"}}
        return endpoints.sse(
            *([endpoints.adk_event(call)] if text == "person" else []),
            endpoints.adk_event({"text": f"{number}: {text}"}),
        )

    with _serving(number_and_text, answer) as url:
        yield url


def adk_case(url: str) -> AgentCase:
    """Agents of the adapter `adk`, at an `adk_server`."""
    options = {"escalationTools": ["to_person"]}

    def agent(key: str, where: str) -> Agent:
        return server_agent("adk", AgentSettings("refunds", key, where, None, options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


@contextmanager
def a2a_server() -> Iterator[str]:
    """Serves an agent behind A2A 1.0 with its card, in the shapes of a2a-sdk; gives its address."""
    counts: dict[str, int] = {}

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        if asked.method == "GET":
            return 0, f"http://{asked.headers['host']}/"
        message = asked.body["params"]["message"]
        context = message.get("contextId") or f"c-{len(counts)}"
        counts[context] = counts.get(context, 0) + 1
        return counts[context], f"{context} {message['parts'][0]['text']}"

    def answer(number: int, text: str) -> Any:
        if not number:
            interface = {"url": text, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return {"name": "Echo", "supportedInterfaces": [interface], "capabilities": {"streaming": False}}
        context, _, words = text.partition(" ")
        calls = [{"name": "to_person", "arguments": {}}] if words == "person" else []
        message = {
            "messageId": f"m-{context}-{number}",
            "contextId": context,
            "role": "ROLE_AGENT",
            "parts": [{"text": f"{number}: {words}"}],
            "metadata": {"toolCalls": calls},
        }
        return {"jsonrpc": "2.0", "id": 1, "result": {"message": message}}

    with _serving(number_and_text, answer) as url:
        yield url


def a2a_case(url: str) -> AgentCase:
    """Agents of the adapter `a2a`, at an `a2a_server`."""
    options = {"toolCalls": "$..metadata.toolCalls", "escalationTools": ["to_person"]}

    def agent(key: str, where: str) -> Agent:
        return server_agent("a2a", AgentSettings(None, key, where, None, options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


@contextmanager
def rasa_server() -> Iterator[str]:
    """Serves an assistant behind Rasa's REST channel, with its trackers; gives its address."""
    trackers: dict[str, list[dict[str, Any]]] = {}

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        sender = asked.body["sender"] if asked.body else asked.path.split("/")[2]
        events = trackers.setdefault(sender, [{"event": "action", "name": "action_session_start"}])
        if not asked.body:
            return 0, sender
        text = asked.body["message"]
        events.append({"event": "user", "text": text})
        if text == "person":
            events += [{"event": "action", "name": "to_person"}, {"event": "pause"}]
        return sum(event["event"] == "user" for event in events), f"{sender} {text}"

    def answer(number: int, text: str) -> Any:
        sender, _, words = text.partition(" ")
        if not number:
            return {"sender_id": sender, "slots": {}, "events": trackers[sender]}
        return [{"recipient_id": sender, "text": f"{number}: {words}"}]

    with _serving(number_and_text, answer) as url:
        yield url


def rasa_case(url: str) -> AgentCase:
    """Agents of the adapter `rasa`, at a `rasa_server`."""
    options = {"headers": {"Authorization": "Bearer {{key}}"}}

    def agent(key: str, where: str) -> Agent:
        return server_agent("rasa", AgentSettings(None, key, where, None, options))

    return AgentCase(agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url))


UNREACHABLE_URL = "http://127.0.0.1:1"


@contextmanager
def _serving(
    texts: Callable[[EndpointRequest], tuple[int, str]], answer: Callable[[int, str], Any]
) -> Iterator[str]:
    over = threading.Event()

    def route(asked: EndpointRequest) -> Any:
        number, text = texts(asked)
        if text.endswith("fail"):
            return world.SERVER_ERROR
        if text.endswith("stall"):
            over.wait(STALL_SECONDS)
        return answer(number, text)

    with endpoints.serving(route) as stub:
        yield stub.url
        over.set()


# Names used before
_BEFORE = {"NOBODY": "UNREACHABLE_URL"}


def __getattr__(name):
    if name not in _BEFORE:
        raise AttributeError(name)
    return globals()[_BEFORE[name]]
