"""The adapter for apps on a server of Google's Agent Development Kit."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "adk": AgentKind(
        rank=80,
        about="an app on a server of Google's Agent Development Kit",
        page="adk.md",
        agent="ci_evals.extensions.adk.agent:AdkAgent",
        options="ci_evals.extensions.adk.options:AdkOptions",
        address="http://127.0.0.1:8000",
        needs={"agentId": "is missing: the app, which is the name of the agent's folder"},
        hand_over="adapterOptions.escalationTools",
        reports_state=True,
        reports_arguments=True,
        starter="extensions/adk/starter.yaml.j2",
    )
}
