"""The adapter for any JSON endpoint."""

from ci_evals.agent_registry import AgentKind
from ci_evals.support.documentation import see

KINDS = {
    "http": AgentKind(
        rank=40,
        about="any JSON endpoint",
        page="http-agent.md",
        agent="ci_evals.extensions.http.agent:HttpAgent",
        options="ci_evals.extensions.http.options:HttpOptions",
        needs={
            "baseUrl": "is missing; set it, or `base_url=`",
            "adapterOptions": "is missing: how the agent is asked; or name a file with it by "
            f"`adapter_options=` ({see('http-agent')})",
        },
        keyed=True,
        sends_user_info=False,
        history_names=frozenset({"messages", "uiMessages", "history"}),
        no_history="adapterOptions.send has no {{messages}} and no {{history}}, which would tell the agent",
        hand_over="adapterOptions.reply.escalated or .escalationTools",
        reports_arguments=None,
        evidence_paths="reply",
        path_conditions=frozenset({"escalatedWhen"}),
        starter="extensions/http/starter.yaml.j2",
    ),
}
