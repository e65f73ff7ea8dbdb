"""Messages between a run and the process of its agents: JSON, one a line.

The run asks `{"id", "do", ...}`, and each question is answered by `{"id", "value"}` or `{"id", "error"}`.
Questions are `load`, `open`, `send`, `state`, `close`, and `cancel`, which has no answer. `{"event":
"blocked"}` comes unasked.
"""

import json
from typing import Any

from pydantic import JsonValue

from ci_evals.agents.code.foreign_code import (
    CodeError,
    CodeTimeoutError,
    CodeUsageError,
    ForeignMessage,
    text_of,
)
from ci_evals.domain.errors import AgentAccessError, AgentError, CiEvalsError, UsageError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

MOST_BYTES = 32 * 2**20
"""The limit of one answer: a reply of the greatest length, written as JSON."""
_MOST_VALUES = 1_000_000

Message = dict[str, Any]

_KINDS: dict[str, type[CiEvalsError]] = {
    "access": AgentAccessError,
    "timeout": CodeTimeoutError,
    "usage": UsageError,
    "agent": AgentError,
}


def encode(message: Message) -> bytes:
    """A message as a line."""
    return json.dumps(message, ensure_ascii=True).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line; raise `ValueError` if it is none."""
    message = payload.parse(line, _MOST_VALUES)
    if not isinstance(message, dict):
        raise ValueError("not a message")  # noqa: TRY004  # as where it is no JSON
    return message


def of_error(error: BaseException, name: str) -> Message:
    """An error as data. Text of foreign code stays whole: only the run knows the secrets to take out."""
    match error:
        case CodeError() | CodeUsageError():
            message = error.message
        case CiEvalsError():
            message = ForeignMessage(text_of(error))
        case _:
            message = ForeignMessage(f"{name} raised {type(error).__name__}: ", text_of(error))
    kind = next((kind for kind, error_type in _KINDS.items() if isinstance(error, error_type)), "agent")
    return {"kind": kind, "words": [message.before, message.quoted, message.after]}


def to_error(value: JsonValue, redactor: Redactor) -> CiEvalsError:
    """The error that an answer carries."""
    match value:
        case {"kind": str(kind), "words": [str(before), str(quoted), str(after)]} if kind in _KINDS:
            return _KINDS[kind](ForeignMessage(before, quoted, after).shown(redactor))
        case _:
            return AgentError("the agent's process gave an answer that cannot be read")
