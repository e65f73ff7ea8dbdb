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
        self._memory: bytes | None = None
        self._descriptors: list[int] = []
        with suppress(MemoryError):
            self._memory = bytes(_BYTES)  # zeros that are not written: reserved, but used by nobody
        most = min(_DESCRIPTORS, _raised_limit() // 4)
        with suppress(OSError):
            while len(self._descriptors) < most:
                self._descriptors.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))

    def release(self) -> None:
        """Release everything. Calling it again does no harm."""
        self._memory = None
        while self._descriptors:
            with suppress(OSError):
                os.close(self._descriptors.pop())


def _raised_limit() -> int:
    """Raise the maximum number of open files as far as possible, and return it."""
    if resource is None:
        return _MAX_DESCRIPTORS
    soft, hard = (
        _MAX_DESCRIPTORS if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    most = min(hard, _MAX_DESCRIPTORS)
    if soft >= most:
        return soft
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        return most
    return soft
