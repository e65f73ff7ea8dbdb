"""Tokens are redacted whatever their length: GitHub's installation tokens have some 520 characters."""

import base64
import json
from urllib.parse import quote

from each_row import each_row

from ci_evals.support.redaction import MASK, Redactor

TOKEN = "ghs_" + ".".join(("eyJhbGciOiJSUzI1NiJ9", "aB3-_x9Q" * 30, "Zk7_-pL2" * 32))


@each_row(
    "written",
    [
        TOKEN,
        f"https://x-access-token:{TOKEN}@github.com/acme/shop.git",
        json.dumps({"authorization": f"Bearer {TOKEN}"}),
        quote(TOKEN, safe=""),
        "\n".join(TOKEN[start : start + 76] for start in range(0, len(TOKEN), 76)),
        base64.b64encode(TOKEN.encode()).decode(),
        TOKEN.encode().hex(),
    ],
    ids=["itself", "address", "JSON", "form", "wrapped", "base64", "hexadecimal"],
)
def test_installation_token_of_520_characters_is_redacted(written):
    assert len(TOKEN) > 510
    shown = Redactor(keys=[TOKEN]).text(f"before {written} after")
    assert MASK in shown
    assert not [part for part in (TOKEN[:40], TOKEN[-40:], written[-40:-8]) if part in shown]
