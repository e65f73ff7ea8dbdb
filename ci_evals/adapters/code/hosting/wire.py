"""What a run and the process of its agents say to each other: JSON, one message a line.

The run asks `{"id", "do", ...}`, and each question is answered by `{"id", "value"}` or `{"id", "error"}`.
Questions are `load`, `open`, `send`, `close`, and `cancel`, which has no answer. `{"event": "blocked"}` comes
unasked.
"""

import json
from dataclasses import asdict
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.foreign_code import CodeError, CodeTimeoutError, CodeUsageError, Words, text_of
from ci_evals.adapters.transport import payload
from ci_evals.domain.errors import AgentAccessError, AgentError, CiEvalsError, UsageError
from ci_evals.support.redaction import Redactor

MOST_BYTES = 32 * 2**20
"""Of one answer: a reply of the greatest length, written as JSON."""
_MOST_VALUES = 1_000_000

Message = dict[str, Any]

_KINDS: dict[str, type[CiEvalsError]] = {
    "access": AgentAccessError,
    "agent": AgentError,
    "timeout": CodeTimeoutError,
    "usage": UsageError,
}


def encode(message: Message) -> bytes:
    """A message as a line."""
    return json.dumps(message, ensure_ascii=True).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line.

    Raises:
        ValueError: it is none.
    """
    message = payload.parse(line, _MOST_VALUES)
    if not isinstance(message, dict):
        raise ValueError("not a message")  # noqa: TRY004  # as where it is no JSON
    return message


def of_about(about: About) -> Message:
    """What a suite says of its agent, as data."""
    return asdict(about) | {"options": dict(about.options)}


def of_error(error: BaseException, name: str) -> Message:
    """An error as data. Words of foreign code stay whole: only the run knows the secrets to take out."""
    match error:
        case CodeError() | CodeUsageError():
            words = error.words
        case CiEvalsError():
            words = Words(text_of(error))
        case _:
            words = Words(f"{name} raised {type(error).__name__}: ", text_of(error))
    match error:
        case AgentAccessError():
            kind = "access"
        case CodeTimeoutError():
            kind = "timeout"
        case UsageError():
            kind = "usage"
        case _:
            kind = "agent"
    return {"kind": kind, "words": [words.before, words.quoted, words.after]}


def to_error(value: JsonValue, redactor: Redactor) -> CiEvalsError:
    """The error that an answer tells of."""
    match value:
        case {"kind": str(kind), "words": [str(before), str(quoted), str(after)]} if kind in _KINDS:
            return _KINDS[kind](Words(before, quoted, after).shown(redactor))
        case _:
            return AgentError("the agent's process gave an answer that cannot be read")
