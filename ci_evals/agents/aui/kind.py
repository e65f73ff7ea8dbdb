"""The facts about agents behind AUI's task API."""

from ci_evals.agent_registry import AgentKind, KeyNeed
from ci_evals.agents.aui.options import ADDRESS, AuiOptions

KIND = AgentKind(
    about="an AUI agent",
    page="adapters.md#an-aui-agent",
    agent="aui.agent:AuiAgent",
    options=AuiOptions,
    address=ADDRESS,
    needs={"agentId": "is missing; or name the agent with `agent_id=`"},
    own_server=False,
    key=KeyNeed.ALWAYS,
    keyed=True,
    unsent=dict.fromkeys(("model", "systemPrompt"), "has no field on the AUI wire and is not sent"),
    takes_history=False,
)
