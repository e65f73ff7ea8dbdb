"""Options made of settings: the command line, `CI_EVALS_*` and the action's inputs all read from there.

A field is an option of the same name in kebab-case, and an environment variable `CI_EVALS_<NAME>`. Settings
are plain dataclasses, since `--help` must not wait for pydantic.
"""

import dataclasses
import inspect
from collections.abc import Callable
from enum import Enum
from functools import wraps
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import typer
from typer.models import OptionInfo, ParameterInfo

from ci_evals.cli.run_context import RunContext

ENV_PREFIX = "CI_EVALS_"

INPUT_DEFAULT = "input default"
"""Metadata of a field whose input has another default in action.yml than the option."""

S = TypeVar("S")


def takes(settings: type[S]) -> Callable[[Callable[[S, RunContext], None]], Callable[..., None]]:
    """Make a function of a settings value into a Typer command with an option for each of its fields."""

    def decorate(command: Callable[[S, RunContext], None]) -> Callable[..., None]:
        hints = get_type_hints(settings, include_extras=True)

        @wraps(command)
        def wrapper(ctx: typer.Context, **values: Any) -> None:
            context = ctx.find_object(RunContext) or RunContext()
            command(settings(**(values | {**context.options})), context)

        parameters = [
            inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        ]
        for item in dataclasses.fields(settings):  # type: ignore[arg-type]  # S is always a dataclass
            for info in hints[item.name].__metadata__:
                if isinstance(info, OptionInfo):
                    info.envvar = ENV_PREFIX + item.name.strip("_").upper()
                if isinstance(info, ParameterInfo):
                    info.metavar = info.metavar or _metavar(item.name, hints[item.name])
            default = inspect.Parameter.empty if item.default is dataclasses.MISSING else item.default
            parameters.append(
                inspect.Parameter(
                    item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[item.name]
                )
            )
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        del wrapper.__wrapped__  # else Typer would look behind it
        return wrapper

    return decorate


def _metavar(name: str, hint: Any) -> str:
    """Return what stands for a value: the words of a closed set, `N` for a number, else the name."""
    annotated = get_args(hint)[0]
    kind = next(kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType)
    if issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return "N" if kind in {int, float} else name.upper()
