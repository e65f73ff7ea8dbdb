"""Secrets recognized by name and value: in the environment, in addresses, in adapter options."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MIN_LENGTH = 8
"""Characters: what is shorter would blot out ordinary words."""

_DUMMY = re.compile(
    r"(any|api|dummy|empty|example|fake|llm|local|mock|my|no|none|null|nil|openai|sample|test|unused|your)"
    r"([ _-]?(api)?[ _-]?(key|token|secret))?|x+|-+|\*+|0|1|1234|key|token|secret|n/?a|no[ _-]?(auth|op)"
    r"|undefined|placeholder|changeme|anything|whatever|not[ _-]?(needed|required|used|set)"
    r"|(sk-)?no[ _-]?key[ _-]?(required|needed)|sk-(none|dummy|fake|test|local|x+|1234)"
    r"|ollama|lm[ _-]?studio|llama([ _.-]?cpp)?|vllm|localai|sglang|tgi",
    re.IGNORECASE,
)
"""Words instead of a key that nobody checks, as local servers and their documentation use them."""

_NAME = re.compile(
    r"(?:(?:^|[_-])(?:api_?key|key|token|secret|pass|passwd|passphrase|pat|auth|credentials?|cookie|dsn|sas"
    r"|connection_?string)|password)(?:[_-]?\d+)?$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"public|(?:^|[_-])(?:cache|comment|primary|foreign|sort|partition)[_-]key$", re.IGNORECASE
)
_MEMBER = re.compile(
    r"(?:^|[^a-z])(?:key|token|secret|password|passphrase|authorization|signature|sig|code|credentials?)$"
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACE = re.compile(r"\$[.\[]|(?:~|\.{0,2})/|[A-Za-z]:\\|[a-z][a-z0-9+.-]*://")
_MIXED = 16
"""From so many characters on, letters of both cases without a digit are no word either."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
_ALONE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_HOST = re.compile(r"[^@:]*(?::\d*)?|\[[^\]]*\](?::\d*)?")
_PARAMETER = re.compile(r"[?&#;]([^=&#;?]+)=([^&#;]+)")


def in_environment(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets of an environment: keys, tokens and passwords by name, and those in addresses.

    A word, a number, a path and an address are no secrets, however they are called: `DB_PASSWORD=postgres`
    must not blot out every mention of that database.
    """
    for name, value in environ.items():
        if is_secret_name(name) and looks_made(value):
            yield value
        if "://" in value:
            yield from in_addresses(value)


def is_secret_name(name: str) -> bool:
    """Return whether a variable of that name holds a secret."""
    return bool(_NAME.search(name)) and not _NO_SECRET.search(name)


def is_dummy(key: str) -> bool:
    """Return whether a key is a well-known word that opens nothing, such as `none`: that is no secret."""
    return _DUMMY.fullmatch(key.strip()) is not None


def looks_made(value: str) -> bool:
    """Return whether this is hard to guess: it is not a word, a number, a path or an address."""
    text = value.strip()
    if len(text) < MIN_LENGTH or _PLACE.match(text):
        return False
    letters = [char for char in text if char.isalpha()]
    others = [char for char in text if not char.isalpha() and char not in "_-. "]
    if letters and others:
        return True
    return len(text) >= _MIXED and any(map(str.isupper, letters)) and any(map(str.islower, letters[1:]))


def in_addresses(value: Any) -> Iterator[str]:
    """Yield the passwords, and the parameters named like secrets, of all addresses in a text or in JSON.

    As they stand there and as they are meant, if that is not the same. A name without a password is a token.
    """
    match value:
        case str():
            for address in _addresses(value):
                parameters = _PARAMETER.findall(address)
                found = [text for name, text in parameters if _is_secret_member(name)]
                for secret in (*_passwords(address), *found):
                    if looks_made(secret):
                        yield from {secret, unquote(secret)}
        case dict():
            yield from in_addresses([*value.values()])
        case list() | tuple():
            for item in value:
                yield from in_addresses(item)


def _addresses(text: str) -> Iterable[str]:
    """Return the addresses in a text. One that stands alone may have spaces and quotes in its password."""
    alone = text.strip()
    return [alone] if _ALONE.match(alone) and alone.count("://") == 1 else _ADDRESS.findall(text)


def _passwords(address: str) -> set[str]:
    """Return what may be an address's password, or its token.

    Clients of databases take a password with any signs, up to the first `@` or to the last; by the standard,
    `/`, `?` and `#` end it. Each reading counts, but a port of a web address is none.
    """
    scheme, _, rest = address.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    is_web = scheme.lower() in ("http", "https", "ws", "wss")
    if "@" not in rest or (is_web and _HOST.fullmatch(authority)):
        return set()
    if is_web and "@" in authority:
        rest = authority
    name, colon, password = rest.partition(":")
    if not colon or "@" in name:
        user = authority.rpartition("@")[0]
        return {user, user.rpartition(":")[2]}
    return {password.partition("@")[0], password.rpartition("@")[0]}


def in_options(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts in JSON that are named keys, tokens and the like; not those with a `{{name}}`."""
    match value:
        case str() if _is_secret_member(name) and "{{" not in value and looks_made(value):
            yield from (part for part in {value, value.split()[-1]} if looks_made(part))
        case dict():
            for key, item in value.items():
                yield from in_options(item, str(key))
        case list():
            for item in value:
                yield from in_options(item, name)


def _is_secret_member(name: str) -> bool:
    return bool(_MEMBER.search(_WORDS.sub("_", name).lower()))
