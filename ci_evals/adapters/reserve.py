"""Reserves descriptors and memory, so that a run can still be reported when they run out."""

import os
from contextlib import suppress

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_DESCRIPTORS = 24
"""Enough to import, to read templates, and to write a report."""
_BYTES = 24 * 1024 * 1024
"""Enough for modules and reports of a run of hundreds of trials."""
_MAX_DESCRIPTORS = 1 << 16
"""Some programs get slow where more may be open."""


class Reserve:
    """Descriptors and memory that are reserved until `release`."""

    def __init__(self) -> None:
        """Raise the limit of open files, and reserve some of them and some memory."""
        _raise_limit()
        self._memory: bytearray | None = None
        self._descriptors: list[int] = []
        with suppress(MemoryError):
            self._memory = bytearray(_BYTES)
        most = _limit() // 4
        with suppress(OSError):
            while len(self._descriptors) < min(_DESCRIPTORS, most):
                self._descriptors.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))

    def release(self) -> None:
        """Release everything. Calling it again does no harm."""
        self._memory = None
        while self._descriptors:
            with suppress(OSError):
                os.close(self._descriptors.pop())


def _limit() -> int:
    """Return the maximum number of open files."""
    if resource is None:
        return _MAX_DESCRIPTORS
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _raise_limit() -> None:
    if resource is None:
        return
    with suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
