"""Extraction of a parameter's value from a user's message."""

import re
from typing import assert_never

from pydantic import JsonValue

from ci_evals.extensions.demo.playbook import Parameter, Phrases

_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_MAX_DIGITS = 15
"""Longer ones are no amounts, and Python refuses to read the very long ones."""


def value(parameter: Parameter, message: str) -> JsonValue:
    """Return the parameter's value; None if the message has none."""
    text = _first(parameter.patterns, message)
    if text is not None:
        return _typed(parameter, text)
    for meaning, phrases in parameter.values.items():
        if any(phrase.search(message) for phrase in phrases):
            return meaning
    return None


def answer(parameter: Parameter, message: str) -> JsonValue:
    """Return the value in an answer to the parameter's question, where a bare "5" is enough, if any."""
    text = _first(parameter.when_asked, message)
    return None if text is None else _typed(parameter, text)


def _first(phrases: Phrases, message: str) -> str | None:
    """Return the match of the first pattern that matches: its first group that took part, or the whole."""
    for phrase in phrases:
        if match := phrase.search(message):
            text = next((group for group in match.groups() if group is not None), match[0])
            return text.strip(" .,;!?")
    return None


def _typed(parameter: Parameter, text: str) -> JsonValue:
    match parameter.type:
        case "upper":
            return text.upper()
        case "number":
            digits = text.replace(",", "")
            if len(digits) > _MAX_DIGITS or not _NUMBER.fullmatch(digits):
                return text
            return float(digits) if "." in digits else int(digits)
        case "text":
            return text
        case _:
            assert_never(parameter.type)
