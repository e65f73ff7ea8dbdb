"""The one place where secrets are taken out of what leaves the program.

Results are redacted as values, each trial as it ends and the whole before any report is made of it; log
lines and error messages go through the same object. Two kinds are kept apart: *keys* (API keys and tokens) go
nowhere but to the service they open; *values* (taken from the environment into a suite) may be told to the
agent and the simulated user, who need them, but to no file, log, comment or judge.

A secret is found as it is and as programs write it for one another: within JSON, an address, a form or HTML,
also twice over; in a program's own notation; in base 64 and in hexadecimal, itself or as JSON or an
address has it; and broken by white space anywhere. What hides it on purpose (reversed, encrypted, compressed,
in base 64 twice) or shows a part of it is not found: whoever holds a secret can tell it in endless ways.
"""

import json
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, lru_cache, reduce
from html.entities import codepoint2name
from typing import Any, Literal, TypeVar, get_origin
from urllib.parse import quote, quote_plus

from pydantic import BaseModel, SecretStr

from ci_evals.domain import secrets
from ci_evals.domain.base import Clean
from ci_evals.domain.text import bare
from ci_evals.domain.transcript import Exchanges

MASK = "***"
MIN_LENGTH = secrets.MIN_LENGTH
"""Shorter keys and values are not redacted: they would blot out ordinary words. No real key is as short."""

_SHORTEST_FORM = 6
"""Shorter parts of a secret in base 64 are not looked for."""

M = TypeVar("M", bound=BaseModel)


class Redactor:
    """Replaces every known secret by `***`."""

    def __init__(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self.keys = frozenset(key for key in keys if len(key.strip()) >= MIN_LENGTH)
        self.values = frozenset(value for value in values if len(value.strip()) >= MIN_LENGTH)

    def knowing(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> "Redactor":
        """The redactor that knows these secrets too."""
        return Redactor(self.keys.union(keys), self.values.union(values))

    def text(self, text: str) -> str:
        """`text` without any secret, also none that would show once a report took out what cannot be seen."""
        clear = self._known.hidden(text)
        whole = clear.replace("\r", "\n")  # white space is no news to us
        seen = bare(whole)
        if seen == whole:
            return clear
        hidden = self._known.hidden(seen)
        return clear if hidden == seen else hidden

    def text_to_read(self, text: str) -> str:
        """`text` without any secret, also none that shows once it is read as JSON, if it is such."""
        clear = self.text(text)
        try:
            value = json.loads(clear)
        except (ValueError, RecursionError):
            return clear
        hidden = self.json(value)
        return clear if hidden == value else json.dumps(hidden, ensure_ascii=False)

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
            case Exchanges():
                return value.changed(self.model)
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


@dataclass(frozen=True)
class _Form:
    """One way of writing a secret."""

    source: str
    """The pattern that matches it, in all its shades."""
    signs: frozenset[str]
    """No text is it without one of these, white space apart."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


class _Forms:
    """All the ways in which some secrets may be written.

    A pattern is tried on a text only where one of its signs is there: looking for those is many times as
    fast, so that a text of 16 MB is searched for twenty secrets in less than a second.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = {form for secret in secrets for form in (secret.strip(), bare(secret).strip()) if form}
        forms = {form for text in texts for form in _forms_of(text)}
        self._forms: dict[str, list[_Form]] = {}
        for form in forms:
            for sign in form.signs:
                self._forms.setdefault(sign, []).append(form)
        self._signs = sorted(self._forms, key=len)
        self._lengths = [len(sign) for sign in self._signs]

    def hidden(self, text: str) -> str:
        """`text` without the secrets."""
        spans = self._spans(text)
        if "\\n" in text or "\\r" in text:
            # Lines within JSON within this text; as many blanks, so that every place stays the same.
            spans += self._spans(reduce(lambda told, end: told.replace(end, " " * len(end)), _ENDS, text))
        if not spans:
            return text
        clear, end = [], 0
        for first, last in sorted(spans):
            # What two secrets share is hidden with both.
            if first >= end:
                clear += [text[end:first], MASK]
            end = max(end, last)
        return "".join([*clear, text[end:]])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """From where to where the secrets stand."""
        return [found.span() for form in self._in(text) for found in form.pattern.finditer(text)]

    def _in(self, text: str) -> set[_Form]:
        """The forms whose signs are in the text."""
        found: set[_Form] = set()
        if not self._signs or (text.isascii() and len(text) < self._lengths[0]):
            return found
        data = _squeezed(text)
        for sign in self._signs[: bisect_right(self._lengths, len(data))]:
            if sign in data:
                found.update(self._forms[sign])
        return found


@lru_cache(1000)
def _forms_of(secret: str) -> tuple[_Form, ...]:
    """Kept, since every part of a run that speaks to somebody has a redactor of its own."""
    return (_readable(secret), *_encoded(secret))


def _squeezed(text: str) -> str:
    """The text without its white space.

    For a search of ASCII alone: any other character stands there as what its bytes are in Latin 1.
    """
    data = text.encode(errors="surrogatepass").translate(None, b" \t\n\r\v\f")
    return data.decode("latin-1").replace("\xc2\xa0", "")


_ENDS = tuple("\\" * depth + letter for depth in (8, 4, 2, 1) for letter in "nr")
_GAP = r"\s*"
"""White space may break a secret anywhere."""
_SPACE = (
    r"(?:\s|\+|%(?:25){0,2}(?:[cC]2%(?:25){0,2}[aA]0|2[bB0]|0[9aAdD])"
    r"|&(?:amp;){0,3}(?:nbsp|#0*(?:9|10|13|32|160)|#[xX]0*(?:9|[aA]|[dD]|20|[aA]0));"
    r"|\\{1,8}(?:[tnr]|u00(?:[02][09aAdD]|[aA]0)|xa0))+"
)


def _readable(secret: str) -> _Form:
    """The secret as it is and as it stands, or partly stands, in JSON, addresses, forms, HTML and programs.

    Without white space around it: a file's last line end often comes along, and nobody echoes that. Within,
    any white space will do, since reports fold it.
    """
    parts = [found[0] for found in re.finditer(r"\s+|\\+|.", secret, re.DOTALL)]
    source, gap = "", ""
    for part in parts:
        if part.isspace():
            source, gap = source + _SPACE, ""
        else:
            source, gap = source + gap + _character(part[0], len(part)), _GAP
    return _Form(source, frozenset({_longest_run(secret)}))


def _character(character: str, times: int) -> str:
    """Matches one character, or a run of backslashes, in the ways in which programs write it.

    Repetition is bounded throughout, so that no text makes the search slow. Each way begins with a sign of
    its own, so that `re` need not try each at every place.
    """
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    if character == "\\":
        single = r"%(?:25){0,2}5[cC]|\\{1,8}(?:u005[cC]|x5[cC])|&(?:amp;){0,3}#(?:0*92|[xX]0*5[cC]);"
        return rf"(?:\\{{{times},{8 * times}}}|(?:{single}){{{times}}})"
    # Half of a surrogate pair has no bytes, and no place in an address.
    data = character.encode(errors="replace")
    names = (f"#0*{code}", f"#[xX]0*{_hex(f'{code:x}')}", _ENTITIES.get(code))
    return "(?:{})".format(
        "|".join(
            (
                re.escape(character),
                rf"\\\\{{0,7}}(?:{'|'.join(_escapes(character))})",
                "".join(f"%(?:25){{0,2}}{_hex(f'{byte:02x}')}" for byte in data),
                *([f"%(?:25){{0,2}}{_hex(f'{code:02x}')}"] if 0x80 <= code < 0x100 else []),
                rf"&(?:amp;){{0,3}}(?:{'|'.join(filter(None, names))});",
                *([r"'(?:\\{1,8}'|\"'\")'"] if character == "'" else []),  # as in a shell
                *(["\ufffd"] if 0xD800 <= code <= 0xDFFF else []),
            )
        )
    )


def _escapes(character: str) -> Iterator[str]:
    """What stands for a character behind a backslash, in JSON and in programs."""
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    data = character.encode(errors="replace")
    yield re.escape(character)
    yield r"\\{1,8}".join(f"u{_hex(units[place : place + 4])}" for place in range(0, len(units), 4))
    yield r"\\{1,8}".join(f"x{_hex(f'{byte:02x}')}" for byte in data)
    yield rf"u\{{0*{_hex(f'{code:x}')}\}}"
    yield f"U{_hex(f'{code:08x}')}"
    if code < 0x100:
        yield f"x{_hex(f'{code:02x}')}"
    if character in _SHORT_ESCAPES:
        yield _SHORT_ESCAPES[character]


def _hex(digits: str) -> str:
    """Matches hexadecimal digits in upper and lower case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


_RUN = re.compile(r"[A-Za-z0-9]+")
_ENTITIES = codepoint2name | {ord("'"): "apos"}
_SHORT_ESCAPES = {"\b": "b", "\f": "f"}


def _longest_run(secret: str) -> str:
    """The longest run of letters and digits: those are written as they are in every form.

    Empty where there is none.
    """
    return max(_RUN.findall(secret), key=len, default="")


def _within(secret: str) -> tuple[str, ...]:
    """A secret as it stands in JSON, in an address and in a form."""
    plain = secret.encode(errors="replace").decode()  # half of a surrogate pair has no place in an address
    dumped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    return (secret, *dumped, quote(plain, safe=""), quote(plain, safe="!*'()"), quote_plus(plain))


def _encoded(secret: str) -> Iterator[_Form]:
    """The secret, or what JSON or an address makes of it, in base 64 and in hexadecimal.

    What is in base 64 has its longest run of letters in one of three forms too: these are its signs.
    """
    data = secret.encode(errors="replace")
    written = {text.encode(errors="replace") for text in _within(secret)}
    with_latin = {secret.encode("latin-1", "replace")} - {secret.encode("ascii", "replace")}
    signs = frozenset(_in_base64(_longest_run(secret).encode()))
    for text in {text for inner in written | with_latin for text in _in_base64(inner)}:
        source = _GAP.join(map(_sextet, text)) + rf"(?:{_GAP}[A-Za-z0-9+/_-])?(?:=|%3[dD]){{0,2}}"
        yield _Form(source, signs if len(signs) == len(_OFFSETS) else frozenset({_longest_run(text)}))
    digits = data.hex()
    yield _Form(_GAP.join(map(_hex, digits)), frozenset({digits, digits.upper()}))


def _in_base64(data: bytes) -> list[str]:
    """Bytes within a text in base 64, as a Basic header has them.

    Where they begin on the second or third byte of a group, the characters at their ends hold bits of their
    neighbours too and are left out.
    """
    texts = []
    for offset in _OFFSETS:
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        texts.append(b64encode(bytes(offset) + data).decode()[first:last])
    return [text for text in texts if len(text) >= _SHORTEST_FORM]


_OFFSETS = range(3)


def _sextet(character: str) -> str:
    """Matches a character of base 64 in both alphabets, also within JSON or an address."""
    match character:
        case "+":
            return r"(?:[+-]|%(?:25){0,2}2[bB]|\\{1,8}u002[bB]|&#(?:43|[xX]2[bB]);)"
        case "/":
            return r"(?:\\{0,8}/|_|%(?:25){0,2}2[fF]|\\{1,8}u002[fF]|&#(?:47|[xX]2[fF]);)"
        case _:
            return character
