"""The adapter for the embedded demo agent, which speaks as one of AUI does."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "demo": AgentKind(
        rank=20,
        about="the embedded demo agent",
        page="adapters.md#the-demo-agent",
        agent="ci_evals.agents.aui.agent:AuiAgent",
        own_server=False,
        server="ci_evals.extensions.demo.server:DemoServer",
        takes_history=False,
        starter="extensions/demo/starter.yaml.j2",
    )
}
