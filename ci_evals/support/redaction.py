"""Redaction: takes secrets out of everything that leaves the program.

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
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property, reduce
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr

from ci_evals.support import secrets
from ci_evals.support.secret_forms import Form, forms_of
from ci_evals.support.text import bare

MASK = "***"
MIN_LENGTH = secrets.MIN_LENGTH
"""Shorter keys and values are not redacted: they would blot out ordinary words. No real key is as short."""

_BETWEEN = '\n"'
"""Stands between texts that are searched as one, so that none changes what is found in the next: no sign of a
secret holds a quotation mark, and no terminal escape continues behind the end of its line."""

_MOST_TEXTS = 20_000
"""The most texts searched as one. A trial has some thousand; those of a run would fill the memory."""

M = TypeVar("M")


class Clean:
    """A mark of a field that the tool made itself, or its user typed: nothing foreign can put a secret there.

    Names of folders, digests and the like would break if a value such as today's date were taken out of them.
    """


class Redactable(Iterable[BaseModel]):
    """A collection of models, each redacted by itself."""

    __slots__ = ()

    @property
    def json_at_hand(self) -> bytes | None:
        """All of them as JSON in lines, where that costs nothing more."""
        return None

    def changed(self, change: Callable[[Any], Any]) -> Self:
        """Return a collection of what `change` makes of each model."""
        raise NotImplementedError


class Redactor:
    """Replaces every known secret by `***`."""

    def __init__(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self.keys = frozenset(
            key for key in keys if len(key.strip()) >= MIN_LENGTH and not secrets.is_dummy(key)
        )
        self.values = frozenset(value for value in values if len(value.strip()) >= MIN_LENGTH)

    def knowing(self, keys: Iterable[str] = (), values: Iterable[str] = ()) -> "Redactor":
        """Return a redactor that knows these secrets too."""
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
        """Return a model or dataclass; where a string in it holds a secret, a copy without it.

        Enumerated values stay.
        """
        if self._is_clear(model):
            return model
        kind: Any = type(model)
        changes = {name: self._field(getattr(model, name)) for name in _open_fields(kind)}
        if not isinstance(model, BaseModel):
            return replace(model, **changes)  # type: ignore[type-var]  # a dataclass, or it has no fields
        copy = model.model_copy(update=changes)
        # A matcher's conditions are the fields that were given: those that are copied were not.
        object.__setattr__(copy, "__pydantic_fields_set__", {*model.model_fields_set})
        return copy

    def json(self, value: Any) -> Any:
        """A JSON value, or where a string, a key or a number in it holds a secret a copy without it."""
        return value if self._is_clear(value) else self._item(value)

    def _is_clear(self, value: Any) -> bool:
        """Return whether a quick search finds no secret.

        All its texts are searched as one, which takes a small part of the time of a search in each.
        """
        if not (self.keys or self.values):
            return True
        texts = _texts(value)
        whole = _BETWEEN.join(dict.fromkeys(texts))  # each once: a trace has the same names in every span
        return len(texts) <= _MOST_TEXTS and self.text(whole) == whole

    def _field(self, value: Any) -> Any:
        match value:
            case dict() | list():
                return self.json(value)
            case Redactable():
                return value.changed(self.model)
            case _:
                return self._value(value)

    def _value(self, value: Any) -> Any:
        match value:
            case Enum() | SecretStr():
                return value
            case str():
                return self.text(value)
            case _ if isinstance(value, BaseModel) or is_dataclass(value):
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
        """Redact an item of JSON, where a secret of digits may have become a number."""
        if type(value) in {int, float}:
            number = repr(value)
            return value if self.text(number) == number else MASK
        return self._value(value)

    @cached_property
    def _known(self) -> "_Forms":
        return _Forms(self.keys | self.values)


@cache
def _open_fields(kind: Any) -> tuple[str, ...]:
    """Return the fields that may hold any text: no numbers or words of a closed set, not marked as clean."""
    return tuple(
        name
        for name, annotation, marks in _typed_fields(kind)
        if not _is_closed(annotation) and not any(isinstance(mark, Clean) for mark in marks)
    )


def _typed_fields(kind: type[Any]) -> Iterator[tuple[str, Any, Iterable[object]]]:
    """Yield the name, type and marks of each field of a model or dataclass."""
    if issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            yield name, info.annotation, info.metadata
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            annotation, *marks = get_args(hint)
            yield field.name, annotation, marks
        else:
            yield field.name, hint, ()


def _is_closed(kind: Any) -> bool:
    """Return whether values of this type are numbers or words of a closed set, or None."""
    match get_origin(kind):
        case None:
            return isinstance(kind, type) and issubclass(kind, int | float | Enum | NoneType)
        case origin if origin is Union or origin is UnionType:
            return all(map(_is_closed, get_args(kind)))
        case origin:
            return origin is Literal


def _texts(value: Any) -> list[str]:
    """Return the texts, names and numbers in a value: all that may be redacted, and maybe more.

    Of a value with more than `_MOST_TEXTS` it is a part.
    """
    texts: list[str] = []
    left = [value]
    while left and len(texts) <= _MOST_TEXTS:
        part = left.pop()
        if type(part) is str:
            texts.append(part)
        elif part is not None:
            opened = _opened(part.__class__)
            if opened is None:
                texts += _texts_of_json(part)
            else:
                left += opened(part)
    return texts


@cache
def _opened(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return what takes out the parts of such a value that may hold text; None if it is JSON."""
    if issubclass(kind, BaseModel) or is_dataclass(kind):
        names = _open_fields(kind)
        return lambda model: [getattr(model, name) for name in names]
    if issubclass(kind, Redactable):
        return lambda models: [text] if (text := _text_of_lines(models.json_at_hand)) else models
    return tuple if issubclass(kind, tuple) else None


def _text_of_lines(json: bytes | None) -> str | None:
    """Return the lines of JSON, each once, as the text that they stand for; None if that is not as easy."""
    if json is None:
        return None
    text = "\n".join(dict.fromkeys(json.decode().split("\n")))
    if "\\\\" not in text:
        text = text.replace('\\"', '"').replace("\\n", "\n")
    return None if "\\" in text else text


def _texts_of_json(value: Any) -> list[str]:
    texts: list[str] = []
    found = [value]
    for part in found:  # it grows meanwhile
        kind = type(part)
        if kind is str:
            texts.append(part)
        elif kind is dict:
            texts += map(str, part)
            found += part.values()
        elif kind is list or kind is tuple:
            found += part
        elif kind is int or kind is float:
            texts.append(repr(part))
        elif part is not None and kind is not bool:
            texts += _texts_of_rare(part)
    return texts


def _texts_of_rare(part: Any) -> list[str]:
    """Return the texts in values that JSON does not have, such as records and enumerated keys."""
    match part:
        case dict():
            return _texts_of_json({**part})
        case list() | tuple():
            return _texts_of_json([*part])
        case str() if not isinstance(part, Enum):
            return [part]
        case BaseModel():
            return _texts(part)
        case _ if is_dataclass(part):
            return _texts(part)
    return []


class _Forms:
    """All the ways in which some secrets may be written.

    A pattern is tried on a text only where one of its signs is there: looking for those is many times as
    fast, so that a text of 16 MB is searched for twenty secrets in less than a second.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = {form for secret in secrets for form in (secret.strip(), bare(secret).strip()) if form}
        forms = {form for text in texts for form in forms_of(text)}
        self._forms: dict[str, list[Form]] = {}
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
            spans += self._spans(reduce(lambda text, end: text.replace(end, " " * len(end)), _ENDS, text))
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
        return [found.span() for form in self._in(text) for found in form.pattern.finditer(text)]

    def _in(self, text: str) -> set[Form]:
        found: set[Form] = set()
        if not self._signs or (text.isascii() and len(text) < self._lengths[0]):
            return found
        data = _squeezed(text)
        for sign in self._signs[: bisect_right(self._lengths, len(data))]:
            if sign in data:
                found.update(self._forms[sign])
        return found


def _squeezed(text: str) -> str:
    """Return the text without its white space.

    For a search of ASCII alone: any other character stands there as what its bytes are in Latin 1.
    """
    data = text.encode(errors="surrogatepass").translate(None, b" \t\n\r\v\f")
    return data.decode("latin-1").replace("\xc2\xa0", "")


_ENDS = tuple("\\" * depth + letter for depth in (8, 4, 2, 1) for letter in "nr")
