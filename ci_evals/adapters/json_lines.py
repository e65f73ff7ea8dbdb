"""Files that grow by a line of JSON at a time, and hold whole lines whenever their writer is killed."""

import asyncio
import json
import os
from contextlib import suppress

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ci_evals.domain.base import Record
from ci_evals.threads import in_thread

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed, and return whether nobody else has it.

    Args:
        descriptor: Of the file.
        shared: True for one who only reads it, beside others who do.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


class Syncing:
    """Brings what was written to the disk: one wait for all lines that are written meanwhile."""

    def __init__(self) -> None:
        self._written = self._synced = 0
        self._lock = asyncio.Lock()

    def wrote(self) -> None:
        """Count a line that was written."""
        self._written += 1

    async def sync(self, descriptor: int) -> None:
        """Wait until all that is written by now is on the disk.

        Raises:
            OSError: it cannot be.
        """
        mine = self._written
        async with self._lock:
            if self._synced >= mine:
                return
            now = self._written
            await in_thread(os.fsync, descriptor)
            self._synced = now


def line(record: Record) -> bytes:
    """The record as a line."""
    try:
        return record.model_dump_json(by_alias=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair, as JSON can carry one into a reply: UTF-8 cannot write it, an escape can.
        return json.dumps(record.model_dump(mode="json", by_alias=True)).encode() + b"\n"


def append(descriptor: int, data: bytes) -> None:
    """Writes a line at the end of a file that is open for appending: all of it, or nothing.

    Raises:
        OSError: it cannot be written.
    """
    size = os.fstat(descriptor).st_size
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def why(error: ValidationError) -> str:
    """The first reason why what a line holds is no such record, with its place in there."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else fault["msg"]
