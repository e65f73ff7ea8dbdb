"""The facts about agents that are programs."""

from ci_evals.agent_registry import AgentKind

KIND = AgentKind(
    about="a program that answers JSON lines, started in the folder that ci-evals is started in",
    page="writing-an-adapter.md",
    builder="command.agent:build",
    own_server=False,
    hand_over="adapterOptions.escalationTools, or escalated of an answer",
    reports_arguments=None,
    example="command: python3 agent_under_test.py",
    program="agents/command/starter_agent.py.j2",
)
