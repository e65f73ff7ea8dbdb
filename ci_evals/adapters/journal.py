"""The journal of a run: every finished trial in a file, before anybody is told that it has finished.

One line of JSON each, appended and synced. What a kill or a full disk leaves of a line is no line: it has no
end. Each line carries a checksum of itself and all before it. So `--resume` uses whole trials only, up to the
first line that was damaged or changed, and only those that the same run, commit and options played.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain as chain_of
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ci_evals._version import __version__
from ci_evals.adapters import checkout, files, input_files, json_lines
from ci_evals.adapters.signing import Chain
from ci_evals.adapters.transport import payload
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError
from ci_evals.domain.journal import JournalEntry, JournalHeader, JournalMark, Past
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.trial import TrialResult

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
    damaged: int | None
    """The number of the first line that is not as it was written, with more lines behind it."""
    ended: bool
    chain: Chain
    """Up to the last whole line."""


class Journal:
    """The journal in an output folder. `open` comes first, `close` last."""

    def __init__(
        self,
        folder: Path,
        *,
        resume: bool = False,
        say: Callable[[str], None] = lambda _: None,
        secret: str | None = None,
    ) -> None:
        """Reads the journal of the run to go on with; otherwise opens nothing yet.

        Args:
            folder: The output folder of the run.
            resume: Whether to go on with the run whose journal is in there. Without one the run begins, since
                a kill may come before there is a journal.
            say: Takes a line for the user.
            secret: Without it nobody can write a journal that is resumed here; None for one that anybody can.

        Raises:
            UsageError: the journal to go on with cannot be read, or must not be used.
        """
        self._path = folder / NAME
        self._say = say
        self._fd: int | None = None
        self._waiting: list[bytes] = []
        self._failing = False
        self._syncing = json_lines.Syncing()
        self._secret = secret
        self._read = self._read_again() if resume and files.is_there(self._path) else None
        self._chain = Chain(secret)
        if self._read and checkout.tracks(self._path):
            raise UsageError(
                f"--resume: git tracks {self._path}, so whoever could commit it could have written any "
                f"result into it; take it out of the repository (git rm --cached), {_AFRESH}"
            )
        if resume and not self.past:
            say(f"warning: --resume: there is nothing to go on with in {folder}, so the run begins afresh")

    @property
    def past(self) -> Past | None:
        """What had finished in the run that is gone on with; None where a run begins."""
        return self._read.past if self._read else None

    def open(self, header: JournalHeader) -> None:
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
                self._read = self._read_again()
                self._check(header)
            read = self._read
            if read:
                os.ftruncate(fd, read.size)
                self._chain = read.chain
            if self.past is None:
                self._append(header)
                os.fsync(fd)
        except OSError as error:
            raise UsageError(f"cannot write {str(self._path)!r}: {error.strerror or error}") from error
        if self.past and (caution := header.context.caution(self.past.header.context)):
            self._say(f"warning: {caution}")
        if read and read.damaged:
            self._say(
                f"warning: line {read.damaged} of {self._path} is not as it was written: that line and all "
                "behind it are dropped, and their trials are played again"
            )
        elif read and read.torn:
            self._say(
                f"the last line of {self._path} is torn, since the program was killed while it wrote: that "
                "trial is played again"
            )

    async def keep(
        self, trial: Trial, result: TrialResult, elapsed: float, at: datetime | None = None
    ) -> None:
        """Appends a finished trial, and comes back when it is safe on the disk.

        A journal that cannot be written does not end a run: the user is told, what could not be written is
        tried again with the next trial, and the reports will have it.
        """
        entry = JournalEntry(
            suite=trial.suite, test=trial.test, index=trial.index, elapsed=elapsed, at=at, result=result
        )
        try:
            self._append(entry)
            if self._fd is not None:
                await self._syncing.sync(self._fd)
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

    def mark(self, mark: JournalMark) -> None:
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

    def _read_again(self) -> _Read:
        return _read(self._path, self._secret)

    def _check(self, header: JournalHeader) -> None:
        """Makes sure that the journal which was read is of this run."""
        if self.past and (why := header.context.refusal(self.past.header.context)):
            raise UsageError(
                f"{self._path}: in CI only the journal of the same run and commit is resumed: {why}; start "
                "afresh without --resume"
            )
        if self.past and (unlike := self.past.header.unlike(header)):
            raise UsageError(
                f"{self._path}: the journal is of another run: it differs in {'; '.join(unlike)}. Give the "
                f"suites and options of that run, {_AFRESH}"
            )

    def _append(self, record: Record) -> None:
        """Writes what waits and this: whole lines or nothing."""
        if self._fd is None:
            raise OSError("it is not open")
        self._waiting.append(self._chain.seal(json_lines.line(record)))
        if os.fstat(self._fd).st_nlink == 0:
            raise OSError(errno.ENOENT, "it was removed")
        while self._waiting:
            json_lines.append(self._fd, self._waiting[0])
            del self._waiting[0]
            self._syncing.wrote()

    def _set_aside(self) -> None:
        """Keeps the journal of a run that was broken off: what it holds has been paid for."""
        if not self._path.exists():
            return
        with input_files.open_file(self._path) as file:
            _lock(file.fileno(), self._path)
        try:
            found = self._read_again()
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
    if not json_lines.lock(fd):
        raise UsageError(
            f"{path}: another run is writing here; wait for its end, or name another --output-dir"
        )


def _read(path: Path, secret: str | None) -> _Read:
    try:
        with input_files.open_file(path) as file:
            return _read_lines(path, input_files.lines(file), secret)
    except OSError as error:
        raise UsageError(f"--resume: {path} cannot be read: {error.strerror or error}") from error


def _read_lines(path: Path, file: Iterable[bytes], secret: str | None) -> _Read:
    """Reads line by line: the journal of a long run does not fit into the memory twice."""
    header: JournalHeader | None = None
    written_at: datetime | None = None
    done: dict[Trial, TrialResult] = {}
    elapsed, size, ended, rest, damaged = 0.0, 0, False, 0, None
    check_failed = False
    chain = Chain(secret)
    for number, (line, following) in enumerate(pairwise(chain_of(file, [b""])), start=1):
        if rest:
            rest += len(line)
            continue
        if header is None and line.endswith(b"\n"):
            header = _header(path, line, chain, secret)
            size = len(line)
            continue
        record = _record(line) if chain.accepts(line) else None
        if record is None:
            # After a crash of the machine, the last line may hold what was on the disk before.
            rest, damaged = len(line), number if following else None
            continue
        size += len(line)
        if isinstance(record, JournalEntry):
            elapsed, written_at = max(elapsed, record.elapsed), record.at
            if not (check_failed and record.result.judged):
                done[record.trial] = record.result.kept()
        elif record.mark == "outage":
            done = {trial: result for trial, result in done.items() if not result.infrastructure_failed}
        elif record.mark == "judge_check_failed":
            check_failed = True
            done = {trial: result for trial, result in done.items() if not result.judged}
        elif record.mark == "resumed":
            check_failed = False
        ended = isinstance(record, JournalMark) and record.mark == "ended"
    past = Past(header, done, elapsed, written_at) if header else None
    return _Read(past, size, size + rest, torn=bool(rest), damaged=damaged, ended=ended, chain=chain)


def _header(path: Path, line: bytes, chain: Chain, secret: str | None) -> JournalHeader:
    data = _object(path, line)
    version, tool = data.get("journalVersion"), data.get("tool")
    written_by = tool.get("version") if isinstance(tool, dict) else None
    if version is not None and isinstance(written_by, str) and (version, written_by) != (3, __version__):
        raise UsageError(
            f"{path}: the journal was written by ci-evals {written_by[:40]!r}, in form {str(version)[:10]}, "
            f"and this is {__version__}, with form 3; go on with that version, {_AFRESH}"
        )
    try:
        header = JournalHeader.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path}: this is no journal of ci-evals: {json_lines.why(error)}") from None
    if not chain.accepts(line):
        keyed = ", or was written with another LLM key, or outside CI" if secret else ""
        raise UsageError(
            f"{path}: line 1 of the journal is not as it was written: the file was changed{keyed}; start "
            "afresh without --resume"
        )
    return header


def _record(line: bytes) -> JournalEntry | JournalMark | None:
    """Return what a line says; None if it says nothing that can be read."""
    try:
        data = json.loads(line)
        return (JournalMark if "mark" in data else JournalEntry).model_validate(data)
    except (ValueError, TypeError, RecursionError):
        return None


def _object(path: Path, line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, f"no JSON: {error}") from None
    if not isinstance(data, dict):
        raise _unreadable(path, "no JSON object")
    return data


def _unreadable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path}: line 1 of the journal cannot be read: {payload.shorten(why)}; start afresh without --resume"
    )
