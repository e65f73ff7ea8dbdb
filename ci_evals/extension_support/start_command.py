"""The command `start` of a suite, for a suite in another folder."""

import os
import re
import shlex
from pathlib import Path, PurePath

_JOINS_COMMANDS = re.compile(r"[;&|\n]")


def moved(command: str, run_in: Path, suite_folder: Path) -> str:
    """Return the `start` of a suite in `suite_folder` that runs the command in the folder `run_in`."""
    start, end = suite_folder.resolve(), run_in.resolve()
    if start == end:
        return command
    try:
        folder = PurePath(os.path.relpath(end, start)).as_posix()
    except ValueError:  # on another drive
        folder = end.as_posix()
    if _JOINS_COMMANDS.search(command):
        command = f"({command})"
    return f"cd {shlex.quote(folder)} && {command}"
