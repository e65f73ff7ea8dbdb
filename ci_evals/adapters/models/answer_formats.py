"""The ways to ask a model for an answer that fits a schema, and what a refusal says of them. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from ci_evals.ports import Prompt
from ci_evals.support.templates import render

_JSON_ANSWER = "adapters/prompts/json_answer.md.j2"
_KEYS = frozenset({"response_format", "output_config"})
_MAYBE_FORMAT = frozenset({400, 404, 422, 501})
"""Statuses that may be about the format even if the message does not mention it."""
_NEVER_FORMAT = frozenset({401, 402, 403, 408, 429, 529})
_MENTIONS_FORMAT = re.compile(
    r"response_format|json_schema|json_object|json[ _]mode|output_config|schema|structured|grammar|gbnf"
    r"|guided[ _](json|decoding)",
    re.IGNORECASE,
)
_OTHER_CAUSE = re.compile(
    r"(model|deployment)\b.{0,200}\b(not (found|exist)|unavailable)|(unknown|invalid|no such) model"
    r"|model_not_found|\bmodel:|context[ _]?(length|window|size)|too long|too many tokens",
    re.IGNORECASE,
)


class AnswerFormat(StrEnum):
    """A way to request an answer that fits a schema."""

    JSON_SCHEMA = "json_schema"
    """The request holds the schema, and the provider enforces it."""
    JSON_OBJECT = "json_object"
    """The provider guarantees JSON; the prompt holds the schema."""
    TEXT = "text"
    """The prompt holds the schema; the provider guarantees nothing."""


def asks_for_format(body: Mapping[str, Any]) -> bool:
    """Return whether a request asks for another format than text."""
    return not _KEYS.isdisjoint(body)


def names_format(status: int, detail: str) -> bool:
    """Return whether a refusal is about the answer format: some servers answer 500 to an unknown one."""
    return status not in _NEVER_FORMAT and _MENTIONS_FORMAT.search(detail) is not None


def may_mean_format(status: int, detail: str) -> bool:
    """Return whether a refusal may be about the answer format."""
    is_unclear = status in _MAYBE_FORMAT and not _OTHER_CAUSE.search(detail)
    return is_unclear or names_format(status, detail)


def with_schema(prompt: Prompt) -> Prompt:
    """Put a prompt's schema into its text, for a model that is asked in plain text."""
    if prompt.schema is None:
        return prompt
    schema = json.dumps(prompt.schema, indent=2, ensure_ascii=False)
    return replace(prompt, text=render(_JSON_ANSWER, text=prompt.text, schema=schema))
