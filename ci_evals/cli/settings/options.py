"""Commands made of settings: the command line, `CI_EVALS_*` and the action's inputs all read from there.

A field is an option of the same name in kebab-case, and an environment variable `CI_EVALS_<NAME>`. Settings
are plain dataclasses, since `--help` must not wait for pydantic.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from typing import Any, TypeAlias

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.table import lists_in, options_of, typer_parameter
from ci_evals.domain.options import Option

Formats: TypeAlias = Callable[[], Iterable[tuple[str, str]]]
"""Returns the name of each format that a command knows, and what it is."""


@dataclass(frozen=True, kw_only=True)
class CommandFacts:
    """Facts about a command that are needed before its options are imported."""

    after: str = ""
    """The command that it is listed after. Default: after all commands of the core."""
    formats: Formats | None = None
    """Returns what stands in the help of the command in place of `FORMATS`."""
    is_input: bool = False
    """True if the action has an input of its name for its argument, to be set in place of `suites`."""
    has_outputs: bool = False
    """True if it writes the action's outputs, however it ends."""
    is_supervised: bool = True
    """False if nobody relies on its exit code: it shows something, serves, or opens a browser."""


_PLAIN = CommandFacts()


def takes(
    module: str, name: str, facts: CommandFacts = _PLAIN
) -> Callable[[Callable[[Any, RunContext], None]], Callable[..., None]]:
    """Make a function of a settings value into a Typer command with an option for each of its fields.

    The settings are imported and their options made for the command that is called: `--help` lists them all.
    """

    def decorate(command: Callable[[Any, RunContext], None]) -> Callable[..., None]:
        def complete() -> Callable[..., None]:
            return _with_options(command, getattr(import_module(module), name))

        @wraps(command)
        def listed(ctx: typer.Context) -> None:
            del ctx

        listed.__annotations__ = {"ctx": typer.Context}
        listed.complete = complete  # type: ignore[attr-defined]  # for `HelpCommand`
        listed.facts = facts  # type: ignore[attr-defined]  # likewise
        listed.bare = lambda: _bare_values(getattr(import_module(module), name))  # type: ignore[attr-defined]  # likewise
        listed.settings = lambda: getattr(import_module(module), name)  # type: ignore[attr-defined]  # for those who list options
        del listed.__wrapped__
        return listed

    return decorate


def _with_options(command: Callable[[Any, RunContext], None], settings: type[Any]) -> Callable[..., None]:
    @wraps(command)
    def wrapper(ctx: typer.Context, **values: Any) -> None:
        context = ctx.find_object(RunContext) or RunContext()
        listed = {k: v for k, v in lists_in(context.environ, settings).items() if not values[k]}
        given = settings(**(values | listed | {**context.options}))
        context.check_settings(given)
        command(given, context)

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *map(_parameter, options_of(settings))]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapper.bare = partial(_bare_values, settings)  # type: ignore[attr-defined]  # for `HelpCommand`
    del wrapper.__wrapped__  # else Typer would look behind it
    return wrapper


def _bare_values(settings: type[Any]) -> dict[str, str]:
    """Return what options are that stand without a value, by their names on the command line."""
    return {option.label: option.bare_value for option in options_of(settings) if option.bare_value}


def _parameter(option: Option) -> inspect.Parameter:
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.required else option.default,
        annotation=typer_parameter(option),
    )
