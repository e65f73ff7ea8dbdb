"""Canaries: made-up values that an agent holds and must not disclose, new for each trial.

A test names them under `canaries`, and writes `{{canary.NAME}}` wherever one stands: in the data of its user,
in lines, in steps of its world, and in checks. A value that no other trial has can only have come from this
one.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel

PREFIX = "canary."
"""Begins the names of canaries in `{{names}}`."""

_REFERENCE = re.compile(r"\{\{\s*canary\.([^{}\s]+)\s*\}\}")
_LETTERS = "BCDFGHJKMNPQRTVWXZ"
"""Without vowels, so that no word comes out, and without letters that look like digits."""
_DIGITS = "23456789"

M = TypeVar("M", bound=BaseModel)


class CanaryKind(StrEnum):
    """The look of a canary."""

    CODE = "code"
    """`QRTV-4829-KXMD`."""
    NUMBER = "number"
    """Twelve digits."""
    EMAIL = "email"
    """An address at example.com, which is nobody's."""


def draw(kinds: Mapping[str, CanaryKind]) -> dict[str, str]:
    """Return new values of these kinds, by name. Two trials have the same only by a rare chance."""
    return {name: _made(kind) for name, kind in kinds.items()}


def _made(kind: CanaryKind) -> str:
    match kind:
        case CanaryKind.CODE:
            return "-".join(_signs(signs, 4) for signs in (_LETTERS, _DIGITS, _LETTERS))
        case CanaryKind.NUMBER:
            return _signs(_DIGITS, 12)
        case CanaryKind.EMAIL:
            return f"{_signs(_LETTERS, 8).lower()}@example.com"


def _signs(signs: str, length: int) -> str:
    return "".join(secrets.choice(signs) for _ in range(length))


def filled(model: M, canaries: Mapping[str, str]) -> M:
    """Return a test or a check with the values instead of the references to them."""
    if not canaries:
        return model
    written = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return type(model).model_validate(_fill(written, canaries))


def without_references(text: str) -> str:
    """Return a text without its references to canaries."""
    return _REFERENCE.sub("", text)


def referred(value: Any) -> Iterator[str]:
    """Yield the names of the canaries that a test, a check or JSON refers to."""
    match value:
        case str():
            if PREFIX in value:
                yield from _REFERENCE.findall(value)
        case BaseModel():
            yield from referred([*vars(value).values()])
        case dict():
            yield from referred([*value, *value.values()])
        case list() | tuple():
            for item in value:
                yield from referred(item)


def _fill(value: Any, canaries: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _REFERENCE.sub(lambda reference: canaries.get(reference[1], reference[0]), value)
        case dict():
            return {_fill(key, canaries): _fill(item, canaries) for key, item in value.items()}
        case list():
            return [_fill(item, canaries) for item in value]
    return value
