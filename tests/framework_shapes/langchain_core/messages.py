"""Messages of the shape of LangChain's."""

from langgraph import message

_KINDS = {"assistant": "ai", "user": "human", "system": "system"}


def convert_to_messages(messages):
    """Return objects for dicts."""
    return [message(_KINDS[fields["role"]], fields["content"]) for fields in messages]
