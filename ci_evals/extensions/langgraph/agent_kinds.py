"""The adapter for assistants on a LangGraph Server."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "langgraph": AgentKind(
        rank=50,
        about="a graph on a LangGraph Server",
        page="langgraph.md",
        agent="ci_evals.extensions.langgraph.agent:LangGraphAgent",
        options="ci_evals.extensions.langgraph.options:LangGraphOptions",
        address="http://127.0.0.1:2024",
        needs={"agentId": "is missing: the assistant, or the name of the graph in langgraph.json"},
        sends_user_info=False,
        hand_over="adapterOptions.escalationTools",
        reports_state=True,
        reports_arguments=True,
        starter="extensions/langgraph/starter.yaml.j2",
    )
}
