"""Part of a stand-in."""


class Part:
    """A part of a message."""

    def __init__(self, text):
        self.text = text


class Content:
    """A message."""

    def __init__(self, role, parts):
        self.role, self.parts = role, parts
