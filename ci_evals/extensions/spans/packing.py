"""The content encodings of an export. Pure."""

import zlib

from ci_evals.extension_support.span_reading.spans import (
    MAX_BYTES,
    OtlpError,
    TooLargeError,
    UnknownTypeError,
)

_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


def unpacked(body: bytes, encoding: str) -> bytes:
    """Return the body without its content encoding, `gzip` or `deflate`.

    Raises:
        OtlpError: it is broken, too large or packed in another way.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in _WINDOW_BITS:
        raise UnknownTypeError(f"Content-Encoding {name[:40]!r} is not supported; use gzip, or none")
    packed = zlib.decompressobj(_WINDOW_BITS[name])
    try:
        plain = packed.decompress(body, MAX_BYTES + 1)
    except zlib.error as error:
        raise OtlpError(f"the body is not {name}: {error}") from None
    if len(plain) > MAX_BYTES:
        raise TooLargeError(f"the unpacked body has more than {MAX_BYTES:,} bytes")
    if not packed.eof or packed.unused_data:
        raise OtlpError(f"the body is not one whole {name} stream")
    return plain
