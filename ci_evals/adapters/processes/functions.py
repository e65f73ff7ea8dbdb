"""Python functions of a suite's author, each call in a process of its own: it cannot reach the run."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_step
from ci_evals.ports import FunctionError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_MAX_BYTES = 10_000_000
_PROCESS = "ci_evals.adapters.processes.function_process"


async def call(
    function: str,
    arguments: Mapping[str, JsonValue],
    environ: Mapping[str, str],
    redactor: Redactor,
    *,
    timeout: float,  # noqa: ASYNC109  # part of the message
) -> JsonValue:
    """Call `module:attribute` with those of the arguments that it has parameters for, and return its result.

    Modules are looked for in the current folder first.

    Raises:
        FunctionError: it failed, or did not end in time.
    """
    try:
        process = await ChildProcess.start(
            [sys.executable, "-P", "-m", _PROCESS], environment_for_step(environ), _MAX_BYTES
        )
    except OSError as error:
        raise FunctionError(f"could not be called: {error.strerror}") from error
    request = {"function": function, "arguments": arguments, "folder": str(Path.cwd()), "path": sys.path}
    try:
        process.write(json.dumps(request).encode() + b"\n")
        process.end_input()
        async with asyncio.timeout(timeout):
            line = await process.line()
    except TimeoutError:
        raise FunctionError(f"did not end within {timeout:g} s") from None
    finally:
        process.kill()
        await process.end()
    if line is None:
        why = "returned more than 10 MB" if process.too_long else "ended its process"
        if words := process.last_words(redactor):
            why += f": {words}"
        raise FunctionError(why)
    try:
        answer: Any = payload.parse(line)
    except ValueError as error:
        raise FunctionError(f"returned {error}") from None
    if "error" in answer:
        raise FunctionError(payload.shorten(redactor.text(str(answer["error"]))))
    value: JsonValue = answer["value"]
    return value
