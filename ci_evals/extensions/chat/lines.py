"""Lines from standard input, without keeping the event loop waiting."""

import codecs
import sys
from collections import deque
from typing import Protocol

from ci_evals.threads import in_thread

_CHUNK_BYTES = 65_536
LONGEST_LINE = 100_000
"""Characters of a line; what is longer is cut into several."""


class ByteStream(Protocol):
    """A stream of bytes, such as a file without a buffer or the console of Windows."""

    def read(self, size: int, /) -> bytes | None:
        """Return some bytes, as soon as there are any; none at the end."""


def standard_input() -> ByteStream | None:
    """Return standard input without its buffer; None if there is none.

    A thread that waits in a buffer holds its lock, and the program could not end.
    """
    if sys.stdin is None:
        return None
    buffer = getattr(sys.stdin, "buffer", None)
    stream: ByteStream | None = getattr(buffer, "raw", buffer)
    return stream


class LineReader:
    """Reads lines of UTF-8, whatever ends them."""

    def __init__(self, stream: ByteStream | None) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._begun = ""
        self._lines: deque[str] = deque()

    async def next(self) -> str | None:
        """Return the next line without its end; None at the end of the input."""
        while not self._lines:
            if self._stream is None:
                return None
            self._take(await in_thread(_read, self._stream))
        return self._lines.popleft()

    def _take(self, data: bytes) -> None:
        text = self._begun + self._decoder.decode(data, final=not data)
        *lines, self._begun = text.replace("\r\n", "\n").split("\n")
        self._lines += lines
        while len(self._begun) > LONGEST_LINE:
            self._lines.append(self._begun[:LONGEST_LINE])
            self._begun = self._begun[LONGEST_LINE:]
        if not data:
            self._stream = None
            if self._begun:
                self._lines.append(self._begun)
                self._begun = ""


def _read(stream: ByteStream) -> bytes:
    try:
        return stream.read(_CHUNK_BYTES) or b""
    except (OSError, ValueError):  # the terminal is gone, or somebody has closed it
        return b""
