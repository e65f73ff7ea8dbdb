"""The key that tells comments and artifacts of one repository apart."""

import re

from ci_evals.domain.errors import UsageError


def check_key(key: str) -> str:
    """`key`, which stands in a hidden line and in the names of artifacts.

    Raises:
        UsageError: it has other characters than those allowed, or is too long.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", key):
        raise UsageError(
            f"--comment-key is {key[:80]!r}: "
            "only the letters a to z, digits, '.', '_' and '-' are allowed, 64 of them at most"
        )
    return key
