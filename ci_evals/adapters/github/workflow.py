"""The runner's command files and command lines: outputs, step summary, masks.

Paths come in as arguments. The rules are those of the runner's own toolkit: a random delimiter for every
output, percent signs and line ends escaped in commands.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ci_evals.domain.errors import UsageError

SUMMARY_BYTES = 900 * 1024
"""The runner drops the whole summary of a step above 1 MiB."""

_NOTE_BYTES = 200


def escape_data(text: str) -> str:
    """`text` for the part of a command after the second `::`."""
    return _encodable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """`text` for a property of a command, such as `title=`."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def mask_lines(values: Iterable[str]) -> list[str]:
    """Commands that make the runner hide these values in its log, in a fixed order.

    The log is searched line by line, so each line of a value is masked as well as the whole of it.
    """
    parts = {part.strip() for value in values for part in (value, *value.splitlines())}
    return [f"::add-mask::{escape_data(part)}" for part in sorted(parts) if part]


def write_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Appends the step's outputs to the file that `GITHUB_OUTPUT` names.

    Raises:
        UsageError: The file cannot be written.
    """
    _append(path, "".join(_output(name, _encodable(value)) for name, value in outputs.items()))


def append_summary(path: Path, sections: Sequence[str], budget: int = SUMMARY_BYTES) -> None:
    """Appends Markdown to the file that `GITHUB_STEP_SUMMARY` names, as many whole `sections` as fit.

    The most important come first. Where some are left out, a note says how many. `budget` is in bytes of
    UTF-8, with what the file holds already.

    Raises:
        UsageError: The file cannot be written.
    """
    room = budget - (path.stat().st_size if path.exists() else 0)
    _append(path, _fitting([_encodable(section) for section in sections], room))


def _output(name: str, value: str) -> str:
    delimiter = f"ci_evals_{secrets.token_hex(16)}"
    while delimiter in value:
        delimiter = f"ci_evals_{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _fitting(sections: Sequence[str], room: int) -> str:
    whole = "\n".join(sections) + "\n"
    if len(whole.encode()) <= room:
        return whole
    kept: list[str] = []
    left = room - _NOTE_BYTES
    for section in sections:
        left -= len(section.encode()) + 1
        if left < 0:
            break
        kept.append(section)
    missing = len(sections) - len(kept)
    parts = "1 part does" if missing == 1 else f"{missing} parts do"
    note = f"_{parts} not fit here. The summary.md of this run has everything._\n"
    return "\n".join([*kept, note]) if len(note.encode()) <= room else ""


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _encodable(text: str) -> str:
    """Half a surrogate pair cannot be written as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
