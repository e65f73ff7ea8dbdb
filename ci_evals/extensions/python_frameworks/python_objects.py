"""Agents that are objects of a framework, found by the names of their types.

No framework is imported to recognize its objects: who has such an object has imported it already.
"""

from importlib import import_module
from typing import Any

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.python_frameworks.framework import FrameworkAgent

FORM = "an agent of pydantic-ai, LangGraph, the OpenAI Agents SDK or Google ADK"

_KINDS = {
    ("pydantic_ai", "AbstractAgent"): "pydantic_ai:PydanticAiAgent",
    ("langgraph", "Pregel"): "langgraph:LangGraphAgent",
    ("agents", "Agent"): "openai_agents:OpenAiAgentsAgent",
    ("google.adk", "BaseAgent"): "adk:AdkAgent",
    ("google.adk", "BaseNode"): "adk:AdkAgent",
    ("google.adk", "App"): "adk:AdkAgent",
}
"""Package and class of a framework's agents, and the module and class here that calls them."""
_UNFINISHED = {("langgraph", "StateGraph"): "is a LangGraph graph that is not compiled: name graph.compile()"}


def adapter_of(target: Any, name: str, settings: AgentSettings) -> FrameworkAgent | None:
    """Return the agent of a framework as an object with the methods of an adapter; None if it is none.

    Raises:
        UsageError: the framework's object cannot be used as an agent, or not with these settings.
    """
    for base in type(target).__mro__:
        for (package, kind), value in [*_KINDS.items(), *_UNFINISHED.items()]:
            if base.__name__ != kind or not f"{base.__module__}.".startswith(f"{package}."):
                continue
            if (package, kind) in _UNFINISHED:
                raise UsageError(f"{name} {value}")
            module, _, attribute = value.partition(":")
            made: FrameworkAgent = getattr(import_module(f"{__package__}.{module}"), attribute)(
                target, name, settings
            )
            return made
    return None
