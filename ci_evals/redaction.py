"""The one place where secrets are taken out of what leaves the program.

Results are redacted once, as a value, before any report is made of them; log lines and error messages go
through the same object. Two kinds are kept apart: *keys* (API keys and tokens) go nowhere but to the service
they open; *values* (taken from the environment into a suite) may be told to the agent and the simulated user,
who need them, but to no file, log, comment or judge.
"""

import json
import re
from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeVar, get_origin

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
        changes = {
            name: self._value(getattr(model, name))
            for name, info in type(model).model_fields.items()
            if get_origin(info.annotation) is not Literal
        }
        return model.model_copy(update=changes)

    def json(self, value: Any) -> Any:
        """A copy of a JSON value in which neither a string nor a key holds a secret."""
        return self._value(value)

    def _value(self, value: Any) -> Any:
        match value:
            case Enum() | SecretStr():
                return value
            case str():
                return self.text(value)
            case BaseModel():
                return self.model(value)
            case dict():
                return {
                    self.text(key) if type(key) is str else key: self._value(item)
                    for key, item in value.items()
                }
            case list() | tuple():
                return type(value)(self._value(item) for item in value)
            case _:
                return value

    @cached_property
    def _all(self) -> re.Pattern[str] | None:
        return _pattern(self.keys | self.values)


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Matches each secret as it is and as it stands inside a JSON string, the longest first."""
    forms = {form for secret in secrets for form in (secret, *_json_forms(secret)) if form}
    return (
        re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
        if forms
        else None
    )


def _json_forms(secret: str) -> tuple[str, str]:
    return json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]
