"""Words for a path of a suite that finds nothing in an agent's answer. Pure."""

import json
from itertools import islice

from pydantic import JsonValue

from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_MAX_ITEMS = 50
"""Items of a list whose form is shown."""


def why_not_found(path: str, option: str, body: JsonValue, redactor: Redactor, unreadable: str = "") -> str:
    """Return why a path of the suite finds no evidence; answers of one form have the same words.

    With `unreadable`, a sentence on what could be read there, the path finds something else.
    """
    form = payload.shorten(json.dumps(redactor.json(_form(body)), ensure_ascii=False))
    nothing = "nothing readable" if unreadable else "nothing"
    hint = unreadable or "Correct the path, or have the agent return an empty value for none"
    return f"{path} (adapterOptions.{option}) finds {nothing} in the answer {form}. {hint}"


def _form(value: JsonValue, depth: int = 5) -> JsonValue:
    """Return the keys of an answer, and what is null or empty in it, but none of its texts and numbers."""
    if value is None or value in ([], {}):
        return value
    if depth and isinstance(value, dict):
        return {key: _form(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list):
        forms: list[JsonValue] = []
        for item in islice(value, _MAX_ITEMS):
            if (form := _form(item, depth - 1)) not in forms:
                forms.append(form)
        return forms
    return "…"
