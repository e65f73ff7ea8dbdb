"""A model's answer as JSON of a certain form, read where it is unambiguous."""

import json
from collections.abc import Iterator
from json import JSONDecoder
from typing import TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

MOST_OF_ANSWER = 100_000
"""Characters: a model's reasoning takes some hundreds of words."""

_BEGIN_OF_THOUGHT, _END_OF_THOUGHT = "<think>", "</think>"
_MIN_REASONING = 20
"""Characters of a reasoning that no other text has by chance."""


def parse_answer(model: type[M], text: str, shown: str = "") -> M | None:
    """Return a model's answer as `model`; None if there is none, or more than one.

    The answer is JSON: alone, in a code fence, after the model's thinking, or as the only object among words.
    Two different objects, or a brace that belongs to none, leave open which of them is the answer. So does an
    object among words that stands in `shown`, the texts of others that the model was asked about: it may
    be a quotation.
    """
    if len(text) > MOST_OF_ANSWER:
        return None
    whole = _unfenced(text)
    if (value := _parsed(whole)) is not None:
        return _as(model, value)
    # Only what follows a model's thinking is its answer.
    _, _, said = text.rpartition(_END_OF_THOUGHT)
    if said != text and (value := _parsed(_unfenced(said))) is not None:
        return _as(model, value)
    found = None if _BEGIN_OF_THOUGHT in said else _only_object(said)
    if found is None or _occurs(found, shown):
        return None
    answer = _as(model, _parsed(found))
    reasoning = getattr(answer, "reasoning", "")
    return None if len(reasoning) >= _MIN_REASONING and _occurs(reasoning, shown) else answer


def is_object(text: str) -> bool:
    """Return whether a text is one JSON object, alone or in a code fence."""
    return len(text) <= MOST_OF_ANSWER and isinstance(_parsed(_unfenced(text)), dict)


def _unfenced(text: str) -> str:
    """Return the content of a code fence around the whole text, else the text."""
    lines = text.strip().splitlines()
    if len(lines) > 2 and lines[0].rstrip() in {"```", "```json"} and lines[-1] == "```":
        return "\n".join(lines[1:-1])
    return text


def _as(model: type[M], value: object) -> M | None:
    try:
        return model.model_validate(value)
    except (ValueError, RecursionError):  # pydantic's ValidationError is a ValueError
        return None


def _parsed(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError):
        return None


def _only_object(text: str) -> str | None:
    """Return the one JSON object among words; None if there are others, or braces outside of it."""
    objects: dict[str, str] = {}
    between = 0
    for start, end in _objects(text):
        if _has_brace(text[between:start]):
            return None
        value = text[start:end]
        objects.setdefault(json.dumps(_parsed(value), sort_keys=True), value)
        between = end
    if len(objects) != 1 or _has_brace(text[between:]):
        return None
    return next(iter(objects.values()))


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Yield where JSON objects start and end, up to the first brace that begins none."""
    decoder = JSONDecoder(object_pairs_hook=_no_duplicates)
    start = text.find("{")
    while start >= 0:
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield start, end
        start = text.find("{", end)


def _has_brace(text: str) -> bool:
    return "{" in text or "}" in text


def _occurs(text: str, shown: str) -> bool:
    return _squeezed(text) in _squeezed(shown)


def _squeezed(text: str) -> str:
    """Return the text without white space, and without the escapes that it gets inside of JSON."""
    return "".join(text.replace("\\n", "").replace("\\t", "").replace("\\", "").split())


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A second `verdict` must not quietly replace the first."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)
