"""How a parameter's value is taken from what the user says."""

import re
from typing import assert_never

from pydantic import JsonValue

from ci_evals.demo_agent.playbook import Parameter, Phrases

_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_MOST_DIGITS = 15
"""Longer ones are no amounts, and Python refuses to read the very long ones."""


def value(parameter: Parameter, said: str) -> JsonValue:
    """The parameter's value, or null where the message holds none."""
    text = _first(parameter.patterns, said)
    if text is not None:
        return _typed(parameter, text)
    for meaning, phrases in parameter.values.items():
        if any(phrase.search(said) for phrase in phrases):
            return meaning
    return None


def answer(parameter: Parameter, said: str) -> JsonValue:
    """The value as an answer to the parameter's question: a bare "5" will do then. Null for none."""
    text = _first(parameter.when_asked, said)
    return None if text is None else _typed(parameter, text)


def _first(phrases: Phrases, said: str) -> str | None:
    """What the first pattern that is found has caught: its first group that took part, or the whole of it."""
    for phrase in phrases:
        if match := phrase.search(said):
            caught = next((group for group in match.groups() if group is not None), match[0])
            return caught.strip(" .,;!?")
    return None


def _typed(parameter: Parameter, text: str) -> JsonValue:
    match parameter.type:
        case "upper":
            return text.upper()
        case "number":
            digits = text.replace(",", "")
            if len(digits) > _MOST_DIGITS or not _NUMBER.fullmatch(digits):
                return text
            return float(digits) if "." in digits else int(digits)
        case "text":
            return text
        case _:
            assert_never(parameter.type)
