"""The text of `report.html`, with the conversations that it holds compressed."""

import base64
import re
import zlib

_PACKED = re.compile(r'<script type="application/octet-stream" id="([^"]+)">([A-Za-z0-9+/=]*)</script>')


def embedded_data(page: str) -> dict[str, str]:
    """Return the embedded data by the id of its element, as the browser reads it."""
    return {name: zlib.decompress(base64.b64decode(data)).decode() for name, data in _PACKED.findall(page)}


def full_text(page: str) -> str:
    """Return the page's text, with all embedded data."""
    return "\n".join([_PACKED.sub("", page), *embedded_data(page).values()])
