"""The facts about apps on a server of Google's Agent Development Kit."""

from ci_evals.agent_registry import AgentKind
from ci_evals.agents.adk.options import ADDRESS, AdkOptions

KIND = AgentKind(
    about="an app on a server of Google's Agent Development Kit",
    page="adk.md",
    agent="adk.agent:AdkAgent",
    options=AdkOptions,
    address=ADDRESS,
    needs={"agentId": "is missing: the app, which is the name of the agent's folder"},
    hand_over="adapterOptions.escalationTools",
    reports_state=True,
    reports_arguments=True,
)
