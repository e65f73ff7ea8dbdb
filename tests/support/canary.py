"""Secrets that give themselves away: made anew for each test, echoed in every form, looked for in parts.

keys = Canaries()
program(env={"API_KEY": keys.plant("API_KEY")}, answer=keys.echo())
assert not keys.leaks(output)
"""

import html
import json
import secrets
import string
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_LETTERS = string.ascii_letters + string.digits
_PIECE = 10
"""Letters in a row: what shows so much of a secret, in any form, has told it."""


_AT_ONCE = 3
"""Forms of a secret in one echo."""


def _piece() -> str:
    return "q" + "".join(secrets.choice(_LETTERS) for _ in range(_PIECE - 2)) + "7"


def encodings(secret: str) -> list[str]:
    """A secret as servers, programs and models write it."""
    data, dumped = secret.encode(), json.dumps(secret)[1:-1]
    in_base64 = [
        encode(before + data + b"~").decode()
        for before in (b"", b"u", b"us", b"user:")
        for encode in (b64encode, urlsafe_b64encode)
    ]
    middle = len(secret) // 2
    return [
        secret, dumped, json.dumps(dumped)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1].replace("/", "\\/"), quote(secret, safe=""),
        quote(quote(secret)), quote_plus(secret), html.escape(secret), html.escape(html.escape(secret)),
        repr(secret), repr(data), *in_base64, *(text.rstrip("=") for text in in_base64),
        quote(in_base64[0], safe=""),
        encodebytes(b"Somebody whose name is as long as a line, or nearly so: " + data).decode(),
        b64encode(json.dumps({"key": secret}).encode()).decode(),
        b64encode(f"key={quote_plus(secret)}".encode()).decode(), data.hex(), data.hex().upper(),
        " ".join(secret), f"{secret[:middle]}\n    {secret[middle:]}", "\u200b".join(secret),
    ]  # fmt: skip


class Canaries:
    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        """The secrets by the names of their sources."""
        self._pieces: dict[str, list[str]] = {}
        self._turn = 0

    def plant(self, name: str, between: tuple[str, ...] = ('"\\', " +/=&%<>'"), more: str = "") -> str:
        """A new secret: random letters, what is hard to write `between` them, and `more`."""
        pieces = [_piece() for _ in range(len(between) + 1)]
        text = pieces[0] + "".join(hard + piece for hard, piece in zip(between, pieces[1:], strict=True))
        self.secrets[name], self._pieces[name] = text + more, pieces
        return text + more

    def echo(self) -> str:
        """All secrets, each in some of its forms; each time in others, and another secret first."""
        self._turn += 1
        messages = []
        for number, secret in enumerate(self.secrets.values()):
            written = encodings(secret.strip())
            messages += [
                written[(self._turn * _AT_ONCE + number + more) % len(written)] for more in range(_AT_ONCE)
            ]
        first = self._turn * 5 % len(messages)
        return "\n".join(messages[first:] + messages[:first])

    def leaks(self, text: str, *names: str) -> list[str]:
        """Which secrets (of those) a text tells, and in what words."""
        squeezed = "".join(text.replace("\\n", "").replace("\u200b", "").split())
        result = []
        for name in names or self.secrets:
            for piece in self._pieces[name]:
                for form in _traces(piece):
                    at = squeezed.find(form)
                    if at >= 0:
                        result.append(f"{name}: …{squeezed[max(0, at - 60) : at + 60]}…")
        return result


def _traces(piece: str) -> Iterator[str]:
    """What stands in a text that tells a piece of a secret, wherever it begins in a group of base 64."""
    data = piece.encode()
    yield piece
    yield from (data.hex(), data.hex().upper())
    for offset in range(3):
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        yield b64encode(bytes(offset) + data).decode()[first:last]
