"""The adapter for agents that speak AG-UI."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "ag-ui": AgentKind(
        rank=60,
        about="an agent that speaks AG-UI",
        page="ag-ui.md",
        agent="ci_evals.extensions.ag_ui.agent:AgUiAgent",
        options="ci_evals.extensions.ag_ui.options:AgUiOptions",
        needs={"baseUrl": "is missing: the address that runs are posted to; set it, or `base_url=`"},
        hand_over="adapterOptions.escalationTools",
        reports_state=True,
        reports_arguments=True,
        starter="extensions/ag_ui/starter.yaml.j2",
    )
}
