"""The journal of a run: every finished trial in a file, before it is reported as finished.

Each trial is a line of JSON, appended and synced, with a checksum of itself and all lines before it. So
`--resume` uses complete trials only, up to the first damaged or changed line, and only those of the same run,
commit and options.
"""

import errno
import json
import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain as chain_of
from itertools import count, pairwise
from pathlib import Path

from pydantic import ValidationError

from ci_evals._version import __version__
from ci_evals.adapters import files, input_files, json_lines
from ci_evals.adapters.git import checkout
from ci_evals.adapters.otlp.trace_context import LATE_SECONDS
from ci_evals.adapters.signing import Chain
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError
from ci_evals.domain.journal import JournalEntry, JournalHeader, JournalMark, Past
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.support import payload

NAME = "journal.jsonl"

_AFRESH = "or start over without --resume"


@dataclass(frozen=True)
class _Content:
    past: Past | None
    """None if not even the header is complete."""
    size: int
    """Bytes of all complete lines."""
    file_size: int
    torn: bool
    """True if a part of one more line follows."""
    damaged: int | None
    """Number of the first line that was changed, if more lines follow it."""
    ended: bool
    chain: Chain
    """The checksums up to the last complete line."""


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
        """Read the journal in the output folder, to `resume` its run.

        Without a journal the run begins, since a kill may come before there is one. `say` shows a line to the
        user. With a `secret` the journal is signed, and only one written with it is resumed.

        Raises:
            UsageError: the journal cannot be read, or must not be used.
        """
        self._path = folder / NAME
        self._say = say
        self._file = json_lines.LineFile(self._path)
        self._pending: list[bytes] = []
        """Lines that could not be written yet."""
        self._failing = False
        self._last: Record | None = None
        self._secret = secret
        self._earlier = self._read() if resume and files.is_there(self._path) else None
        self._chain = Chain(secret)
        if self._earlier and checkout.tracks(self._path):
            raise UsageError(
                f"--resume: git tracks {self._path}, so whoever could commit it could have written any "
                f"result into it; take it out of the repository (git rm --cached), {_AFRESH}"
            )
        if resume and not self.past:
            say(f"warning: --resume: there is nothing to resume in {folder}, so the run starts over")

    @property
    def past(self) -> Past | None:
        """The finished trials of the resumed run; None if a run begins."""
        return self._earlier.past if self._earlier else None

    def open(self, header: JournalHeader) -> None:
        """Begin the journal, or continue it.

        Raises:
            UsageError: it is of another run or version, another run is writing it, or it cannot be written.
        """
        self._check(header)
        with files.os_errors(f"cannot write {str(self._path)!r}"):
            if self._earlier is None:
                self._set_aside()
            self._file.open()
            _check_lock(self._path, free=self._file.lock())
            if self._earlier and self._file.size() != self._earlier.file_size:
                # The run that wrote it had not quite ended when it was read.
                self._earlier = self._read()
                self._check(header)
            earlier = self._earlier
            if earlier:
                self._file.truncate(earlier.size)
                self._chain = earlier.chain
            if self.past is None:
                self._append(header)
                self._file.flush()
        if self.past and (caution := header.context.caution(self.past.header.context)):
            self._say(f"warning: {caution}")
        if earlier and earlier.damaged:
            self._say(
                f"warning: line {earlier.damaged} of {self._path} is not as it was written: that line and "
                "all later ones are dropped, and their trials are rerun"
            )
        elif earlier and earlier.torn:
            self._say(
                f"the last line of {self._path} is incomplete because the program was killed while writing: "
                "that trial is rerun"
            )

    async def keep(
        self, trial: Trial, result: TrialResult, elapsed: float, at: datetime | None = None
    ) -> None:
        """Append a finished trial, and wait until it is on the disk.

        If that fails the user is warned, and the lines are written with the next trial if possible.
        """
        entry = JournalEntry(
            suite=trial.suite, test=trial.test, index=trial.index, elapsed=elapsed, at=at, result=result
        )
        try:
            self._append(entry)
            await self._file.sync()
        except OSError as error:
            if not self._failing:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): "
                    "the run continues, but what finishes now would be lost if it was killed"
                )
            self._failing = True
        else:
            if self._failing and not self._pending:
                self._say(f"{self._path} can be written again: nothing is missing in it")
                self._failing = False

    def mark(self, mark: JournalMark) -> None:
        """Append a mark, if possible, and unless it is the last record already."""
        if mark == self._last:
            return
        with suppress(OSError):
            self._append(mark)
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> _Content:
        return _read(self._path, self._secret)

    def _check(self, header: JournalHeader) -> None:
        if self.past and (reason := header.context.refusal(self.past.header.context)):
            raise UsageError(
                f"{self._path}: in CI only the journal of the same run and commit is resumed: {reason}; "
                "start over without --resume"
            )
        if self.past and (unlike := self.past.header.unlike(header)):
            raise UsageError(
                f"{self._path}: the journal is of another run: it differs in {'; '.join(unlike)}. Give the "
                f"suites and options of that run, {_AFRESH}"
            )

    def _append(self, record: Record) -> None:
        self._last = record
        self._pending.append(self._chain.seal(json_lines.line(record)))
        if self._file.is_removed():
            raise OSError(errno.ENOENT, "it was removed")
        while self._pending:
            self._file.append(self._pending[0])
            del self._pending[0]

    def _set_aside(self) -> None:
        """Keep the journal of an interrupted run, whose trials have been paid for."""
        if not self._path.exists():
            return
        with input_files.open_file(self._path) as file:
            _check_lock(self._path, free=json_lines.lock(file.fileno()))
        try:
            content = self._read()
        except UsageError:
            past, worthless = None, False
        else:
            past, worthless = content.past, content.ended or not content.past or not content.past.done
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
            f"warning: a run in {self._path.parent} was interrupted{trials}, and this one starts "
            f"over; the journal of that run is kept as {aside.name}. To resume it, name it {NAME} "
            "again and give "
            f"--resume={self._path.parent}"
        )


def _check_lock(path: Path, *, free: bool) -> None:
    if not free:
        raise UsageError(
            f"{path}: another run is writing here; wait until it ends, or name another --output-dir"
        )


def _read(path: Path, secret: str | None) -> _Content:
    with files.os_errors(f"--resume: {path} cannot be read"), input_files.open_file(path) as file:
        return _read_lines(path, input_files.lines(file), secret)


def _read_lines(path: Path, file: Iterable[bytes], secret: str | None) -> _Content:
    """Read line by line: the journal of a long run does not fit into memory twice."""
    header: JournalHeader | None = None
    written_at: datetime | None = None
    done: dict[Trial, TrialResult] = {}
    elapsed, size, ended, rest, damaged = 0.0, 0, False, 0, None
    check_failed = False
    written: dict[Trial, float] = {}
    late: set[str] = set()
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
            # After a crash of the machine, the last line may hold older data of the disk.
            rest, damaged = len(line), number if following else None
            continue
        size += len(line)
        if isinstance(record, JournalEntry):
            elapsed, written_at = max(elapsed, record.elapsed), record.at
            written[record.trial] = record.elapsed
            if not (check_failed and record.result.judged):
                done[record.trial] = record.result.packed()
        else:
            check_failed = {"judge_check_failed": True, "resumed": False}.get(record.mark, check_failed)
            late.update(record.traces)
            done = {trial: result for trial, result in done.items() if not _is_revoked(result, record)}
        ended = isinstance(record, JournalMark) and record.mark == "ended"
    # Evidence of what was written last may have been under way when the program was killed.
    settled = math.inf if ended else elapsed - LATE_SECONDS
    done = {
        trial: result
        for trial, result in done.items()
        if _is_settled(result, late, recent=written[trial] >= settled)
    }
    past = Past(header, done, elapsed, written_at) if header else None
    return _Content(past, size, size + rest, torn=bool(rest), damaged=damaged, ended=ended, chain=chain)


def _is_revoked(result: TrialResult, mark: JournalMark) -> bool:
    """Return whether a mark says that a result before it is not to be used."""
    match mark.mark:
        case "outage":
            return result.needs_rerun
        case "judge_check_failed":
            return result.judged
        case "late_evidence":
            return mark.earlier and bool(_traces(result))
    return False


def _is_settled(result: TrialResult, late: Collection[str], *, recent: bool) -> bool:
    """Return whether nothing that came late, or may have, belongs to a result's evidence."""
    if recent:
        return not _traces(result)
    return not late or _traces(result).isdisjoint(late)


def _traces(result: TrialResult) -> set[str]:
    """Return the traces that a result takes for complete evidence."""
    whole = [turn.traceparent for turn in result.turns if turn.traceparent and not turn.tool_calls_partial]
    return {traceparent.split("-")[1] for traceparent in whole}


def _header(path: Path, line: bytes, chain: Chain, secret: str | None) -> JournalHeader:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    version = payload.member(data, "journalVersion")
    written_by = payload.member(payload.member(data, "tool"), "version")
    if version is not None and isinstance(written_by, str) and (version, written_by) != (3, __version__):
        raise UsageError(
            f"{path}: the journal was written by ci-evals {written_by[:40]!r}, in form {str(version)[:10]}, "
            f"and this is {__version__}, with form 3; resume it with that version, {_AFRESH}"
        )
    try:
        header = JournalHeader.model_validate_json(line)
    except ValidationError as error:
        raise UsageError(f"{path}: this is not a journal of ci-evals: {json_lines.reason(error)}") from None
    if not chain.accepts(line):
        keyed = ", or was written with another LLM key, or outside CI" if secret else ""
        raise UsageError(
            f"{path}: line 1 of the journal is not as it was written: the file was changed{keyed}; start "
            "over without --resume"
        )
    return header


def _record(line: bytes) -> JournalEntry | JournalMark | None:
    try:
        data = json.loads(line)
        return (JournalMark if "mark" in data else JournalEntry).model_validate(data)
    except (ValueError, TypeError, RecursionError):
        return None
