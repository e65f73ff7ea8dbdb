"""Answers of models, kept in a folder: each in a file of its own, found again by the digest of its question.

Whoever can write there could say what a judge says. So the folder is its owner's alone, and what is found is
believed only where it has the form that is written here and the digest of the question.
"""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.domain.errors import UsageError
from ci_evals.redaction import Redactor

VERSION = 1
"""Of what is kept: raised where an answer is read in another way than before, so that all are asked anew."""

MOST_DAYS = 30
"""So long an answer is given again. A model that was replaced in silence is then asked once more."""
MOST_CHARACTERS = 100_000
"""Of an answer that is kept."""

_MOST_BYTES = 6 * MOST_CHARACTERS + 1_000
"""Of a file: JSON takes six bytes for a character at the most."""
_DAY = 24 * 60 * 60
_SWEPT = "swept"
"""A file that is as old as the last look for old answers."""
_OURS = re.compile(r"[0-9a-f]{64}\.json|\.[0-9a-f]{16}\.tmp")


class AnswerCache:
    """The answers in a folder. Many processes may use it at the same time.

    No fault of it costs more than the call that it would have saved: what cannot be read is not there, and
    after the first that cannot be written no more are.
    """

    def __init__(self, folder: Path, redactor: Redactor, clock: Callable[[], float] = time.time) -> None:
        """Opens nothing yet. The redactor knows what must not be written, the clock tells seconds."""
        self._folder, self._redactor, self._clock = folder, redactor, clock
        self._unsafe = _is_everybodys(folder)
        self._lost: str | None = f"everybody may write to {str(folder)!r}" if self._unsafe else None

    def find(self, key: str) -> str | None:
        """The answer to the question of that digest; None where there is none that can be believed."""
        if self._unsafe:
            return None
        try:
            kept = json.loads(self._read(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return None
        match kept:
            case {"version": int(version), "key": str(found), "answer": str(answer)}:
                fits = (version, found) == (VERSION, key) and len(answer) <= MOST_CHARACTERS
                return answer if fits and answer else None
        return None

    def keep(self, key: str, answer: str) -> None:
        """Keeps an answer, in place of what was there; none that holds a secret, or is longer than any is."""
        if self._lost or len(answer) > MOST_CHARACTERS or self._redactor.text_to_read(answer) != answer:
            return
        text = json.dumps({"version": VERSION, "key": key, "answer": answer}) + "\n"
        try:
            files.write(self._path(key), text, private=True)
        except UsageError as error:
            self._lost = str(error)

    def sweep(self) -> None:
        """Takes away what is older than is given again, at most once a day. Other files are left alone."""
        mark = self._folder / _SWEPT
        if self._unsafe or not files.is_folder(self._folder) or self._age(mark) < _DAY:
            return
        with suppress(OSError, UsageError):
            files.write(mark, "", private=True)
            for file in _kept(self._folder):
                if self._age(file) > MOST_DAYS * _DAY:
                    file.unlink(missing_ok=True)

    def note(self) -> str | None:
        """What its user should know, if anything."""
        return self._lost and f"--judge-cache: {self._lost}; the judge's answers are not kept"

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _read(self, path: Path) -> bytes:
        """What is in a file that is young enough.

        Raises:
            OSError, ValueError: it cannot be read, or is none that was written here.
        """
        # Neither a link, which may lead anywhere, nor a pipe, which would be waited for.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                raise ValueError("it is no answer")
            if self._clock() - found.st_mtime > MOST_DAYS * _DAY:
                raise ValueError("it is too old")
            return file.read(_MOST_BYTES)

    def _age(self, path: Path) -> float:
        """Seconds since a file was written; no end of them where there is none."""
        try:
            return self._clock() - path.lstat().st_mtime
        except OSError:
            return float("inf")


def _is_everybodys(folder: Path) -> bool:
    """Whether anybody on this machine may put something there."""
    try:
        return os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _kept(folder: Path) -> Iterator[Path]:
    """The files that were written here."""
    for inner in folder.iterdir():
        if re.fullmatch("[0-9a-f]{2}", inner.name) and not inner.is_symlink() and inner.is_dir():
            yield from (file for file in inner.iterdir() if _OURS.fullmatch(file.name))
