"""The process of one function: one line of JSON comes in, one goes out. Imports little, to start fast."""

import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, NoReturn


class Probes(dict[str, Any]):
    """Values of probes by name. To look for one that failed is an error: it is not absent but unknown.

    A function may catch that error, so `unknown` holds the first one. In place of each unknown value is an
    `_Unknown`: code that reads the dictionary past its methods finds that.
    """

    def __init__(self, values: Mapping[str, Any], errors: Mapping[str, str]) -> None:
        super().__init__(values)
        self.unknown: str | None = None
        self._errors = errors
        for name in errors:
            super().__setitem__(name, _Unknown(self, name))

    def check(self, *names: object) -> None:
        """Raise `LookupError` if one of these probes failed."""
        for name in names:
            if isinstance(name, str) and name in self._errors:
                error = f"the probe {name} failed: {self._errors[name]}"
                self.unknown = self.unknown or error
                raise LookupError(error)


class _Unknown:
    """The value of a probe that failed. Everything that is done with it is an error."""

    def __init__(self, probes: Probes, name: str) -> None:
        object.__setattr__(self, "check", lambda: probes.check(name))

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "check")()


_OF_ONE = ("__getitem__", "__contains__", "get", "pop", "setdefault", "__setitem__", "__delitem__")
"""Methods of dictionaries whose first argument is a key; all others are about the whole."""
_OF_ALL = (
    "__iter__", "__len__", "__reversed__", "__eq__", "__ne__", "__repr__", "__or__", "__ror__", "__ior__",
    "__reduce_ex__", "keys", "values", "items", "copy", "popitem", "update", "clear",
)  # fmt: skip
_OF_VALUES = (
    "__bool__", "__len__", "__iter__", "__contains__", "__getitem__", "__eq__", "__ne__", "__lt__", "__le__",
    "__gt__", "__ge__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__int__",
    "__float__", "__index__", "__str__", "__repr__", "__format__", "__hash__", "__call__", "__reduce_ex__",
)  # fmt: skip


def _checked(name: str, *, whole: bool) -> Callable[..., Any]:
    """Return the method of a dictionary of that name, after a check of the names that it is about."""
    method = getattr(dict, name)

    @wraps(method)
    def checked(self: Probes, *arguments: Any, **named: Any) -> Any:
        names = self._errors if whole else arguments[:1]
        self.check(*names)
        return method(self, *arguments, **named)

    return checked


def _refused(value: _Unknown, *_: Any) -> NoReturn:
    object.__getattribute__(value, "check")()
    raise AssertionError("its probe failed")


for _name in _OF_ONE:
    setattr(Probes, _name, _checked(_name, whole=False))
for _name in _OF_ALL:
    setattr(Probes, _name, _checked(_name, whole=True))
for _name in _OF_VALUES:
    setattr(_Unknown, _name, _refused)


def main() -> None:
    """Answer the one request on standard input."""
    request = json.loads(sys.stdin.readline())
    # What the function prints must not be taken for the answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[:] = [request["folder"], *request["path"]]
    try:
        arguments, probes = _with_probes(request["arguments"])
        text = _as_json(_called(request["function"], arguments))
        if probes is not None and probes.unknown:
            text = json.dumps({"error": f"caught an error and went on: {probes.unknown}"})
    except BaseException as error:  # noqa: BLE001  # foreign code may raise anything, SystemExit(0) too
        text = json.dumps({"error": f"raised {type(error).__name__}: {error}"})
    answers.write(text + "\n")
    answers.flush()
    os._exit(0)


def _with_probes(given: Mapping[str, Any]) -> tuple[dict[str, Any], Probes | None]:
    """Return the arguments, with probes that know which of them failed, if any did."""
    arguments = dict(given)
    errors = arguments.pop("probe_errors", {})
    if not errors:
        return arguments, None
    probes = arguments["probes"] = Probes(arguments["probes"], errors)
    return arguments, probes


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
