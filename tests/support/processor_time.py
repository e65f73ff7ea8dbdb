"""Processor time as a ratio, which a slow or busy machine does not change."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

ADDITIONS = 100_000
"""One loop has so many, which take a processor of 2024 some 3 ms."""


@contextmanager
def at_most(*, loops: int) -> Iterator[None]:
    """Fail if the block takes this process more processor time than so many loops of 100,000 additions."""
    before = _loop_seconds()
    started = time.process_time()
    yield
    took = time.process_time() - started
    loop = max(before, _loop_seconds())
    assert took < loops * loop, f"{took:.2f} s, as {took / loop:.0f} loops"


def _loop_seconds() -> float:
    started = time.process_time()
    total = 0
    for number in range(ADDITIONS):
        total += number
    return time.process_time() - started
