"""Commands that are expected to end in one way: with this exit code, or refused (exit code 2)."""

from contextlib import redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from typing import Any

import pytest
import typer
from commands import CLEAN_ENV, ci_evals

from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import SuiteError, UsageError


def exits(code: int | None, *args: str, **options: Any) -> CompletedProcess[str]:
    """Run a command that exits with this code, or with any for None."""
    ran = ci_evals(*args, **options)
    assert code in (None, ran.returncode), f"exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran


def refusal(*args: str, env: dict[str, str] | None = None, silent: bool = True) -> str:
    """Return the message of a command that is refused in the current folder, run in this process.

    Each of these errors ends a command with exit code 2 and its message alone: see `test_exit_codes`.
    """
    context = RunContext(CLEAN_ENV | (env or {}))
    refusals = (UsageError, SuiteError, typer.TyperException)
    with pytest.raises(refusals) as refused, redirect_stdout(StringIO()) as printed:
        invoke(args, context)
    assert not (silent and printed.getvalue()), printed.getvalue()
    error = refused.value
    return context.spell(error.format_message() if isinstance(error, typer.TyperException) else str(error))
