"""The forms in which programs write a secret for one another: patterns, and signs of them.

As it is; within JSON, an address, a form or HTML, also twice over; in a program's own notation; in base 64
and in hexadecimal; and broken by white space anywhere.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html.entities import codepoint2name
from urllib.parse import quote, quote_plus

_SHORTEST_FORM = 6
"""Shorter parts of a secret in base 64 are not looked for."""


@dataclass(frozen=True)
class Form:
    """One way of writing a secret."""

    source: str
    """The pattern that matches it, in all its shades."""
    signs: frozenset[str]
    """No text is it without one of these, white space apart."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.source)


@lru_cache(1000)
def forms_of(secret: str) -> tuple[Form, ...]:
    """Return the forms of a secret; cached, since parts of a run have redactors of their own."""
    return (_readable(secret), *_encoded(secret))


_GAP = r"\s*"
"""White space may break a secret anywhere."""
_SPACE = (
    r"(?:\s|\+|%(?:25){0,2}(?:[cC]2%(?:25){0,2}[aA]0|2[bB0]|0[9aAdD])"
    r"|&(?:amp;){0,3}(?:nbsp|#0*(?:9|10|13|32|160)|#[xX]0*(?:9|[aA]|[dD]|20|[aA]0));"
    r"|\\{1,8}(?:[tnr]|u00(?:[02][09aAdD]|[aA]0)|xa0))+"
)


def _readable(secret: str) -> Form:
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
    return Form(source, frozenset({_longest_run(secret)}))


def _character(character: str, times: int) -> str:
    """Return a pattern for one character, or a run of backslashes, in the ways in which programs write it.

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
    forms = [
        re.escape(character),
        rf"\\\\{{0,7}}(?:{'|'.join(_escapes(character))})",
        "".join(f"%(?:25){{0,2}}{_hex(f'{byte:02x}')}" for byte in data),
    ]
    if 0x80 <= code < 0x100:
        forms.append(f"%(?:25){{0,2}}{_hex(f'{code:02x}')}")
    forms.append(rf"&(?:amp;){{0,3}}(?:{'|'.join(filter(None, names))});")
    if character == "'":
        forms.append(r"'(?:\\{1,8}'|\"'\")'")  # as in a shell
    if 0xD800 <= code <= 0xDFFF:
        forms.append("\ufffd")
    return f"(?:{'|'.join(forms)})"


def _escapes(character: str) -> Iterator[str]:
    """Yield patterns for a character behind a backslash, in JSON and in programs."""
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    data = character.encode(errors="replace")
    yield re.escape(character)
    yield r"\\{1,8}".join(f"u{_hex(units[start : start + 4])}" for start in range(0, len(units), 4))
    yield r"\\{1,8}".join(f"x{_hex(f'{byte:02x}')}" for byte in data)
    yield rf"u\{{0*{_hex(f'{code:x}')}\}}"
    yield f"U{_hex(f'{code:08x}')}"
    if code < 0x100:
        yield f"x{_hex(f'{code:02x}')}"
    if character in _SHORT_ESCAPES:
        yield _SHORT_ESCAPES[character]


def _hex(digits: str) -> str:
    """Return a pattern for hexadecimal digits in upper and lower case."""
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


def _encoded(secret: str) -> Iterator[Form]:
    """The secret, or what JSON or an address makes of it, in base 64 and in hexadecimal.

    What is in base 64 has its longest run of letters in one of three forms too: these are its signs.
    """
    data = secret.encode(errors="replace")
    written = {text.encode(errors="replace") for text in _within(secret)}
    with_latin = {secret.encode("latin-1", "replace")} - {secret.encode("ascii", "replace")}
    signs = frozenset(_in_base64(_longest_run(secret).encode()))
    for text in {text for inner in written | with_latin for text in _in_base64(inner)}:
        source = _GAP.join(map(_sextet, text)) + rf"(?:{_GAP}[A-Za-z0-9+/_-])?(?:=|%3[dD]){{0,2}}"
        yield Form(source, signs if len(signs) == len(_OFFSETS) else frozenset({_longest_run(text)}))
    digits = data.hex()
    yield Form(_GAP.join(map(_hex, digits)), frozenset({digits, digits.upper()}))


def _in_base64(data: bytes) -> list[str]:
    """Bytes within a text in base 64, as a Basic header has them.

    Where they begin on the second or third byte of a group, the characters at their ends hold bits of their
    neighbors too and are left out.
    """
    texts = []
    for offset in _OFFSETS:
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        texts.append(b64encode(bytes(offset) + data).decode()[first:last])
    return [text for text in texts if len(text) >= _SHORTEST_FORM]


_OFFSETS = range(3)


def _sextet(character: str) -> str:
    """Return a pattern for a character of base 64 in both alphabets, also within JSON or an address."""
    match character:
        case "+":
            return r"(?:[+-]|%(?:25){0,2}2[bB]|\\{1,8}u002[bB]|&#(?:43|[xX]2[bB]);)"
        case "/":
            return r"(?:\\{0,8}/|_|%(?:25){0,2}2[fF]|\\{1,8}u002[fF]|&#(?:47|[xX]2[fF]);)"
        case _:
            return character
