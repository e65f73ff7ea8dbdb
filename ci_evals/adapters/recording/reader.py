"""Reads a recording."""

import json
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from ci_evals.adapters import files, input_files, json_lines
from ci_evals.adapters.recording.records import (
    JUDGE_CHECK,
    NAME,
    RECORDING_VERSION,
    RecordedSuite,
    RecordingHeader,
    TrialKey,
    TrialRecord,
)
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError
from ci_evals.support import payload

R = TypeVar("R", bound=Record)


class Recording:
    """A recording in a file. A trial is loaded when it is replayed."""

    def __init__(self, path: Path) -> None:
        """Check the recording in a file or folder."""
        self.path = path / NAME if files.is_folder(path) else path
        self.size = 0
        """Bytes of all complete lines."""
        self.torn = False
        """True if a part of one more line follows."""
        self._positions: dict[TrialKey, tuple[int, int]] = {}
        """Start and length of each trial's line."""
        if not files.is_there(self.path):
            raise UsageError(f"there is no recording in {str(path)!r} ({NAME}); --record makes one")
        with (
            files.os_errors(f"{str(self.path)!r} cannot be read"),
            input_files.open_file(self.path) as file,
        ):
            self.header = self._read(file)

    @property
    def count(self) -> int:
        """The number of trials."""
        return sum(key != JUDGE_CHECK for key in self._positions)

    def has(self, key: TrialKey) -> bool:
        """Return whether a trial is in the recording."""
        suite = self.suite(key.file, key.suite)
        return suite is not None and replace(key, file=suite.file) in self._positions

    def suite(self, file: str, name: str) -> RecordedSuite | None:
        """Return the recorded suite of this file and name, or the only one of this name."""
        named = [suite for suite in self.header.suites if suite.name == name]
        return next((suite for suite in named if suite.file == file), named[0] if len(named) == 1 else None)

    def trial(self, key: TrialKey) -> TrialRecord | None:
        """Return a trial, or None if it is not in the recording."""
        suite = self.suite(key.file, key.suite)
        return self._load(replace(key, file=suite.file)) if suite else None

    def judge_check(self) -> TrialRecord | None:
        """Return the answers of judges to control questions, or None if there were no questions."""
        return self._load(JUDGE_CHECK)

    def _load(self, key: TrialKey) -> TrialRecord | None:
        position = self._positions.get(key)
        if position is None:
            return None
        start, length = position
        with input_files.open_file(self.path) as file:
            file.seek(start)
            return _read_as(TrialRecord, file.read(length))

    def _read(self, file: BinaryIO) -> RecordingHeader:
        line = next(input_files.lines(file), b"")
        if not line.endswith(b"\n"):
            raise UsageError(f"{str(self.path)!r} is not a recording: it ends before it has begun")
        header = self._header(line)
        self.size = len(line)
        bad: UsageError | None = None
        for number, line in enumerate(input_files.lines(file), start=2):
            if bad:
                raise bad  # only the last line may be torn
            try:
                trial = self._parse(TrialRecord, line, number)
            except UsageError as error:
                bad = error
                continue
            if not line.endswith(b"\n"):
                break
            self._positions[trial.key] = (self.size, len(line))
            self.size += len(line)
        self.torn = self.path.stat().st_size > self.size
        return header

    def _header(self, line: bytes) -> RecordingHeader:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        version = payload.member(data, "recordingVersion")
        if version is None:
            raise UsageError(f"{str(self.path)!r} is not a recording of ci-evals")
        if version != RECORDING_VERSION:
            by = payload.shorten(str(payload.member(payload.member(data, "tool"), "version")))
            form = payload.shorten(str(version))
            raise UsageError(
                f"{str(self.path)!r} was recorded by ci-evals {by!r} in form {form}, "
                f"and this version replays form {RECORDING_VERSION}; record again"
            )
        return self._parse(RecordingHeader, line, 1)

    def _parse(self, kind: type[R], line: bytes, number: int) -> R:
        try:
            return _read_as(kind, line)
        except ValidationError as error:
            why = payload.shorten(json_lines.reason(error))
            raise UsageError(
                f"{str(self.path)!r}: line {number} cannot be read: {why}; record again, or take the "
                "line out, and the recording lacks its trial"
            ) from None


def is_written(path: Path) -> bool:
    """Return whether a run is writing the recording in a file or folder right now."""
    try:
        with input_files.open_file(path / NAME if files.is_folder(path) else path) as file:
            return not json_lines.lock(file.fileno(), shared=True)
    except OSError:
        return False  # reading it will raise the error


def _read_as(kind: type[R], line: bytes) -> R:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        # pydantic's parser accepts less depth than its writer produces.
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise error from None
        return kind.model_validate(data)
