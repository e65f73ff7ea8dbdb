"""The adapter for endpoints that are compatible with OpenAI's."""

from ci_evals.agent_registry import AgentKind, KeyNeed

KINDS = {
    "openai": AgentKind(
        rank=30,
        about="any endpoint compatible with OpenAI's chat completions",
        page="openai-agent.md",
        agent="ci_evals.extensions.openai_api.chat_agent:ChatAgent",
        apis={"responses": "ci_evals.extensions.openai_api.responses_agent:ResponsesAgent"},
        options="ci_evals.extensions.openai_api.options:ChatOptions",
        address="https://api.openai.com/v1",
        needs={"model": "is missing: the name under which the endpoint knows the agent"},
        key=KeyNeed.DEFAULT_ADDRESS,
        keyed=True,
        filled_options=("headers",),
        id_is_model=True,
        hand_over="adapterOptions.escalationTools",
        reports_arguments=True,
        starter="extensions/openai_api/starter.yaml.j2",
    )
}
