"""Files that grow by a line of JSON at a time, and hold complete lines whenever their writer is killed."""

import asyncio
import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ci_evals.adapters import files, input_files
from ci_evals.domain.base import Record
from ci_evals.threads import in_thread

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LineFile:
    """A file that lines are appended to. Every method but `open` and `close` raises `OSError` on failure."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pending: list[bytes] = []
        """Lines that are not written yet, in their order."""
        self.failing = False
        """True while the user knows that lines could not be written."""
        self._open_descriptor: int | None = None
        self._appended = self._synced = 0
        self._sync_lock = asyncio.Lock()

    def open(self) -> None:
        """Open the file, and create it with its folder if needed, as `files.open_to_append`."""
        self._open_descriptor = files.open_to_append(self.path)

    def close(self) -> None:
        """Close the file if it is open."""
        if self._open_descriptor is not None:
            os.close(self._open_descriptor)
            self._open_descriptor = None

    def lock(self) -> bool:
        """Lock the file until it is closed. Return whether no other process has it."""
        return lock(self._descriptor)

    def size(self) -> int:
        """Return the size in bytes."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        """Cut the file off."""
        os.ftruncate(self._descriptor, size)

    def copy_from(self, path: Path) -> None:
        """Replace all lines by those of another file."""
        self.truncate(0)
        with input_files.open_file(path) as file:
            for line in input_files.lines(file):
                self._append(line)
        self.flush()

    def write_pending(self) -> None:
        """Append the pending lines: of each line all or nothing."""
        if os.fstat(self._descriptor).st_nlink == 0:
            raise OSError(errno.ENOENT, "it was removed")
        while self.pending:
            self._append(self.pending[0])
            del self.pending[0]

    def flush(self) -> None:
        """Write all lines to the disk."""
        os.fsync(self._descriptor)

    async def sync(self) -> None:
        """Wait until all lines so far are on the disk: one wait for all lines that are appended meanwhile."""
        appended = self._appended
        async with self._sync_lock:
            if self._synced < appended:
                appended = self._appended
                await in_thread(os.fsync, self._descriptor)
                self._synced = appended

    def _append(self, data: bytes) -> None:
        size = self.size()
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with suppress(OSError):
                self.truncate(size)
            raise
        self._appended += 1

    @property
    def _descriptor(self) -> int:
        if self._open_descriptor is None:
            raise OSError("it is not open")
        return self._open_descriptor


def lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed, `shared` with readers. Return whether no other process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def line(record: Record) -> bytes:
    """Return a record as a line."""
    try:
        return record.model_dump_json(by_alias=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair, as JSON can carry one into a reply: UTF-8 cannot write it, an escape can.
        return json.dumps(record.model_dump(mode="json", by_alias=True)).encode() + b"\n"


def reason(error: ValidationError) -> str:
    """Return the first reason why a line is no such record, with its location."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    location = ".".join(map(str, fault["loc"]))
    return f"{location}: {fault['msg']}" if location else fault["msg"]
