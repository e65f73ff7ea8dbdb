"""The facts about graphs on a LangGraph Server."""

from ci_evals.agent_registry import AgentKind
from ci_evals.agents.langgraph.options import ADDRESS, LangGraphOptions

KIND = AgentKind(
    about="a graph on a LangGraph Server",
    page="langgraph.md",
    agent="langgraph.agent:LangGraphAgent",
    options=LangGraphOptions,
    address=ADDRESS,
    needs={"agentId": "is missing: the assistant, or the name of the graph in langgraph.json"},
    sends_user_info=False,
    hand_over="adapterOptions.escalationTools",
    reports_state=True,
    reports_arguments=True,
)
