"""The process of one function: one line of JSON comes in, one goes out. Imports little, to start fast."""

import inspect
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def main() -> None:
    """Answer the one request on standard input."""
    request = json.loads(sys.stdin.readline())
    # What the function prints must not be taken for the answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[:] = [request["folder"], *request["path"]]
    try:
        text = _as_json(_called(request["function"], request["arguments"]))
    except BaseException as error:  # noqa: BLE001  # foreign code may raise anything, SystemExit(0) too
        text = json.dumps({"error": f"raised {type(error).__name__}: {error}"})
    answers.write(text + "\n")
    answers.flush()
    os._exit(0)


def _called(name: str, arguments: Mapping[str, Any]) -> Any:
    module, _, attribute = name.partition(":")
    function: Any = import_module(module)
    for part in attribute.split("."):
        function = getattr(function, part)
    parameters = inspect.signature(function).parameters.values()
    if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        taken = {parameter.name for parameter in parameters}
        arguments = {key: value for key, value in arguments.items() if key in taken}
    result = function(**arguments)
    if inspect.isawaitable(result):
        import asyncio  # noqa: PLC0415  # most functions do without

        async def awaited() -> Any:
            return await result

        return asyncio.run(awaited())
    return result


def _as_json(value: Any) -> str:
    try:
        return json.dumps({"value": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"error": f"returned what JSON cannot hold: {error}"})


if __name__ == "__main__":
    main()
