"""Keys that sign what a run keeps, derived from a secret of the run."""

import hmac

from ci_evals.support.secrets import looks_made

_LEAST_SECRET = 16
"""Characters of a secret that may sign: shorter ones can be guessed."""


def can_sign(secret: str | None) -> bool:
    """Return whether a key or token of an LLM is secret enough to sign with."""
    return secret is not None and len(secret) >= _LEAST_SECRET and looks_made(secret)


def derived_key(secret: str, purpose: bytes) -> bytes:
    """Return the key of one purpose, which shows nothing of the secret: HKDF (RFC 5869) of one block."""
    extracted = hmac.digest(purpose, secret.encode(errors="surrogatepass"), "sha256")
    return hmac.digest(extracted, b"sign\x01", "sha256")
