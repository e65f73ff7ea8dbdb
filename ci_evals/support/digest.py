"""Digests: short texts that differ where two values differ, and reveal nothing of them.

Those of a run are made of the parts of it, so that a run and the merger of its shards have the same.
"""

import hashlib
import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii
from typing import Any


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, the same whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def of_texts(texts: Iterable[str]) -> str:
    """Return the digest of a list of texts, in a quarter of the time."""
    return hashlib.sha256(f"[{', '.join(map(encode_basestring_ascii, texts))}]".encode()).hexdigest()


def of_tests(digests: Iterable[str]) -> str:
    """Return the digest of all tests, from their digests in their order."""
    return of_texts(digests)


def of_loops(loops: Iterable[int]) -> str:
    """Return the digest of the numbers of trials of each test, in their order."""
    return digest([*loops])


def of_models(provider: object, models: Iterable[tuple[object, str | None, str | None]]) -> str:
    """Return the digest of the provider, and of each suite's jury, simulated user and embedding model.

    An embedding model that is not used leaves no trace, so that earlier runs keep their digest.
    """
    return digest([provider, [[*llms, embedder] if embedder else llms for *llms, embedder in models]])
