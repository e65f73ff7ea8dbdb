"""The facts about agents that speak AG-UI."""

from ci_evals.agent_registry import AgentKind
from ci_evals.agents.ag_ui.options import AgUiOptions

KIND = AgentKind(
    about="an agent that speaks AG-UI",
    page="ag-ui.md",
    agent="ag_ui.agent:AgUiAgent",
    options=AgUiOptions,
    needs={"baseUrl": "is missing: the address that runs are posted to; set it, or `base_url=`"},
    hand_over="adapterOptions.escalationTools",
    reports_state=True,
    reports_arguments=True,
)
