"""The adapter for assistants on a Rasa server."""

from ci_evals.agent_registry import AgentKind

KINDS = {
    "rasa": AgentKind(
        rank=90,
        about="a Rasa assistant, behind its REST channel",
        page="rasa.md",
        agent="ci_evals.extensions.rasa.agent:RasaAgent",
        options="ci_evals.extensions.rasa.options:RasaOptions",
        address="http://127.0.0.1:5005",
        sends_user_info=False,
        takes_history=False,
        hand_over="adapterOptions.escalationTools",
        reports_state=True,
        reports_arguments=True,
        starter="extensions/rasa/starter.yaml.j2",
    )
}
