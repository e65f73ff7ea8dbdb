"""The facts about agents that are Python code."""

from ci_evals.agent_registry import AgentKind

KIND = AgentKind(
    about="a Python function or a framework's agent, found from the folder that ci-evals is started in",
    page="python-agent.md",
    builder="python.building:build",
    own_server=False,
    hand_over="adapterOptions.escalationTools, or escalated of a function",
    reports_arguments=None,
    example="python:agent_under_test:reply",
    program="agents/python/starter_agent.py.j2",
)
