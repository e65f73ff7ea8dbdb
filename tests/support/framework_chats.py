"""Conversations with agents of frameworks, for the real servers and for what was recorded of them."""

import functools
from typing import Any

import yaml
from agent_cases import server_agent
from doc_pages import ROOT, blocks

from ci_evals.agents.settings import AgentSettings
from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Agent, read_state

A2A = ("a2a", "a2a-blocking", "a2a-rest", "a2a-0.3", "a2a-0.3-blocking")
"""One adapter, by what servers it meets."""


def _function(name: str) -> dict[str, Any]:
    """A tool as the Responses API has it."""
    return {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False}


def _page(name: str, part: str) -> Any:
    """What a page of the docs shows, in its one block of YAML with this part."""
    (text,) = (block for block in blocks("yaml", (ROOT / f"docs/{name}.md").read_text()) if part in block)
    return yaml.safe_load(text)


AGENT_SETTINGS: dict[str, dict[str, Any]] = {
    "langgraph": {"agentId": "agent", "adapterOptions": {"escalationTools": ["to_person"]}},
    "ag-ui": {"adapterOptions": {"escalationTools": ["to_person"]}},
    "adk": {"agentId": "refunds", "adapterOptions": {"escalationTools": ["to_person"]}},
    **{
        name: {"adapterOptions": {"toolCalls": "$..metadata.toolCalls", "escalationTools": ["to_person"]}}
        for name in A2A
    },
    "responses": {
        "adapter": "openai", "agentId": "refund-agent",
        "adapterOptions": {
            "api": "responses",
            "request": {"store": False, "tools": [_function("lookup"), _function("refund")]},
            "toolResults": {"lookup": {"paid": 42}, "refund": "ok"}, "escalationTools": ["to_person"],
        },
    },
    "responses-agent": {
        "adapter": "openai", "agentId": "refund-agent",
        "adapterOptions": {
            "api": "responses", "request": {"tools": [_function("refund")]}, "escalationTools": ["to_person"],
        },
    },
    "ai-sdk": {"adapter": "http", **_page("http-streams", "uiMessages")},
    "rasa": {"adapterOptions": {"slots": {"plan": "{{userInfo.name}}"}}},
}  # fmt: skip
"""How suites name the agents of the real servers."""


def agent(name: str, url: str, agent_id: str | None = None, key: str | None = None, **options: Any) -> Agent:
    """An adapter, speaking to an agent of a real server."""
    settings = AGENT_SETTINGS[name]
    more = {**settings.get("adapterOptions", {}), **options}
    adapter = settings.get("adapter") or ("a2a" if name in A2A else name)
    return server_agent(adapter, AgentSettings(agent_id or settings.get("agentId"), key, url, options=more))


HISTORY = ({"assistant": "Welcome!"}, {"user": "My order is late"}, {"assistant": "Which one?"})


async def converse(agent: Agent, *texts: str, history: Any = ()) -> tuple[list[Reply | str], Any]:
    """Say messages; returns the replies, or the error of one, and the agent's state."""
    test = AgentContract.played_test
    test = Test.model_validate(test.model_dump() | {"turns": (*history, *test.turns)})
    session = await agent.open_session(test)
    replies: list[Reply | str] = []
    try:
        for text in texts:
            try:
                replies.append(await agent.send_message(session, text, timeout=10))
            except AgentError as error:
                replies.append(str(error))
        try:
            state = await read_state(agent, session)
        except AgentError as error:
            state = str(error)
        return replies, state
    finally:
        await agent.close(session)


def _talk(name: str, *texts: str, agent_id: str | None = None, history: Any = (), **options: Any) -> Any:
    async def say(url: str) -> tuple[list[Reply | str], Any]:
        return await converse(agent(name, url, agent_id, **options), *texts, history=history)

    return functools.partial(say)


CONVERSATIONS: dict[str, dict[str, Any]] = {
    "langgraph": {
        "history": _talk("langgraph", "Hello", "Hello again", history=HISTORY),
        "refund": _talk("langgraph", "Hello", "Refund order A-1", "Refund much more"),
        "inside": _talk("langgraph", "Refund order A-1", "Are you sure?", "yes", agent_id="outer"),
        "failed": _talk("langgraph", "fail", agent_id="agent"),
        "nobody": _talk("langgraph", "Hello", agent_id="nobody"),
    },
    "ag-ui": {
        "history": _talk("ag-ui", "Hello", "Hello again", history=HISTORY),
        "refund": _talk("ag-ui", "Hello", "Refund order A-1"),
        "approval": _talk("ag-ui", "Close my account", resume={"approved": True}),
        "waits": _talk("ag-ui", "Close my account"),
        "failed": _talk("ag-ui", "fail"),
    },
    **{
        name: {
            "history": _talk(name, "Hello", "Hello again", history=HISTORY),
            "refund": _talk(name, "Hello", "Refund order A-1"),
        }
        for name in ("responses", "responses-agent")
    },
    "adk": {
        "history": _talk("adk", "Hello", "Hello again", history=HISTORY),
        "refund": _talk("adk", "Hello", "Refund order A-1"),
        "tokens": _talk("adk", "Refund order A-1", stream="tokens"),
        "whole": _talk("adk", "Refund order A-1", stream="none"),
        "confirmed": _talk("adk", "Close my account", confirmation={"confirmed": True}),
        "waits": _talk("adk", "Close my account"),
        "failed": _talk("adk", "fail"),
        "nobody": _talk("adk", "Hello", agent_id="nobody"),
    },
    **{
        name: {
            "refund": _talk(name, "Hello", "Refund order A-1", "Refund data"),
            "asks": _talk(name, "Refund some order", "Refund A-1"),
            "troubles": _talk(name, "Refund broken order", "Refund with key", "fail"),
        }
        for name in A2A
    },
    "ai-sdk": {
        "history": _talk("ai-sdk", "Hello", "Hello again", history=HISTORY),
        "refund": _talk("ai-sdk", "Hello", "Refund order A-1"),
        "failed": _talk("ai-sdk", "fail"),
    },
    "rasa": {
        "refund": _talk("rasa", "Hello", "Refund order A-1"),
        "person": _talk("rasa", "person", "Hello"),
        "failed": _talk("rasa", "fail"),
    },
}
"""Conversations by the server and a name of their own; each is called with the server's address."""
CONVERSATIONS["responses"]["failed"] = _talk("responses", "fail")
