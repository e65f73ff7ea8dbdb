"""Commands that are expected to end in one way: with this exit code, or refused (exit code 2)."""

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


def refusal(*args: str, env: dict[str, str] | None = None) -> str:
    """Return the message of a command that is refused in the current folder, run in this process."""
    context = RunContext(CLEAN_ENV | (env or {}))
    with pytest.raises((UsageError, SuiteError, typer.TyperException)) as refused:
        invoke(args, context)
    error = refused.value
    return context.spell(error.format_message() if isinstance(error, typer.TyperException) else str(error))
