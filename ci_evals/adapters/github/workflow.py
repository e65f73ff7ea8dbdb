"""The runner's interface to a workflow: commands in the log, outputs, the step summary.

Paths come in as arguments. Escaping follows the runner's own toolkit, which splits a command at `::` and its
properties at `:` and `,`.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from ci_evals.adapters.files import os_errors
from ci_evals.adapters.github import command_files
from ci_evals.domain.errors import UsageError
from ci_evals.support.text import whole

MAX_ANNOTATIONS = 10
"""Annotations of one level that GitHub shows of a step."""

MESSAGE_LIMIT = 4096
"""Characters of a command's message: the runner cuts there."""

SUMMARY_BYTES = 900 * 1024
"""The runner drops the whole summary of a step above 1 MiB."""

_SHORTEST_MASK = 6


def check_key(key: str) -> str:
    """Return the key that distinguishes comments and artifacts within one repository, if it is valid."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", key):
        raise UsageError(
            f"`comment_key=` is {key[:80]!r}: "
            "only the letters a to z, digits, '.', '_' and '-' are allowed, 64 of them at most"
        )
    return key


def command(name: str, message: str = "", **properties: str | int | None) -> str:
    """Return the line of a workflow command such as `error`, without the properties that are None."""
    pairs = ((key, escape_data(str(value))) for key, value in properties.items() if value is not None)
    joined = ",".join(f"{key}={value.replace(':', '%3A').replace(',', '%2C')}" for key, value in pairs)
    heading = f"{name} {joined}" if joined else name
    return f"::{heading}::{escape_data(message[:MESSAGE_LIMIT])}"


def escape_data(text: str) -> str:
    """Escape text for the part of a command after the second `::`."""
    return whole(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def mask_lines(values: Iterable[str]) -> list[str]:
    """Return the commands that make the runner hide these values in its log, in a fixed order.

    The log is searched line by line, so each line of a value is masked as well as the whole of it, except for
    lines such as a lone brace, which would take every brace out of the log.
    """
    parts = {part.strip() for value in values for part in (value, *value.splitlines())}
    return [f"::add-mask::{escape_data(part)}" for part in sorted(parts) if len(part) >= _SHORTEST_MASK]


def write_outputs(path: Path, outputs: Mapping[str, str]) -> None:
    """Append the step's outputs to the file that `GITHUB_OUTPUT` names."""
    _append(path, "".join(_output(name, whole(value)) for name, value in outputs.items()))


def summary_room(path: Path) -> int:
    """Return the bytes that the step summary can still hold; 0 or less if it is full."""
    return SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)


def append_summary(path: Path, text: str) -> None:
    """Append Markdown to the file that `GITHUB_STEP_SUMMARY` names, which must have room for it."""
    _append(path, whole(text))


def _output(name: str, value: str) -> str:
    delimiter = f"ci_evals_{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _append(path: Path, text: str) -> None:
    with os_errors(f"cannot write {str(path)!r}"):
        command_files.append(path, text.encode())
