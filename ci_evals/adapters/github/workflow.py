"""The runner's command files and command lines: outputs, step summary, masks.

Paths come in as arguments. The rules are those of the runner's own toolkit: a random delimiter for every
output, percent signs and line ends escaped in commands.
"""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from ci_evals.adapters.github import command_files
from ci_evals.domain.errors import UsageError
from ci_evals.support.text import whole

SUMMARY_BYTES = 900 * 1024
"""The runner drops the whole summary of a step above 1 MiB."""

_SHORTEST_MASK = 6


def escape_data(text: str) -> str:
    """`text` for the part of a command after the second `::`."""
    return whole(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def mask_lines(values: Iterable[str]) -> list[str]:
    """Commands that make the runner hide these values in its log, in a fixed order.

    The log is searched line by line, so each line of a value is masked as well as the whole of it, but for
    lines such as a lone brace, which would take every brace out of the log.
    """
    parts = {part.strip() for value in values for part in (value, *value.splitlines())}
    return [f"::add-mask::{escape_data(part)}" for part in sorted(parts) if len(part) >= _SHORTEST_MASK]


def write_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Appends the step's outputs to the file that `GITHUB_OUTPUT` names.

    Raises:
        UsageError: The file cannot be written.
    """
    _append(path, "".join(_output(name, whole(value)) for name, value in outputs.items()))


def summary_room(path: Path) -> int:
    """Bytes that the step summary at `path` still holds; none or less where it is full."""
    return SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)


def append_summary(path: Path, text: str) -> None:
    """Appends Markdown to the file that `GITHUB_STEP_SUMMARY` names, in which there must be room for it.

    Raises:
        UsageError: The file cannot be written.
    """
    _append(path, whole(text))


def _output(name: str, value: str) -> str:
    delimiter = f"ci_evals_{secrets.token_hex(16)}"
    while delimiter in value:
        delimiter = f"ci_evals_{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _append(path: Path, text: str) -> None:
    try:
        command_files.append(path, text.encode())
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
