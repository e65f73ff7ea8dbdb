"""The facts about the embedded demo agent."""

from ci_evals.agent_registry import AgentKind

KIND = AgentKind(
    about="the embedded demo agent",
    page="adapters.md#the-demo-agent",
    own_server=False,
    embedded=True,
    takes_history=False,
)
