"""Files of environment variables: `.env` in the working folder, and `--env-file`. Variables that are set win.

In CI `.env` is not read by itself: there the workflow sets variables, and a checkout may be anybody's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, NamedTuple

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Names, OptionSpec

OPTION = "--env-file"
_DEFAULT = Path(".env")


class CommandLine(NamedTuple):
    """A command line without what holds for all commands."""

    arguments: list[str]
    env_files: list[str]
    """The files that `--env-file` names."""


@dataclass(frozen=True)
class EnvFile:
    """The option of all commands, as those of one are declared: see `Names`."""

    env_file: Annotated[Path, OptionSpec("File with variables.", names=Names.INPUT)]


def split(arguments: Sequence[str]) -> CommandLine:
    """Take `--env-file` out of a command line, wherever it stands before `--`."""
    others: list[str] = []
    named: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            others += [argument, *rest]
        elif argument == OPTION:
            named.append(next(rest, ""))
        elif argument.startswith(f"{OPTION}="):
            named.append(argument.removeprefix(f"{OPTION}="))
        else:
            others.append(argument)
    return CommandLine(others, named)


def read(named: Sequence[str], context: RunContext) -> None:
    """Set the variables of all files that the environment lacks; of two files the first wins.

    Raises:
        UsageError: a named file cannot be read, has a line that sets nothing, or may be somebody else's.
    """
    for name in named:
        if not name:
            raise UsageError(f"{OPTION} names no file. Write {OPTION}=FILE.")
        path = Path(name)
        if context.environ.get("GITHUB_EVENT_NAME"):
            from ci_evals.cli.github.trust import check_workspace  # noqa: PLC0415  # for few commands

            check_workspace(EnvFile(path), context)
        _set(path, context)
    # Here any value counts, "false" too: a file that nobody named must never be read in CI.
    in_ci = any(context.environ.get(name) for name in ("CI", "GITHUB_ACTIONS"))
    if not named and not in_ci and _DEFAULT.is_file():
        try:
            _set(_DEFAULT, context)
        except UsageError as error:  # nobody asked for it
            context.console.say(f"warning: {error}")


def _set(path: Path, context: RunContext) -> None:
    added = []
    for name, value in _variables(path).items():
        if name not in context.environ:
            context.environ[name] = value
            added.append(name)
    if added:
        context.console.say(f"{path} sets {', '.join(added)}")


def _variables(path: Path) -> dict[str, str]:
    from dotenv import dotenv_values  # noqa: PLC0415  # for few commands: `--help` waits for nothing
    from dotenv.parser import parse_stream  # noqa: PLC0415  # likewise

    from ci_evals.adapters import input_files  # noqa: PLC0415  # likewise

    try:
        text = input_files.read(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or error) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{OPTION}: {str(path)!r} cannot be read: {why}") from None
    for binding in parse_stream(StringIO(text)):
        if binding.error or "\0" in binding.original.string:
            line = binding.original.line
            raise UsageError(f"{path}:{line}: this line sets no variable. Write NAME=VALUE.")
    values = dotenv_values(stream=StringIO(text))
    return {name: value for name, value in values.items() if value is not None}
