"""Agents that hand over to a person at the first message."""

NOTHING = {"toolCalls": [], "escalated": True}


def hands_over(_message, _session):
    return NOTHING | {"text": "I connect you to a colleague."}


def tells_and_hands_over(_message, session):
    return NOTHING | {"text": f"Here you are: {session.user_info}"}


def breaks(_message, _session):
    return NOTHING | {"text": "Something went wrong.", "error": True}
