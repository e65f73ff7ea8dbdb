"""The facts about the kinds of agents of the core."""

from collections.abc import Mapping

from ci_evals.agent_registry import AgentKind, KeyNeed

KINDS: Mapping[str, AgentKind] = {
    "aui": AgentKind(
        rank=10,
        about="an AUI agent",
        page="adapters.md#an-aui-agent",
        agent="ci_evals.agents.aui.agent:AuiAgent",
        options="ci_evals.agents.aui.options:AuiOptions",
        address="https://api.aui.io/ia-controller",
        needs={"agentId": "is missing; or name the agent with `agent_id=`"},
        own_server=False,
        key=KeyNeed.ALWAYS,
        keyed=True,
        unsent=dict.fromkeys(("model", "systemPrompt"), "has no field on the AUI wire and is not sent"),
        takes_history=False,
        starter="agents/aui/starter.yaml.j2",
    ),
}
"""Adapters with a name."""

PROGRAM_KINDS: Mapping[str, AgentKind] = {
    "python": AgentKind(
        about="a Python function or a framework's agent, found from the folder that ci-evals is started in",
        page="python-agent.md",
        builder="ci_evals.agents.python.loading:build",
        own_server=False,
        hand_over="adapterOptions.escalationTools, or escalated of a function",
        reports_arguments=None,
        example="python:agent_under_test:reply",
        program="agents/python/starter_agent.py.j2",
        starter="agents/python/starter.yaml.j2",
    ),
    "command": AgentKind(
        about="a program that answers JSON lines, started in the folder that ci-evals is started in",
        page="writing-an-adapter.md",
        builder="ci_evals.agents.command.agent:build",
        own_server=False,
        hand_over="adapterOptions.escalationTools, or escalated of an answer",
        reports_arguments=None,
        example="command: python3 agent_under_test.py",
        program="agents/command/starter_agent.py.j2",
        starter="agents/command/starter.yaml.j2",
    ),
}
"""Adapters for code of the user's, by what comes before the colon."""
