"""The facts about assistants on a Rasa server."""

from ci_evals.agent_registry import AgentKind
from ci_evals.agents.rasa.options import ADDRESS, RasaOptions

KIND = AgentKind(
    about="a Rasa assistant, behind its REST channel",
    page="rasa.md",
    agent="rasa.agent:RasaAgent",
    options=RasaOptions,
    address=ADDRESS,
    sends_user_info=False,
    takes_history=False,
    hand_over="adapterOptions.escalationTools",
    reports_state=True,
    reports_arguments=True,
)
