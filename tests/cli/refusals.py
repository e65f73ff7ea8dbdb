"""Commands that are refused, in this process: in one of its own, each exits with 2 and prints the message."""

import pytest
import typer
from commands import CLEAN_ENV

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import SuiteError, UsageError


def refusal(*args: str, env: dict[str, str] | None = None) -> str:
    """Return the message of a command that is refused in the current folder."""
    with pytest.raises((UsageError, SuiteError, typer.TyperException)) as refused:
        invoke(args, RunContext(CLEAN_ENV | (env or {})))
    error = refused.value
    return error.format_message() if isinstance(error, typer.TyperException) else str(error)
