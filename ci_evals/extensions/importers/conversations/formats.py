"""The list of formats of real conversations, in the order of the help."""

from collections.abc import Mapping
from dataclasses import dataclass

from ci_evals.extensions.importers.conversations import atif, otlp, transcript
from ci_evals.extensions.importers.conversations.recorded_file import ReadConversations


@dataclass(frozen=True)
class ConversationFormat:
    """A format of files with real conversations."""

    summary: str
    read: ReadConversations


CONVERSATION_FORMATS: Mapping[str, ConversationFormat] = {
    "transcript": ConversationFormat(
        "real conversations: messages as JSON, or User: and Agent: lines",
        transcript.read,
    ),
    "otlp": ConversationFormat("real conversations: OpenTelemetry spans, JSON or protobuf", otlp.read),
    "atif": ConversationFormat("real conversations: trajectories of agents (ATIF 1.0 to 1.7)", atif.read),
}
"""Formats by their names."""
