"""Servers on loopback that answer as nobody should: without end, packed a thousandfold, garbled, late.

async with hostile_server.serving(hostile_server.BROKEN["endless headers"]) as url:
    ...
"""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import chain, repeat

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MEGABYTE = b" " * 1_000_000

Answer = Callable[[], Iterator[bytes]]
"""What is sent, piece after piece, maybe for ever. An empty piece is a letter and a moment's silence."""


def body(data: bytes, *headers: bytes) -> Answer:
    lines = b"".join(line + b"\r\n" for line in headers)
    return lambda: iter([HEAD + b"Content-Length: %d\r\n" % len(data) + lines + b"\r\n" + data])


def raw(data: bytes) -> Answer:
    return lambda: iter([data])


def with_length(length: bytes) -> Answer:
    """A sound body whose length is said to be another."""
    return raw(HEAD + b"Content-Length: " + length + b"\r\n\r\n" + _SOUND)


def endless(start: bytes, piece: bytes) -> Answer:
    """A beginning, and a piece of it again and again."""
    return lambda: chain([start], repeat(piece))


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


def _bomb(times: int = 1, kind: int = 31) -> bytes:
    """A text of 400 MB in JSON, packed once or more often: each megabyte is the same bytes."""
    packer = zlib.compressobj(9, wbits=kind)
    data = packer.compress(b'{"say": "') + packer.flush(zlib.Z_FULL_FLUSH)
    data += (packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)) * 400
    for _ in range(times - 1):
        data = gzip.compress(data)
    return data


_HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
_CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_SOUND = b'{"say": "Hi", "id": "t-1"}'
_KNOWN = b'{"say": "Hi", "id": "t-1", "odd": %s}'

TOO_MUCH: dict[str, Answer] = {
    "50 MB": lambda: iter(
        [HEAD + b"Content-Length: 50000012\r\n\r\n", b'{"say": "', *[MEGABYTE] * 50, b'"} ']
    ),
    "endless chunks": endless(_CHUNKED + _chunk(b'{"say": "'), _chunk(MEGABYTE)),
    "endless body without a length": endless(HEAD + b"Connection: close\r\n\r\n" + b'{"say": "', MEGABYTE),
    "a bomb": body(_bomb(), b"Content-Encoding: gzip"),
    "a bomb in zlib's format": body(_bomb(kind=15), b"Content-Encoding: deflate"),
    "a bomb in raw deflate": body(_bomb(kind=-15), b"Content-Encoding: deflate"),
}
"""Each is too large."""

BROKEN: dict[str, Answer] = {
    "endless headers": endless(HEAD, b"X-Header: 1\r\n" * 10_000),
    "an endless header": endless(HEAD + b"X-Header: ", b"x" * 100_000),
    "an endless status": endless(b"HTTP/1.1 200 ", b"x" * 100_000),
    "an endless size of a chunk": endless(_CHUNKED + b"5;", b"x" * 100_000),
    "endless trailers": endless(_CHUNKED + _chunk(_SOUND) + b"0\r\n", b"X-Trailer: 1\r\n" * 10_000),
    "a negative length": with_length(b"-5"),
    "two lengths": with_length(b"3\r\nContent-Length: 26"),
    "a length of many digits": with_length(b"9" * 5000),
    "a length that is longer": with_length(b"99"),
    "a length of which the server dies": with_length(b"5000000000"),
    "no zip": body(_SOUND, b"Content-Encoding: gzip"),
    "half a zip": body(gzip.compress(_SOUND)[:-12], b"Content-Encoding: gzip"),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "a redirect to itself": raw(b"HTTP/1.1 307 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "nothing": lambda: iter([]),
    "chunks of no size": raw(_CHUNKED + b"zz\r\n" + _SOUND),
}
"""The connection is no good."""

LATE: dict[str, Answer] = {
    "a byte a moment": endless(HEAD + b"Content-Length: 100000\r\n\r\n", b""),
    "a header a moment": endless(HEAD, b""),
    "endless promises": endless(_HINT, _HINT * 100),
}
"""It does not end, and is never too much."""

UNREADABLE: dict[str, Answer] = {
    "a bomb packed twice": body(_bomb(times=2), b"Content-Encoding: gzip, gzip"),
    "a bomb packed three times": body(_bomb(times=3), b"Content-Encoding: gzip, gzip, gzip"),
    "a length that is shorter": with_length(b"9"),
    "an encoding that is not known": body(b"\x1b\x03\x00\xf8" + _SOUND, b"Content-Encoding: br"),
    "latin-1": body(
        '{"say": "caf\xe9"}'.encode("latin-1"), b"Content-Type: application/json; charset=latin-1"
    ),
    "no UTF-8": body(b'{"say": "\xff\xfe\xc0"}'),
    "half a code unit": body('{"say": "Hi"}'.encode("utf-16")[:-1]),
    "deep nesting": body(_KNOWN % (b"[" * 90_000 + b"]" * 90_000)),
    "many values": body(_KNOWN % (b"[" + b"{}, " * 1_000_000 + b"{}]")),
    "a number of a million digits": body(_KNOWN % (b"9" * 1_000_000)),
    "a text without an end": body(b'{"say": "' + b"\\" * 1_000_000),
    "a list": body(b"[" + _SOUND + b"]"),
    "a page": body(b"<!doctype html><title>Wrong door</title>" * 100_000),
    "two answers in one": body(_SOUND + _SOUND),
}
"""It comes, and says nothing."""

READABLE: dict[str, Answer] = {
    "a mark of the byte order": body(b"\xef\xbb\xbf" + _SOUND),
    "UTF-16": body(_SOUND.decode().encode("utf-16")),
    "a zip": body(gzip.compress(_SOUND), b"Content-Encoding: gzip"),
    "no numbers": body(_KNOWN % b"[NaN, -Infinity, 1e999999]"),
    "a fraction of a million digits": body(_KNOWN % (b"0." + b"9" * 1_000_000)),
    "a number of 4000 digits": body(_KNOWN % (b"9" * 4_000)),
    "keys given twice": body(b'{"id": "t-0", "say": "No", "id": "t-1", "say": "Hi"}'),
    "half pairs": body(_KNOWN % b'{"\\ud800": "\\udc00"}'),
    "90 levels": body(_KNOWN % (b"[" * 90 + b"]" * 90)),
    "150 levels": body(_KNOWN % (b"[" * 150 + b"]" * 150)),
}
"""Odd, and an answer all the same: it says "Hi"."""


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """Answers every request so, then closes the connection."""
    under_way: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in answer():
                if writer.is_closing():
                    break
                writer.write(piece or b"x")
                await writer.drain()
                if not piece:
                    await asyncio.sleep(0.01)

    def begun(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        task.add_done_callback(lambda _: writer.transport.abort() if task.cancelled() else writer.close())
        under_way.add(task)

    server = await asyncio.start_server(begun, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await asyncio.sleep(0)  # for the connections to close
