"""The facts about agents behind the Agent2Agent protocol."""

from ci_evals.agent_registry import AgentKind
from ci_evals.agents.a2a.options import A2aOptions

KIND = AgentKind(
    about="an agent behind A2A 1.0 or 0.3",
    page="a2a.md",
    agent="a2a.agent:A2aAgent",
    options=A2aOptions,
    needs={"baseUrl": "is missing; set it, or `base_url=`"},
    sends_user_info=False,
    takes_history=False,
    hand_over="adapterOptions.escalationTools",
    reports_arguments=None,
)
