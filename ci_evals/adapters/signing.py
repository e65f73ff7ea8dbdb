"""Signatures of what a run keeps, with keys that are derived from a secret of the run."""

import hmac

from ci_evals.support.secrets import looks_made

_MIN_SECRET = 16
"""Characters of a secret that may sign: shorter ones can be guessed."""

_BEFORE, _AFTER = b',"chain":"', b'"}\n'
_DIGITS = 32
"""Hexadecimal digits of a line's checksum: 128 bits."""
_TAIL = len(_BEFORE) + _DIGITS + len(_AFTER)
_PURPOSE = b"ci-evals journal 2"


def can_sign(secret: str | None) -> bool:
    """Return whether a key or token of an LLM is secret enough to sign with."""
    return secret is not None and len(secret) >= _MIN_SECRET and looks_made(secret)


def derived_key(secret: str, purpose: bytes) -> bytes:
    """Return the key of one purpose, which shows nothing of the secret: HKDF (RFC 5869) of one block."""
    extracted = hmac.digest(purpose, secret.encode(errors="surrogatepass"), "sha256")
    return hmac.digest(extracted, b"sign\x01", "sha256")


class Chain:
    """Checksums that chain the lines of a file, so that none can be changed, moved, left out or added.

    Each line of JSON ends with a checksum of itself and of all lines before it. With a secret nobody can make
    one without that secret; without a secret the chain still shows damage.
    """

    def __init__(self, secret: str | None = None) -> None:
        self._key = derived_key(secret or "", _PURPOSE)
        self._last = b""

    def seal(self, line: bytes) -> bytes:
        """Return the next line, a JSON object with its line end, with its checksum."""
        body = line.removesuffix(b"}\n")
        self._last = self._checksum(body)
        return body + _BEFORE + self._last + _AFTER

    def accepts(self, line: bytes) -> bool:
        """Return whether this is the next line of the chain, and if so, continue from there."""
        body, tail = line[:-_TAIL], line[-_TAIL:]
        checksum = self._checksum(body)
        if not hmac.compare_digest(tail, _BEFORE + checksum + _AFTER):
            return False
        self._last = checksum
        return True

    def _checksum(self, body: bytes) -> bytes:
        return hmac.digest(self._key, self._last + body, "sha256").hex()[:_DIGITS].encode()
