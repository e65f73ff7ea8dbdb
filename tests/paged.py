"""What a reader of `report.html` can come to see: its text, and the conversations that it holds packed."""

import base64
import re
import zlib

_PACKED = re.compile(r'<script type="application/octet-stream" id="([^"]+)">([A-Za-z0-9+/=]*)</script>')


def unpacked(page: str) -> dict[str, str]:
    """The packed data by the id of its element, as the browser reads it."""
    return {name: zlib.decompress(base64.b64decode(data)).decode() for name, data in _PACKED.findall(page)}


def whole(page: str) -> str:
    """The page with all that is packed in it."""
    return "\n".join([_PACKED.sub("", page), *unpacked(page).values()])
