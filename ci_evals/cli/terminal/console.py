"""Standard error, sanitized and without secrets."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from ci_evals.reports import sanitize
from ci_evals.reports.columns import wrapped
from ci_evals.support.redaction import Redactor

PLEASE_REPORT = "This is a bug in ci-evals. Please report it with the lines above."


@dataclass(frozen=True)
class Console:
    """A stream for people. Every line goes through the redactor and the sanitizer, and fits a terminal."""

    stream: TextIO
    redactor: Redactor
    color: bool = False
    spell: Callable[[str], str] = str
    """Spells the settings in a message."""

    def say(self, text: str) -> None:
        """Write `text`, line by line."""
        self._write(wrapped(sanitize.log(self.spell(self.redactor.text(text))), width_of(self.stream)))

    def command(self, line: str) -> None:
        """Write a workflow command, which the sanitizer would break. What is foreign in it is clean."""
        self._write(self.redactor.text(line))

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody listens any more; the reports are what counts
            self.stream.write(text + "\n")
            self.stream.flush()


def width_of(stream: TextIO) -> int | None:
    """Return the columns of the terminal that the stream writes to; None if it is none."""
    if stream.closed or not stream.isatty():
        return None
    return shutil.get_terminal_size().columns


def colored(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether to use colors: on a terminal or with `FORCE_COLOR`, and never with `NO_COLOR`."""
    if environ.get("NO_COLOR"):
        return False
    terminal = not stream.closed and stream.isatty()
    return bool(environ.get("FORCE_COLOR")) or (terminal and environ.get("TERM") != "dumb")
