"""The process of one function: one line of JSON comes in, one goes out. Imports little, to start fast."""

import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NoReturn


class Probes(dict[str, Any]):
    """Values of probes by name. To look for one that failed is an error: it is not absent but unknown."""

    def __init__(self, values: Mapping[str, Any], errors: Mapping[str, str]) -> None:
        super().__init__(values)
        self._errors = errors

    def __missing__(self, name: str) -> NoReturn:
        self._check(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        self._check(name)
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default if there is no such probe."""
        self._check(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self._check(*self._errors)
        return super().__iter__()

    def __len__(self) -> int:
        self._check(*self._errors)
        return super().__len__()

    def keys(self) -> Any:
        """Return the names, if all probes are known."""
        self._check(*self._errors)
        return super().keys()

    def values(self) -> Any:
        """Return the values, if all are known."""
        self._check(*self._errors)
        return super().values()

    def items(self) -> Any:
        """Return names and values, if all are known."""
        self._check(*self._errors)
        return super().items()

    def _check(self, *names: object) -> None:
        for name in names:
            if name in self._errors:
                raise LookupError(f"the probe {name} failed: {self._errors[str(name)]}")


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
    arguments = dict(arguments)
    errors = arguments.pop("probe_errors", {})
    if errors:
        arguments["probes"] = Probes(arguments["probes"], errors)
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
