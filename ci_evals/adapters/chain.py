"""Checksums that chain the lines of a file, so that none can be changed, moved, left out or brought in.

Each line of JSON ends with a checksum of itself and of all lines before it. With a key nobody can make one
without that key; without one the chain still shows damage.
"""

import hmac

from ci_evals.adapters.signing import derived_key

_BEFORE, _AFTER = b',"chain":"', b'"}\n'
_DIGITS = 32
"""Hexadecimal digits of a checksum: 128 bits."""
_TAIL = len(_BEFORE) + _DIGITS + len(_AFTER)
_PURPOSE = b"ci-evals journal 2"


class Chain:
    """The chain of a file up to some line. The lines pass through it in their order."""

    def __init__(self, secret: str | None = None) -> None:
        """Begin a chain, keyed with a key that is derived from the secret if there is one."""
        self._key = derived_key(secret or "", _PURPOSE)
        self._last = b""

    def seal(self, line: bytes) -> bytes:
        """Return a line of JSON (an object, with its end of line) with its checksum, and go on from there."""
        body = line.removesuffix(b"}\n")
        self._last = self._checksum(body)
        return body + _BEFORE + self._last + _AFTER

    def accepts(self, line: bytes) -> bool:
        """Return whether this is the next line of the chain; if so, go on from there."""
        body, tail = line[:-_TAIL], line[-_TAIL:]
        checksum = self._checksum(body)
        if not hmac.compare_digest(tail, _BEFORE + checksum + _AFTER):
            return False
        self._last = checksum
        return True

    def _checksum(self, body: bytes) -> bytes:
        return hmac.digest(self._key, self._last + body, "sha256").hex()[:_DIGITS].encode()
