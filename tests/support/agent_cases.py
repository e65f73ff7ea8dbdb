"""Agents over HTTP as the contract wants them: they echo, and heed `person`, `fail` and `stall`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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


def chat_server() -> AbstractContextManager[str]:
    """Serve a chat-completions endpoint; gives its address."""

    def answer(number: int, text: str) -> Any:
        if text == "person":
            return completion(f"{number}: {text}", tool_calls=endpoints.tool_calls(("to_person", {})))
        return completion(f"{number}: {text}", tool_calls=[])

    return _serving(lambda asked: (len(asked.texts), asked.texts[-1]), answer)


def http_server() -> AbstractContextManager[str]:
    """Serve a JSON endpoint of no known kind; gives its address."""

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        return len(asked.body["earlier"]) // 2 + 1, asked.body["text"]

    return _serving(
        number_and_text, lambda number, text: {"say": f"{number}: {text}", "handover": text == "person"}
    )


def responses_server() -> AbstractContextManager[str]:
    """Serve an endpoint of the Responses API; gives its address."""

    def number_and_text(asked: EndpointRequest) -> tuple[int, str]:
        number = int(asked.body.get("previous_response_id", "0")) + 1
        return number, asked.body["input"][-1]["content"]

    def answer(number: int, text: str) -> Any:
        call = {"type": "function_call", "call_id": "c", "name": "to_person", "arguments": "{}"}
        calls = [call] if text == "person" else []
        return endpoints.response(*calls, f"{number}: {text}", id=str(number), tools=[{"type": "mcp"}])

    return _serving(number_and_text, answer)


def ag_ui_server() -> AbstractContextManager[str]:
    """Serve an agent that speaks AG-UI; gives its address."""

    def answer(number: int, text: str) -> Any:
        call = [endpoints.ag_ui_call("to_person", {})] if text == "person" else []
        return endpoints.ag_ui_run(*(event for events in call for event in events), text=f"{number}: {text}")

    return _serving(lambda asked: (len(asked.texts), asked.texts[-1]), answer)


def adk_server() -> AbstractContextManager[str]:
    """Serve an app of ADK; gives its address."""
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

    return _serving(number_and_text, answer)


def a2a_server() -> AbstractContextManager[str]:
    """Serve an agent behind A2A 1.0 with its card, in the shapes of a2a-sdk; gives its address."""
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
            "messageId": f"m-{context}-{number}", "contextId": context, "role": "ROLE_AGENT",
            "parts": [{"text": f"{number}: {words}"}], "metadata": {"toolCalls": calls},
        }  # fmt: skip
        return {"jsonrpc": "2.0", "id": 1, "result": {"message": message}}

    return _serving(number_and_text, answer)


def rasa_server() -> AbstractContextManager[str]:
    """Serve an assistant behind Rasa's REST channel, with its trackers; gives its address."""
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

    return _serving(number_and_text, answer)


def _case_of(
    adapter: str, options: dict[str, Any], agent_id: str | None = None, model: str | None = None
) -> Callable[[str], AgentCase]:
    """Return what makes the agents of an adapter, by the address of its server."""

    def agent(key: str, where: str) -> Agent:
        return server_agent(adapter, AgentSettings(agent_id, key, where, model, options))

    return lambda url: AgentCase(
        agent(endpoints.KEY, url), agent(endpoints.KEY, UNREACHABLE_URL), agent("wrong", url)
    )


UNREACHABLE_URL = "http://127.0.0.1:1"
_ESCALATES = {"escalationTools": ["to_person"]}
chat_case = _case_of("openai", _ESCALATES, model="refund-agent")
http_case = _case_of("http", {
    "send": {"body": {"text": "{{message}}", "earlier": "{{history}}"}},
    "reply": {"text": "$.say", "escalated": "$.handover"},
})  # fmt: skip
responses_case = _case_of("openai", {"api": "responses"} | _ESCALATES, model="refund-agent")
ag_ui_case = _case_of("ag-ui", _ESCALATES)
adk_case = _case_of("adk", _ESCALATES, agent_id="refunds")
a2a_case = _case_of("a2a", {"toolCalls": "$..metadata.toolCalls"} | _ESCALATES)
rasa_case = _case_of("rasa", {"headers": {"Authorization": "Bearer {{key}}"}})


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
