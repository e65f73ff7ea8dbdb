"""Reads a recording: where in its file which trial stands, and whether all of it can be read."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from ci_evals.adapters import files, input_files, json_lines
from ci_evals.adapters.recording.tape import JUDGE_CHECK, NAME, Header, Key, RecordedSuite, Take
from ci_evals.adapters.transport import payload
from ci_evals.domain.base import Record
from ci_evals.domain.errors import UsageError

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class _Place:
    start: int
    length: int


class Recording:
    """A recording in a file. Only places are held in memory: a trial is read when it is played."""

    def __init__(self, path: Path) -> None:
        """Reads it once from end to end.

        Args:
            path: The file, or the folder that holds it.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        self.path = path / NAME if files.is_folder(path) else path
        self.size = 0
        """Bytes of all whole lines."""
        self.torn = False
        """Whether the beginning of one more is there."""
        self._places: dict[Key, _Place] = {}
        try:
            with input_files.open_file(self.path) as file:
                self.header = self._read(file)
        except FileNotFoundError:
            raise UsageError(f"there is no recording in {str(path)!r} ({NAME}); --record makes one") from None
        except OSError as error:
            raise UsageError(f"{str(self.path)!r} cannot be read: {error.strerror or error}") from error

    @property
    def count(self) -> int:
        """How many trials it has."""
        return sum(key != JUDGE_CHECK for key in self._places)

    def holds(self, key: Key) -> bool:
        """Return whether a trial is in the recording, whole."""
        suite = self.suite(key.file, key.suite)
        return suite is not None and replace(key, file=suite.file) in self._places

    def suite(self, file: str, name: str) -> RecordedSuite | None:
        """The suite as it was recorded.

        One whose file was called otherwise then, as from another folder, is known by its name where that is
        the name of one suite alone.
        """
        named = [suite for suite in self.header.suites if suite.name == name]
        return next((suite for suite in named if suite.file == file), named[0] if len(named) == 1 else None)

    def take(self, key: Key) -> Take | None:
        """A trial; None where it is not in the recording."""
        suite = self.suite(key.file, key.suite)
        return self._take(replace(key, file=suite.file)) if suite else None

    def check(self) -> Take | None:
        """The answers of judges to control questions; None if none were asked."""
        return self._take(JUDGE_CHECK)

    def _take(self, key: Key) -> Take | None:
        place = self._places.get(key)
        if place is None:
            return None
        with input_files.open_file(self.path) as file:
            file.seek(place.start)
            return _read_as(Take, file.read(place.length))

    def _read(self, file: BinaryIO) -> Header:
        line = next(input_files.lines(file), b"")
        if not line.endswith(b"\n"):
            raise UsageError(f"{str(self.path)!r} is no recording: it ends before it has begun")
        header = self._header(line)
        self.size = len(line)
        bad: UsageError | None = None
        for number, line in enumerate(input_files.lines(file), start=2):
            if bad:
                raise bad  # only the last line may be torn
            try:
                take = self._parsed(Take, line, number)
            except UsageError as error:
                bad = error
                continue
            if not line.endswith(b"\n"):
                break
            self._places[take.key] = _Place(self.size, len(line))
            self.size += len(line)
        self.torn = self.path.stat().st_size > self.size
        return header

    def _header(self, line: bytes) -> Header:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        version = payload.member(data, "recordingVersion")
        if version is None:
            raise UsageError(f"{str(self.path)!r} is no recording of ci-evals")
        if version != 1:
            by = payload.shorten(str(payload.member(payload.member(data, "tool"), "version")))
            raise UsageError(
                f"{str(self.path)!r} was recorded by ci-evals {by!r} in a form that is not known here; "
                "record again"
            )
        return self._parsed(Header, line, 1)

    def _parsed(self, kind: type[R], line: bytes, number: int) -> R:
        try:
            return _read_as(kind, line)
        except ValidationError as error:
            why = payload.shorten(json_lines.why(error))
            raise UsageError(
                f"{str(self.path)!r}: line {number} cannot be read: {why}; record again, or take the "
                "line out, and the recording lacks its trial"
            ) from None


def is_written(path: Path) -> bool:
    """Return whether a run is recording to a file, or to the file in a folder, right now."""
    try:
        with input_files.open_file(path / NAME if files.is_folder(path) else path) as file:
            return not json_lines.lock(file.fileno(), shared=True)
    except OSError:
        return False  # reading it tells why


def _read_as(kind: type[R], line: bytes) -> R:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        # pydantic's own reader gives up on a trace nested less deeply than its writer writes.
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise error from None
        return kind.model_validate(data)
