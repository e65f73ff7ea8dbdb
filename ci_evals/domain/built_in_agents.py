"""The built-in adapters and the facts about each: the one place that lists them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_evals.domain import agents
from ci_evals.domain.base import Model


@dataclass(frozen=True)
class BuiltInAgent:
    """An adapter with a name of its own, and what its agents can do."""

    about: str
    """The kind of agent, for the first line of a starter suite."""
    options: type[Model] | None = None
    """The form of `adapterOptions`; None if there are none."""
    address: str = ""
    """The default address; empty if only the user knows it."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Fields of a suite that must be set, beside the key, each with the message for a suite without it."""
    hand_over: str = ""
    """The option that makes hand-overs to a person known; empty if they are known without one."""
    own_server: bool = True
    """True for a server of the user's own, whose address the workflow takes from a variable."""
    keyed: bool = False
    """True if its servers usually want a key."""
    reports_state: bool = False
    """True if there is a probe `agent_state`."""
    takes_history: bool = True
    """True if an agent can be given messages from before a test."""
    reports_arguments: bool | None = False
    """True if tool calls surely come with arguments; None if the suite's options decide. Of AUI's tools only
    the integrations have any, and which names are theirs is unknown."""


_ADDRESS = "is missing; set it, or --base-url"
_TOOLS = "adapterOptions.escalationTools"

BUILT_IN: Mapping[str, BuiltInAgent] = {
    "aui": BuiltInAgent(
        "An AUI agent, over HTTP.",
        agents.AuiOptions,
        agents.AUI_ADDRESS,
        needs={"agentId": "is missing; or name the agent with --agent-id"},
        own_server=False,
        keyed=True,
        takes_history=False,
    ),
    "demo": BuiltInAgent("The embedded demo agent, for a first look.", own_server=False, takes_history=False),
    "openai": BuiltInAgent(
        "Any endpoint compatible with OpenAI's chat completions: docs/openai-agent.md of ci-evals.",
        agents.ChatOptions,
        agents.OPENAI_ADDRESS,
        {"model": "is missing: the name under which the endpoint knows the agent"},
        _TOOLS,
        keyed=True,
        reports_arguments=True,
    ),
    "http": BuiltInAgent(
        "Any JSON endpoint: docs/http-agent.md of ci-evals.",
        agents.HttpOptions,
        needs={
            "baseUrl": _ADDRESS,
            "adapterOptions": "is missing: how the agent is asked; or name a file with it by "
            "--adapter-options; see docs/http-agent.md",
        },
        hand_over="adapterOptions.reply.escalated",
        keyed=True,
        reports_arguments=None,
    ),
    "langgraph": BuiltInAgent(
        "A graph on a LangGraph Server: docs/langgraph.md of ci-evals.",
        agents.LangGraphOptions,
        agents.LANGGRAPH_ADDRESS,
        {"agentId": "is missing: the assistant, or the name of the graph in langgraph.json"},
        _TOOLS,
        reports_state=True,
        reports_arguments=True,
    ),
    "ag-ui": BuiltInAgent(
        "An agent that speaks AG-UI: docs/ag-ui.md of ci-evals.",
        agents.AgUiOptions,
        needs={"baseUrl": "is missing: the address that runs are posted to; set it, or --base-url"},
        hand_over=_TOOLS,
        reports_state=True,
        reports_arguments=True,
    ),
    "a2a": BuiltInAgent(
        "An agent behind the Agent2Agent protocol: docs/a2a.md of ci-evals.",
        agents.A2aOptions,
        needs={"baseUrl": _ADDRESS},
        hand_over=_TOOLS,
        takes_history=False,
        reports_arguments=None,
    ),
    "adk": BuiltInAgent(
        "An app of Google's ADK: docs/adk.md of ci-evals.",
        agents.AdkOptions,
        agents.ADK_ADDRESS,
        {"agentId": "is missing: the app, which is the name of the agent's folder"},
        _TOOLS,
        reports_state=True,
        reports_arguments=True,
    ),
    "rasa": BuiltInAgent(
        "A Rasa assistant, behind its REST channel: docs/rasa.md of ci-evals.",
        agents.RasaOptions,
        agents.RASA_ADDRESS,
        hand_over=_TOOLS,
        reports_state=True,
        takes_history=False,
        reports_arguments=True,
    ),
}
"""All of them by name, in the order in which they are listed to users."""
