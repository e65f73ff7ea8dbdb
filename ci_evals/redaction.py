"""The one place where secrets are taken out of what leaves the program.

Results are redacted once, as a value, before any report is made of them; log lines and error messages go
through the same object. Two kinds are kept apart: *keys* (API keys and tokens) go nowhere but to the service
they open; *values* (taken from the environment into a suite) may be told to the agent and the simulated user,
who need them, but to no file, log, comment or judge.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache, cached_property
from typing import Any, Literal, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, SecretStr

MASK = "***"
MIN_LENGTH = 8
"""Shorter values from the environment are not redacted: they would blot out ordinary words."""

MIN_KEY_LENGTH = 6
"""The same for keys. No real key is as short; `key` or `test` as a key would make every report unreadable."""

M = TypeVar("M", bound=BaseModel)


class Redactor:
    """Replaces every known secret by `***`."""

    def __init__(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self.keys = frozenset(key for key in keys if len(key.strip()) >= MIN_KEY_LENGTH)
        self.values = frozenset(value for value in values if len(value) >= MIN_LENGTH)

    def text(self, text: str) -> str:
        """`text` without any secret."""
        return self._all.sub(MASK, text) if self._all else text

    @cached_property
    def only_keys(self) -> "Redactor":
        """The redactor for the agent and the simulated user: it takes out keys and tokens alone."""
        return Redactor(keys=self.keys)

    def model(self, model: M) -> M:
        """A copy of `model` in which no string holds a secret. Enumerated values stay as they are."""
        changes = {name: self._value(getattr(model, name)) for name in _open_fields(type(model))}
        return model.model_copy(update=changes)

    def json(self, value: Any) -> Any:
        """A copy of a JSON value in which no string, key or number holds a secret."""
        return self._item(value)

    def _value(self, value: Any) -> Any:
        match value:
            case Enum() | SecretStr():
                return value
            case str():
                return self.text(value)
            case BaseModel():
                return self.model(value)
            case dict():
                return {self._key(key): self._under(key, item) for key, item in value.items()}
            case list() | tuple():
                # Lists are JSON of the agent's; the program's own sequences are tuples.
                redacted = self._item if isinstance(value, list) else self._value
                return type(value)(redacted(item) for item in value)
            case _:
                return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if type(key) is str else key

    def _under(self, key: Any, value: Any) -> Any:
        return self._value(value) if isinstance(key, Enum) else self._item(value)

    def _item(self, value: Any) -> Any:
        """What stands in a JSON object or list, where a secret made of digits may have become a number."""
        if type(value) in {int, float}:
            number = repr(value)
            return value if self.text(number) == number else MASK
        return self._value(value)

    @cached_property
    def _all(self) -> re.Pattern[str] | None:
        return _pattern(self.keys | self.values)


@cache
def _open_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields that may hold any text, not only words of a closed set."""
    fields = model.model_fields.items()
    return tuple(name for name, info in fields if get_origin(info.annotation) is not Literal)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Matches each secret in all its forms, the longest first."""
    forms = {form for secret in secrets for form in _forms(secret) if form}
    return (
        re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
        if forms
        else None
    )


def _forms(secret: str) -> Iterator[str]:
    """The secret as it is, and as it stands in a JSON string, an address or a Basic header.

    Without white space around it: a file's last line end often comes along, and nobody echoes that.
    """
    secret = secret.strip()
    yield secret
    for escaped in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield escaped
        yield escaped.replace("/", "\\/")
    # Half of a surrogate pair has no bytes, and no place in an address.
    data = secret.encode(errors="replace")
    yield from (quote(data), quote(data, safe=""), quote_plus(data), b64encode(data).decode().rstrip("="))
