"""The adapter for agents behind A2A."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "a2a": AgentKind(
        rank=70,
        about="an agent behind A2A 1.0 or 0.3",
        page="a2a.md",
        agent="ci_evals.extensions.a2a.agent:A2aAgent",
        options="ci_evals.extensions.a2a.options:A2aOptions",
        needs={"baseUrl": "is missing; set it, or `base_url=`"},
        sends_user_info=False,
        takes_history=False,
        hand_over="adapterOptions.escalationTools",
        reports_arguments=None,
        starter="extensions/a2a/starter.yaml.j2",
    )
}
