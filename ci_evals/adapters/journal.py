"""The journal of a run: every finished trial in a file, before anybody is told that it has finished.

One line of JSON each, appended and synced. What a kill or a full disk leaves of a line is no line: it has no
end. So the file holds whole trials only, and `--resume` goes on from them.
"""

import asyncio
import errno
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ci_evals import __version__
from ci_evals.adapters import files, json_lines
from ci_evals.adapters.transport import payload
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError
from ci_evals.domain.journal import Entry, Header, Mark, Past
from ci_evals.domain.plan import Trial
from ci_evals.domain.results import TrialResult

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = "journal.jsonl"

_AFRESH = "or start afresh without --resume"


@dataclass(frozen=True)
class _Read:
    """What stands in a journal."""

    past: Past | None
    """None where not even the header was written."""
    size: int
    """Bytes of all whole lines."""
    found: int
    """Bytes of all that is there."""
    torn: bool
    """Whether the beginning of one more is there."""
    ended: bool


class Journal:
    """The journal in an output folder. `open` comes first, `close` last."""

    def __init__(
        self, folder: Path, *, resume: bool = False, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Reads the journal of the run to go on with; otherwise opens nothing yet.

        Args:
            folder: The output folder of the run.
            resume: Whether to go on with the run whose journal is in there. Without one the run begins, since
                a kill may come before there is a journal.
            say: Takes a line for the user.

        Raises:
            UsageError: the journal to go on with cannot be read.
        """
        self._path = folder / NAME
        self._say = say
        self._fd: int | None = None
        self._waiting: list[bytes] = []
        self._written = self._synced = 0
        self._failing = False
        self._syncing = asyncio.Lock()
        self._read = _read(self._path) if resume and files.is_there(self._path) else None
        if resume and not self.past:
            say(f"warning: --resume: there is nothing to go on with in {folder}, so the run begins afresh")

    @property
    def past(self) -> Past | None:
        """What had finished in the run that is gone on with; None where a run begins."""
        return self._read.past if self._read else None

    def open(self, header: Header) -> None:
        """Begins the journal, or goes on with it.

        Raises:
            UsageError: it is of another run or version, another run is writing it, or it cannot be written.
        """
        self._check(header)
        try:
            if self._read is None:
                self._set_aside()
            fd = self._fd = files.open_to_append(self._path)
            _lock(fd, self._path)
            if self._read and os.fstat(fd).st_size != self._read.found:
                # The run that wrote it had not quite ended when it was read.
                self._read = _read(self._path)
                self._check(header)
            read = self._read
            if read:
                os.ftruncate(fd, read.size)
            if self.past is None:
                self._append(header)
                os.fsync(fd)
        except OSError as error:
            raise UsageError(f"cannot write {str(self._path)!r}: {error.strerror or error}") from error
        if read and read.torn:
            self._say(
                f"the last line of {self._path} is torn, since the program was killed while it wrote: that "
                "trial is played again"
            )

    async def keep(self, trial: Trial, result: TrialResult, elapsed: float) -> None:
        """Appends a finished trial, and comes back when it is safe on the disk.

        A journal that cannot be written does not end a run: the user is told, what could not be written is
        tried again with the next trial, and the reports will have it.
        """
        entry = Entry(suite=trial.suite, test=trial.test, index=trial.index, elapsed=elapsed, result=result)
        try:
            self._append(entry)
            await self._sync()
        except OSError as error:
            if not self._failing:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): the run goes on, "
                    "but what finishes now would be lost if it was killed"
                )
            self._failing = True
        else:
            # What was written before the trouble began may be safe only now.
            if self._failing and not self._waiting:
                self._say(f"{self._path} can be written again: nothing is missing in it")
                self._failing = False

    def mark(self, mark: Mark) -> None:
        """Appends a mark. One that cannot be written is left out."""
        with suppress(OSError):
            self._append(mark)
            if self._fd is not None:
                os.fsync(self._fd)

    def close(self) -> None:
        """Lets go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _check(self, header: Header) -> None:
        """Makes sure that the journal which was read is of this run."""
        if self.past and (unlike := self.past.header.unlike(header)):
            raise UsageError(
                f"{self._path}: the journal is of another run: it differs in {'; '.join(unlike)}. Give the "
                f"suites and options of that run, {_AFRESH}"
            )

    def _append(self, record: Record) -> None:
        """Writes what waits and this: whole lines or nothing."""
        if self._fd is None:
            raise OSError("it is not open")
        self._waiting.append(json_lines.line(record))
        if os.fstat(self._fd).st_nlink == 0:
            raise OSError(errno.ENOENT, "it was removed")
        while self._waiting:
            json_lines.append(self._fd, self._waiting[0])
            del self._waiting[0]
            self._written += 1

    async def _sync(self) -> None:
        """Waits until all that is written is on the disk: one wait for all trials that end meanwhile."""
        mine = self._written
        async with self._syncing:
            if self._synced >= mine or self._fd is None:
                return
            now = self._written
            await asyncio.to_thread(os.fsync, self._fd)
            self._synced = now

    def _set_aside(self) -> None:
        """Keeps the journal of a run that was broken off: what it holds has been paid for."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            _lock(file.fileno(), self._path)
        try:
            found = _read(self._path)
        except UsageError:
            past, worthless = None, False
        else:
            past, worthless = found.past, found.ended or not found.past or not found.past.done
        if worthless:
            self._path.unlink()
            return
        stamp = past.header.started_at.strftime("%Y-%m-%dT%H-%M-%SZ") if past else "old"
        names = (f"journal-{stamp}{f'-{number}' if number > 1 else ''}.jsonl" for number in count(1))
        aside = next(path for name in names if not (path := self._path.with_name(name)).exists())
        self._path.rename(aside)
        finished = len(past.done) if past else 0
        trials = f" after {finished} finished trial{'s' if finished > 1 else ''}" if finished else ""
        self._say(
            f"warning: a run in {self._path.parent} was broken off{trials}, and this one begins afresh; the "
            f"journal of that run is kept as {aside.name}. To go on with it, name it {NAME} again and give "
            f"--resume={self._path.parent}"
        )


def _lock(fd: int, path: Path) -> None:
    """Makes sure that no other run writes the file."""
    if fcntl is None:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: another run is writing here; wait for its end, or name another --output-dir"
        ) from None
    except OSError:
        return  # a file system without locks


def _read(path: Path) -> _Read:
    try:
        with path.open("rb") as file:
            return _read_lines(path, file)
    except OSError as error:
        raise UsageError(f"--resume: {path} cannot be read: {error.strerror or error}") from error


def _read_lines(path: Path, file: Iterable[bytes]) -> _Read:
    """Reads line by line: the journal of a long run does not fit into the memory twice."""
    header: Header | None = None
    done: dict[Trial, TrialResult] = {}
    elapsed, size, ended, rest = 0.0, 0, False, b""
    for number, (line, following) in enumerate(pairwise(chain(file, [b""])), start=1):
        # After a crash of the machine, the last line may hold what was on the disk before.
        if not line.endswith(b"\n") or (not following and _is_torn(line)):
            rest = line
            break
        size += len(line)
        if header is None:
            header = _header(path, line)
            continue
        record = _record(path, number, line)
        if isinstance(record, Entry):
            done[record.trial] = record.result.kept()
            elapsed = max(elapsed, record.elapsed)
        elif record.mark == "outage":
            done = {trial: result for trial, result in done.items() if not result.spoiled}
        ended = isinstance(record, Mark) and record.mark == "ended"
    past = Past(header, done, elapsed) if header else None
    return _Read(past, size, found=size + len(rest), torn=bool(rest), ended=ended)


def _is_torn(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _header(path: Path, line: bytes) -> Header:
    data = _object(path, 1, line)
    version, tool = data.get("journalVersion"), data.get("tool")
    written_by = tool.get("version") if isinstance(tool, dict) else None
    if version is not None and isinstance(written_by, str) and (version, written_by) != (1, __version__):
        raise UsageError(
            f"{path}: the journal was written by ci-evals {written_by[:40]!r}, and this is {__version__}; go "
            f"on with that version, {_AFRESH}"
        )
    try:
        return Header.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path}: this is no journal of ci-evals: {json_lines.why(error)}") from None


def _record(path: Path, number: int, line: bytes) -> Entry | Mark:
    data = _object(path, number, line)
    try:
        return (Mark if "mark" in data else Entry).model_validate(data)
    except ValidationError as error:
        raise _unreadable(path, number, json_lines.why(error)) from None


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, number, f"no JSON: {error}") from None
    if not isinstance(data, dict):
        raise _unreadable(path, number, "no JSON object")
    return data


def _unreadable(path: Path, number: int, why: str) -> UsageError:
    return UsageError(
        f"{path}: line {number} of the journal cannot be read: {payload.shorten(why)}. Take that line out, "
        f"and what it told is played again, {_AFRESH}"
    )
