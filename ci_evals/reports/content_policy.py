"""The content-security policy of the pages that we write."""

import base64
import hashlib


def policy_of(style: str, script: str) -> str:
    """Its content-security policy: run its own script and wear its own style, and nothing else.

    No request, no frame, no form, no other document's address, and no text made into markup.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
