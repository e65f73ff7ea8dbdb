"""The caller of functions that decide criteria."""

from collections.abc import Mapping

from pydantic import JsonValue

from ci_evals.ports import CallFunction
from ci_evals.support.redaction import Redactor

CHECK_SECONDS = 30.0
"""Time limit of a function that decides a criterion."""


def function_caller(environ: Mapping[str, str], redactor: Redactor) -> CallFunction:
    """Return what calls functions in a process each, with `environ` without what is meant for us alone."""

    async def call(function: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        from ci_evals.adapters.processes import functions  # noqa: PLC0415  # few suites have such checks

        return await functions.call(function, arguments, environ, redactor, timeout=CHECK_SECONDS)

    return call
