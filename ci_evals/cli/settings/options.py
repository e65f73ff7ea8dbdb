"""Options made of settings: the command line, `CI_EVALS_*` and the action's inputs all read from there.

A field is an option of the same name in kebab-case, and an environment variable `CI_EVALS_<NAME>`. Settings
are plain dataclasses, since `--help` must not wait for pydantic.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from enum import Enum
from functools import wraps
from importlib import import_module
from types import NoneType
from typing import Any, TypeAlias, get_args, get_type_hints

import typer
from typer.models import OptionInfo, ParameterInfo

from ci_evals.cli.run_context import RunContext

ENV_PREFIX = "CI_EVALS_"

INPUT_DEFAULT = "input default"
"""Metadata of a field whose input has another default in action.yml than the option."""


Formats: TypeAlias = Callable[[], Iterable[tuple[str, str]]]
"""Returns the name of each format that a command knows, and what it is."""


def takes(
    module: str, name: str, *, formats: Formats | None = None
) -> Callable[[Callable[[Any, RunContext], None]], Callable[..., None]]:
    """Make a function of a settings value into a Typer command with an option for each of its fields.

    The settings are imported and their options made for the command that is called: `--help` lists them all.
    So are the formats, which stand in the help of the command in place of `FORMATS`.
    """

    def decorate(command: Callable[[Any, RunContext], None]) -> Callable[..., None]:
        def complete() -> Callable[..., None]:
            return _with_options(command, getattr(import_module(module), name))

        @wraps(command)
        def listed(ctx: typer.Context) -> None:
            del ctx

        listed.__annotations__ = {"ctx": typer.Context}
        listed.complete = complete  # type: ignore[attr-defined]  # for `HelpCommand`
        listed.formats = formats  # type: ignore[attr-defined]  # likewise
        listed.settings = (module, name)  # type: ignore[attr-defined]  # for those who list all options
        del listed.__wrapped__
        return listed

    return decorate


def _with_options(command: Callable[[Any, RunContext], None], settings: type[Any]) -> Callable[..., None]:
    hints = get_type_hints(settings, include_extras=True)

    @wraps(command)
    def wrapper(ctx: typer.Context, **values: Any) -> None:
        context = ctx.find_object(RunContext) or RunContext()
        given = settings(**(values | {**context.options}))
        context.check_settings(given)
        command(given, context)

    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    for item in dataclasses.fields(settings):
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


def _metavar(name: str, hint: Any) -> str:
    """Return what stands for a value: the words of a closed set, `N` for a number, else the name."""
    annotated = get_args(hint)[0]
    kind = next(kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType)
    if issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    return "N" if kind in {int, float} else name.upper()
