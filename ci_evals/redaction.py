"""The one place where secrets are taken out of what leaves the program.

Results are redacted as values, each trial as it ends and the whole before any report is made of it; log
lines and error messages go through the same object. Two kinds are kept apart: *keys* (API keys and tokens) go
nowhere but to the service they open; *values* (taken from the environment into a suite) may be told to the
agent and the simulated user, who need them, but to no file, log, comment or judge.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache, cached_property
from html.entities import codepoint2name
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel, SecretStr

from ci_evals.domain.base import Clean
from ci_evals.domain.text import bare

MASK = "***"
MIN_LENGTH = 8
"""Shorter keys and values are not redacted: they would blot out ordinary words. No real key is as short."""

_SHORTEST_FORM = 6
"""Shorter parts of an encoded secret are not looked for."""

M = TypeVar("M", bound=BaseModel)


class Redactor:
    """Replaces every known secret by `***`."""

    def __init__(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self.keys = frozenset(key for key in keys if len(key.strip()) >= MIN_LENGTH)
        self.values = frozenset(value for value in values if len(value.strip()) >= MIN_LENGTH)

    def text(self, text: str) -> str:
        """`text` without any secret, also none that would show once a report took out what cannot be seen.

        Only a text with such a secret loses its invisible characters and terminal escapes here.
        """
        text = self._known.hidden(text)
        seen = bare(text)
        return text if seen == text else self._known.hidden(seen, otherwise=text)

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
    def _known(self) -> "_Forms":
        return _Forms(self.keys | self.values)


@cache
def _open_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields that may hold any text: not words of a closed set, and not marked as clean."""
    fields = model.model_fields.items()
    return tuple(
        name
        for name, info in fields
        if get_origin(info.annotation) is not Literal
        and not any(isinstance(mark, Clean) for mark in info.metadata)
    )


class _Forms:
    """All the ways in which some secrets may be written, as one pattern, the longest first."""

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = {form for secret in secrets for form in (secret.strip(), bare(secret).strip()) if form}
        forms = {text: _readable(text) for text in texts}
        for text in texts:
            forms |= _encoded(text)
        self._pattern = re.compile("|".join(forms[form] for form in sorted(forms, key=len, reverse=True)))
        # Letters and digits are written as they are in every form: no text holds a secret without these,
        # and looking for them is ten times as fast as the pattern.
        self._signs = frozenset(max(_LETTERS.findall(form), key=len, default="") for form in forms)

    def hidden(self, text: str, otherwise: str | None = None) -> str:
        """`text` without the secrets; if there are none in it, `otherwise` where that is given."""
        if any(sign in text for sign in self._signs):
            clear, found = self._pattern.subn(MASK, text)
            if found:
                return clear
        return text if otherwise is None else otherwise


def _readable(secret: str) -> str:
    """Matches the secret as it is and as it stands, or partly stands, in JSON, addresses, forms and HTML.

    Without white space around it: a file's last line end often comes along, and nobody echoes that. Within,
    any white space will do, since reports fold it.
    """
    return "".join(
        _SPACE if run[0].isspace() else _character(run[0], len(run))
        for run in (found[0] for found in re.finditer(r"\s+|\\+|.", secret, re.DOTALL))
    )


_SPACE = (
    r"(?:\s|\+|(?i:%(?:c2%a0|[02][09ad])|&(?:nbsp|#0*(?:9|10|13|32|160));"
    r"|\\{1,4}(?:[tnr]|u00(?:[02][09ad]|a0))))+"
)


def _character(character: str, times: int) -> str:
    """Matches one character, or a run of backslashes, in the ways in which programs write it.

    Repetition is bounded throughout, so that no text makes the search slow.
    """
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    if character == "\\":
        return rf"(?:\\{{{times},{4 * times}}}|(?i:(?:%5c|\\{{1,4}}u005c|&#0*92;|&#x0*5c;){{{times}}}))"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\{{1,4}}u{units[place : place + 4]}" for place in range(0, len(units), 4))
    # Half of a surrogate pair has no bytes, and no place in an address.
    percent = "".join(f"%{byte:02x}" for byte in character.encode(errors="replace"))
    names = "|".join(filter(None, (f"#0*{code}", f"#x0*{code:x}", _ENTITIES.get(code))))
    entity = rf"&(?:amp;){{0,3}}(?:{names});"
    short = rf"|\\{{1,4}}{_SHORT_ESCAPES[character]}" if character in _SHORT_ESCAPES else ""
    lost = "|\ufffd" if 0xD800 <= code <= 0xDFFF else ""
    return rf"(?:\\{{0,4}}{re.escape(character)}|(?i:{percent}|{escaped}|{entity}){short}{lost})"


_LETTERS = re.compile(r"[A-Za-z0-9]+")
_ENTITIES = codepoint2name | {ord("'"): "apos"}
_SHORT_ESCAPES = {"\b": "b", "\f": "f"}


def _encoded(secret: str) -> Iterator[tuple[str, str]]:
    """The secret within a text in base 64, as a Basic header has it: what to look for, and what matches that.

    Where it begins on the second or third byte of a group, the characters at its ends hold bits of its
    neighbours too: the first is left standing, the last is taken along.
    """
    data = secret.encode(errors="replace")
    for offset in range(3):
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        found = b64encode(bytes(offset) + data).decode()[first:last]
        if len(found) >= _SHORTEST_FORM:
            yield found, "".join(map(_sextet, found)) + "[A-Za-z0-9+/_-]?(?:=|(?i:%3d)){0,2}"


def _sextet(character: str) -> str:
    """Matches a character of base 64 in both alphabets, also within JSON or an address."""
    match character:
        case "+":
            return r"(?:[+-]|(?i:%2b|\\u002b|&#43;|&#x2b;))"
        case "/":
            return r"(?:\\{0,4}/|_|(?i:%2f|\\u002f|&#47;|&#x2f;))"
        case _:
            return character
