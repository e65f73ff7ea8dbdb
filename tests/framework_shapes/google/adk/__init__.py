"""Objects of the shape of Google ADK 2.13: an agent and an app, and the events of their runs."""


class BaseAgent:
    """An agent that follows a plan."""

    def __init__(self, plan):
        self.plan = plan


class App:
    """An app with a name of its own."""

    def __init__(self, name, root_agent):
        self.name, self.root_agent = name, root_agent
