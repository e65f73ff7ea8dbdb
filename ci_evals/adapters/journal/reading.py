"""Reads a journal: the finished trials, to resume its run, or the answers in it, to replay them."""

import json
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from ci_evals._version import __version__
from ci_evals.adapters import files, input_files
from ci_evals.adapters.journal import line_file
from ci_evals.adapters.journal.answers import AnswerRecord, TrialAnswers, TrialKey
from ci_evals.adapters.journal.records import (
    RECORDING,
    VERSION,
    JournalEntry,
    JournalHeader,
    JournalMark,
    JudgeCheckAnswers,
    Past,
    Recorded,
    RecordedSuite,
)
from ci_evals.adapters.signing import Chain
from ci_evals.adapters.trace_context import LATE_SECONDS
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.support import payload

Line = JournalEntry | JournalMark | JudgeCheckAnswers
L = TypeVar("L", JournalEntry, JudgeCheckAnswers)

_BROKEN = (ValueError, TypeError, RecursionError)
"""The errors of a line that holds no record."""
_START_OVER = "start over without `resume=`"


@dataclass(frozen=True)
class Content:
    """A journal as far as it is as it was written."""

    past: Past | None
    """None if not even the header is complete."""
    size: int
    """Bytes of all complete lines."""
    file_size: int
    damaged: int | None
    """Number of the first line that was changed, if more lines follow it."""
    ended: bool
    chain: Chain
    """The checksums up to the last complete line."""

    @property
    def torn(self) -> bool:
        """True if a part of one more line follows."""
        return self.size < self.file_size


def read_content(path: Path, secret: str | None) -> Content:
    """Read a journal to resume its run: up to the first line that is not as it was written.

    Raises:
        UsageError: it cannot be read, or its header is not one that was written here, with this secret.
    """
    with files.os_errors(f"`resume=`: {path} cannot be read"), input_files.open_file(path) as file:
        return _read_lines(path, file, secret)


def _read_lines(path: Path, file: BinaryIO, secret: str | None) -> Content:
    """Read line by line: the journal of a long run does not fit into memory twice."""
    file_size = os.fstat(file.fileno()).st_size
    header: JournalHeader | None = None
    trials, chain = _Trials(), Chain(secret)
    size, damaged = 0, None
    for number, line in enumerate(input_files.lines(file), start=1):
        record = None
        if header is None and line.endswith(b"\n"):
            header = _header_to_resume(path, line, chain, secret)
        elif header and (record := _intact(line, chain)):
            trials.add(record)
        else:
            # After a crash of the machine, the last line may hold older data of the disk.
            damaged = number if size + len(line) < file_size else None
            break
        size += len(line)
    past = None
    if header:
        past = Past(header, trials.usable(), trials.elapsed, trials.written_at)
    return Content(past, size, file_size, damaged, trials.ended, chain)


class _Trials:
    """The results in a journal, as its lines add and revoke them."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.written_at: datetime | None = None
        self.ended = False
        self._done: dict[Trial, TrialResult] = {}
        self._written: dict[Trial, float] = {}
        """When each was written, in seconds of the run."""
        self._late: set[str] = set()
        """Traces of which evidence came late."""
        self._check_failed = False

    def add(self, record: Line) -> None:
        """Take the next line."""
        self.ended = isinstance(record, JournalMark) and record.mark == "ended"
        if isinstance(record, JournalEntry):
            self.elapsed = max(self.elapsed, record.elapsed)
            self.written_at = record.at
            self._written[record.trial] = record.elapsed
            if not (self._check_failed and record.result.judged):
                self._done[record.trial] = record.result.packed()
        elif isinstance(record, JournalMark):
            if record.mark == "judge_check_failed":
                self._check_failed = True
            elif record.mark == "resumed":
                self._check_failed = False
            self._late.update(record.traces)
            self._done = {
                trial: result for trial, result in self._done.items() if not _is_revoked(result, record)
            }

    def usable(self) -> Mapping[Trial, TrialResult]:
        """Return the results whose evidence is complete."""
        # Evidence of what was written last may have been under way when the program was killed.
        settled = math.inf if self.ended else self.elapsed - LATE_SECONDS
        return {
            trial: result
            for trial, result in self._done.items()
            if _is_settled(result, self._late, recent=self._written[trial] >= settled)
        }


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
    complete = [turn.traceparent for turn in result.turns if turn.traceparent and not turn.tool_calls_partial]
    return {traceparent.split("-")[1] for traceparent in complete}


def _header_to_resume(path: Path, line: bytes, chain: Chain, secret: str | None) -> JournalHeader:
    advice = f"resume it with that version, or {_START_OVER}"
    header = _header(path, line, advice)
    if header.tool.version != __version__:
        raise _other_version(path, header.tool.version, VERSION, advice)
    if not chain.accepts(line):
        keyed = ", or was written with another LLM key, or outside CI" if secret else ""
        raise UsageError(
            f"{path}: line 1 of the journal is not as it was written: the file was changed{keyed}; "
            f"{_START_OVER}"
        )
    return header


def _header(path: Path, line: bytes, advice: str) -> JournalHeader:
    """Return the header of a journal. `advice` is for one of another form.

    Raises:
        UsageError: it is of another form, or no header.
    """
    try:
        data = json.loads(line)
    except _BROKEN:
        data = None
    form = payload.member(data, "journalVersion") or payload.member(data, "recordingVersion")
    if form is None:
        raise UsageError(f"{path}: this is not a journal or recording of ci-evals")
    if form != VERSION:
        raise _other_version(path, payload.member(payload.member(data, "tool"), "version"), form, advice)
    try:
        return JournalHeader.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{path}: line 1 cannot be read: {_reason(error)}; {advice}") from None


def _other_version(path: Path, version: object, form: object, advice: str) -> UsageError:
    return UsageError(
        f"{path} was written by ci-evals {payload.shorten(str(version))!r}, in form "
        f"{payload.shorten(str(form))}, and this is {__version__}, with form {VERSION}; {advice}"
    )


def _intact(line: bytes, chain: Chain) -> Line | None:
    """Return the record of a line; None if it is not as it was written."""
    if not chain.accepts(line):
        return None
    try:
        return _record(line)
    except _BROKEN:
        return None


def _record(line: bytes) -> Line:
    """Return the record of a line. Raises one of `_BROKEN` if it holds none."""
    data = json.loads(line)  # pydantic's parser accepts less depth than its writer produces
    if "mark" in data:
        return JournalMark.model_validate(data)
    if "judgeCheck" in data:
        return JudgeCheckAnswers.model_validate(data)
    return JournalEntry.model_validate(data)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return payload.shorten(line_file.reason(error))
    return "it is not JSON"


@dataclass(frozen=True)
class RecordedTrial:
    """A trial in a recording."""

    answers: TrialAnswers
    result: TrialResult
    """The result of these answers, corrected if evidence came late."""


_Span = tuple[int, int]
"""Start and length of a line."""


class Recording:
    """A journal with answers, to be replayed. A trial is loaded when it is its turn.

    Checksums are not compared: whoever replays need not know the secret of the run that was recorded.
    """

    def __init__(self, path: Path) -> None:
        """Check the recording in a file or folder.

        Raises:
            UsageError: it cannot be read, or is no recording.
        """
        self.path = path / RECORDING if files.is_folder(path) else path
        self.size = 0
        """Bytes of all complete lines."""
        self._places: dict[TrialKey, Trial] = {}
        self._answers: dict[Trial, _Span] = {}
        self._results: dict[Trial, _Span] = {}
        self._judge_check: _Span | None = None
        if not files.is_there(self.path):
            raise UsageError(f"there is no recording in {str(path)!r} ({RECORDING}); `record=` makes one")
        with files.os_errors(f"{self.path} cannot be read"), input_files.open_file(self.path) as file:
            if not line_file.lock(file.fileno(), shared=True):
                raise UsageError(f"a run is still recording to {str(path)!r}. Wait until it ends.")
            self.header, self.recorded = self._read(file)
            self.torn = os.fstat(file.fileno()).st_size > self.size
            """True if a part of one more line follows."""

    @property
    def count(self) -> int:
        """The number of trials."""
        return len(self._places)

    def suite(self, file: str, name: str) -> RecordedSuite | None:
        """Return the recorded suite of this file and name, or the only one of this name."""
        named = [suite for suite in self.recorded.suites if suite.name == name]
        for suite in named:
            if suite.file == file:
                return suite
        return named[0] if len(named) == 1 else None

    def trial(self, key: TrialKey) -> RecordedTrial | None:
        """Return a trial, or None if it is not in the recording."""
        suite = self.suite(key.file, key.suite)
        place = self._places.get(key.copy_with(file=suite.file)) if suite else None
        if place is None:
            return None
        answers = self._load(JournalEntry, self._answers[place]).answers
        result = self._load(JournalEntry, self._results[place]).result
        return RecordedTrial(answers, result) if answers else None

    def judge_check(self) -> tuple[AnswerRecord, ...]:
        """Return the answers of judges to control questions; none if there were no questions."""
        if self._judge_check is None:
            return ()
        return self._load(JudgeCheckAnswers, self._judge_check).judge_check

    def _load(self, kind: type[L], span: _Span) -> L:
        start, length = span
        with input_files.open_file(self.path) as file:
            file.seek(start)
            return kind.model_validate(json.loads(file.read(length)))

    def _read(self, file: BinaryIO) -> tuple[JournalHeader, Recorded]:
        lines = input_files.lines(file)
        line = next(lines, b"")
        if not line.endswith(b"\n"):
            raise UsageError(f"{self.path} is not a recording: it ends before it has begun")
        header = _header(self.path, line, "record again")
        if header.recorded is None:
            raise UsageError(f"{self.path} holds no answers; run again with `record=`")
        self.size = len(line)
        unreadable: UsageError | None = None
        for number, line in enumerate(lines, start=2):
            if unreadable:
                raise unreadable  # only the last line may be torn
            try:
                record = _record(line)
            except _BROKEN as error:
                unreadable = UsageError(
                    f"{self.path}: line {number} cannot be read: {_reason(error)}; record again, or take the "
                    "line out, and the recording lacks its trial"
                )
                continue
            if line.endswith(b"\n"):
                self._add(record, (self.size, len(line)))
                self.size += len(line)
        return header, header.recorded

    def _add(self, record: Line, span: _Span) -> None:
        if isinstance(record, JudgeCheckAnswers):
            self._judge_check = span
        elif isinstance(record, JournalEntry):
            self._results[record.trial] = span
            if record.answers:
                self._places[record.answers.trial] = record.trial
                self._answers[record.trial] = span
