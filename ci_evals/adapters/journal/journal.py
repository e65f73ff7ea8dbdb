"""The journal of a run: every finished trial in a file, before it is reported as finished.

Each trial is a line of JSON, appended and synced, with a checksum of itself and all lines before it. So
a resumed run uses complete trials only, up to the first damaged or changed line, and only those of the same
run, commit and options.

With `record` each line also holds the answers of the trial's agent and models, and the lines are written to
a second file too, the recording. The journal alone counts when a run is resumed: the recording is then
copied from it.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from ci_evals.adapters import files, input_files
from ci_evals.adapters.git import checkout
from ci_evals.adapters.journal import line_file
from ci_evals.adapters.journal.answers import TrialAnswers
from ci_evals.adapters.journal.line_file import LineFile
from ci_evals.adapters.journal.reading import Content, Recording, read_content
from ci_evals.adapters.journal.records import (
    JOURNAL,
    RECORDING,
    JournalEntry,
    JournalHeader,
    JournalMark,
    JudgeCheckAnswers,
    Past,
)
from ci_evals.adapters.signing import Chain
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError
from ci_evals.domain.numbers import count
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.trial import TrialResult

_HEAD = b'{"journalVersion":'
"""The first bytes of every journal."""


class Journal:
    """The journal in an output folder. `open` comes first, `close` last."""

    def __init__(
        self,
        folder: Path,
        *,
        resume: bool = False,
        record: Path | None = None,
        say: Callable[[str], None] = lambda _: None,
        secret: str | None = None,
    ) -> None:
        """Read the journal in the output folder, to `resume` its run.

        Without a journal the run begins, since a kill may come before there is one. `record` is the folder
        of the recording. `say` shows a line to the user. With a `secret` the journal is signed, and only one
        written with it is resumed.

        Raises:
            UsageError: the journal cannot be read or must not be used, or the recording is of another run.
        """
        self._path = folder / JOURNAL
        self._say = say
        self._file = LineFile(self._path)
        self._recording = LineFile(record / RECORDING) if record else None
        self._last: Record | None = None
        self._secret = secret
        self._earlier = self._read() if resume and files.is_there(self._path) else None
        self._chain = Chain(secret)
        if self._earlier and checkout.tracks(self._path):
            raise UsageError(
                f"`resume=`: git tracks {self._path}, so whoever could commit it could have written any "
                "result into it; take it out of the repository (git rm --cached), or start over without "
                "`resume=`"
            )
        if record:
            self._check_recording(record / RECORDING)
        if resume and not self.past:
            say(f"warning: `resume=`: there is nothing to resume in {folder}, so the run starts over")

    @property
    def past(self) -> Past | None:
        """The finished trials of the resumed run; None if a run begins."""
        return self._earlier.past if self._earlier else None

    @property
    def holds_answers(self) -> bool:
        """True if answers are kept with the trials: those of a resumed run as before."""
        return bool(self.past.header.recorded) if self.past else self._recording is not None

    def open(self, header: JournalHeader) -> None:
        """Begin the journal, or continue it; with it the recording.

        Raises:
            UsageError: it is of another run or version, another run is writing it, or it cannot be written.
        """
        self._check(header)
        with files.os_errors(f"cannot write {str(self._path)!r}"):
            self._open(header)
        if self._recording:
            with files.os_errors(f"`record=`: cannot write {str(self._recording.path)!r}"):
                self._recording.open()
                _check_lock(self._recording)
                self._recording.copy_from(self._path)
        if self.past and (caution := header.context.caution(self.past.header.context)):
            self._say(f"warning: {caution}")
        if self._earlier and self._earlier.damaged:
            self._say(
                f"warning: line {self._earlier.damaged} of {self._path} is not as it was written: that line "
                "and all later ones are dropped, and their trials are rerun"
            )
        elif self._earlier and self._earlier.torn:
            self._say(
                f"the last line of {self._path} is incomplete because the program was killed while writing: "
                "that trial is rerun"
            )

    async def keep(
        self,
        trial: Trial,
        result: TrialResult,
        elapsed: float,
        at: datetime | None = None,
        answers: TrialAnswers | None = None,
    ) -> None:
        """Append a finished trial, and wait until it is on the disk.

        If that fails the user is warned, and the lines are written with the next trial if possible.
        """
        entry = JournalEntry(
            suite=trial.suite,
            test=trial.test,
            index=trial.index,
            elapsed=elapsed,
            at=at,
            result=result,
            answers=answers,
        )
        self._add(entry)
        for file in self._files:
            await self._save(file)

    def mark(self, mark: JournalMark | JudgeCheckAnswers) -> None:
        """Append a mark, if possible, and unless it is the last record already."""
        if mark == self._last:
            return
        self._add(mark)
        for file in self._files:
            with suppress(OSError):
                file.write_pending()
                file.flush()

    def close(self) -> None:
        """Close the files, and warn if the recording has gaps."""
        for file in self._files:
            file.close()
        if self._recording and (missing := len(self._recording.pending)):
            lines = "its last line" if missing == 1 else f"its last {missing} lines"
            self._say(f"warning: {self._recording.path} lacks {lines}")

    @property
    def _files(self) -> tuple[LineFile, ...]:
        return (self._file, self._recording) if self._recording else (self._file,)

    def _read(self) -> Content:
        return read_content(self._path, self._secret)

    def _check(self, header: JournalHeader) -> None:
        if self.past is None:
            return
        earlier = self.past.header
        if reason := header.context.refusal(earlier.context):
            raise UsageError(
                f"{self._path}: in CI only the journal of the same run and commit is resumed: {reason}; "
                "start over without `resume=`"
            )
        if differences := earlier.unlike(header):
            raise UsageError(
                f"{self._path}: the journal is of another run: it differs in {'; '.join(differences)}. Give "
                "the suites and options of that run, or start over without `resume=`"
            )
        if self._recording and not earlier.recorded:
            raise UsageError(
                f"`record=`: {self._path} holds no answers, since its run was not recorded; remove `record=` "
                "to resume it, or remove `resume=` to record from the start"
            )

    def _open(self, header: JournalHeader) -> None:
        if self._earlier is None:
            self._set_aside()
        self._file.open()
        _check_lock(self._file)
        if self._earlier and self._file.size() != self._earlier.file_size:
            # The run that wrote it had not quite ended when it was read.
            self._earlier = self._read()
            self._check(header)
        if self._earlier:
            self._file.truncate(self._earlier.size)
            self._chain = self._earlier.chain
        if self.past is None:
            self._file.pending.append(self._chain.seal(line_file.line(header)))
            self._file.write_pending()
            self._file.flush()

    def _check_recording(self, path: Path) -> None:
        """Make sure that a recording of another run is not written over."""
        if not files.is_there(path):
            return
        with files.os_errors(f"`record=`: {path} cannot be read"), input_files.open_file(path) as file:
            head = next(input_files.lines(file), b"")
        if not head.endswith(b"\n") and head[: len(_HEAD)] == _HEAD[: len(head)]:
            return  # its run was killed before the first line was complete
        recording = Recording(path)
        if recording.count and not (self.past and recording.header.run == self.past.header.run):
            raise UsageError(
                f"`record=`: {str(path)!r} is there already, of the run of "
                f"{recording.header.started_at:%Y-%m-%d %H:%M} UTC, and not overwritten; name another "
                "folder, or delete that file first"
            )

    def _add(self, record: Record) -> None:
        self._last = record
        line = self._chain.seal(line_file.line(record))
        for file in self._files:
            file.pending.append(line)

    async def _save(self, file: LineFile) -> None:
        try:
            file.write_pending()
            await file.sync()
        except OSError as error:
            if not file.failing:
                risk = "what finishes now would be lost if it was killed"
                if file is self._recording:
                    risk = "its recording may lack what finishes now"
                self._say(
                    f"warning: {file.path} cannot be written ({error.strerror or error}): "
                    f"the run continues, but {risk}"
                )
            file.failing = True
        else:
            if file.failing and not file.pending:
                self._say(f"{file.path} can be written again: nothing is missing in it")
                file.failing = False

    def _set_aside(self) -> None:
        """Keep the journal of an interrupted run, whose trials have been paid for."""
        if not self._path.exists():
            return
        with closing(LineFile(self._path)) as file:
            file.open()
            _check_lock(file)
        past, worthless = None, False
        with suppress(UsageError):
            content = self._read()
            past = content.past
            worthless = content.ended or not past or not past.done
        if worthless:
            self._path.unlink()
            return
        aside = self._free_name(past)
        self._path.rename(aside)
        finished = len(past.done) if past else 0
        trials = ""
        if finished:
            trials = f" after {count(finished, 'finished trial')}"
        self._say(
            f"warning: a run in {self._path.parent} was interrupted{trials}, and this one starts "
            f"over; the journal of that run is kept as {aside.name}. To resume it, name it {JOURNAL} "
            "again and give "
            f"`resume={self._path.parent}`"
        )

    def _free_name(self, past: Past | None) -> Path:
        stamp = f"{past.header.started_at:%Y-%m-%dT%H-%M-%SZ}" if past else "old"
        path, number = self._path.with_name(f"journal-{stamp}.jsonl"), 1
        while path.exists():
            number += 1
            path = self._path.with_name(f"journal-{stamp}-{number}.jsonl")
        return path


def _check_lock(file: LineFile) -> None:
    if not file.lock():
        raise UsageError(
            f"{file.path}: another run is writing here; wait until it ends, or name another folder"
        )
