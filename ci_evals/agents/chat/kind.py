"""The facts about agents behind endpoints that are compatible with OpenAI's."""

from ci_evals.agent_registry import AgentKind, KeyNeed
from ci_evals.agents.chat.options import ADDRESS, ChatOptions

KIND = AgentKind(
    about="any endpoint compatible with OpenAI's chat completions",
    page="openai-agent.md",
    agent="chat.agent:ChatAgent",
    apis={"responses": "responses.agent:ResponsesAgent"},
    options=ChatOptions,
    address=ADDRESS,
    needs={"model": "is missing: the name under which the endpoint knows the agent"},
    key=KeyNeed.DEFAULT_ADDRESS,
    keyed=True,
    filled_options=("headers",),
    id_is_model=True,
    hand_over="adapterOptions.escalationTools",
    reports_arguments=True,
)
