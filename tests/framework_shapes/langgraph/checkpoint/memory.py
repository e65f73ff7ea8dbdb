"""Part of a stand-in."""


class InMemorySaver:
    """Keeps the messages of threads."""

    def __init__(self):
        self.threads = {}
