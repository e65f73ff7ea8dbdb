"""The options of a command: one table, of which all that is said of them is made.

A field of a settings dataclass is an option; its annotation holds an `OptionSpec`. From the table follow the
command line, its help and variables, the action's inputs, the reference, and the trust in what options name.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ci_evals.domain.options import Option, OptionSpec

ENV_PREFIX = "CI_EVALS_"


def options_of(settings: type[Any]) -> tuple[Option, ...]:
    """Return the options of a command in the order in which they are declared."""
    return _made_options(settings)  # type: ignore[arg-type]  # a class is hashable


@cache
def _made_options(settings: type[Any]) -> tuple[Option, ...]:
    hints = get_type_hints(settings, include_extras=True)
    return tuple(_option(item, hints[item.name]) for item in dataclasses.fields(settings))


def typer_parameter(option: Option) -> Any:
    """Return the annotation from which Typer makes the parameter of an option."""
    kind: Any = option.kind
    if option.many:
        kind = list[kind]
    if option.default is None and not option.required:
        kind = kind | None
    shared: dict[str, Any] = {
        "help": option.help,
        "metavar": option.metavar or _metavar(option),
        "min": option.minimum,
        "max": option.maximum,
        "rich_help_panel": option.group,
    }
    if option.argument:
        return Annotated[kind, typer.Argument(**shared)]
    # Typer would split the variable of a list at blanks: `lists_in` reads it.
    envvar = None if option.many else f"{ENV_PREFIX}{option.variable}"
    # Without a name Typer would add `--no-…` to a switch.
    return Annotated[kind, typer.Option(option.label, **shared, envvar=envvar)]


def lists_in(environ: Mapping[str, str], settings: type[Any]) -> dict[str, list[str]]:
    """Return the options that are lists and have a variable, which holds a value per line."""
    lists = {}
    for option in options_of(settings):
        if option.many and option.variable:
            text = environ.get(f"{ENV_PREFIX}{option.variable}", "")
            if values := [line.strip() for line in text.splitlines() if line.strip()]:
                lists[option.name] = values
    return lists


def _option(item: dataclasses.Field[Any], hint: Any) -> Option:
    annotated, *metadata = get_args(hint)
    spec = next(one for one in metadata if isinstance(one, OptionSpec))
    if isinstance(spec, Option):
        return spec  # of a rule or an extension
    required = item.default is dataclasses.MISSING
    return Option(
        **vars(spec),
        name=item.name,
        kind=_set_of(spec.words()) if spec.words else _kind(annotated),
        default=None if required else item.default,
        required=required,
        many=list in {get_origin(one) for one in (annotated, *get_args(annotated))},
        secret=not item.repr,
    )


def _set_of(words: Iterable[str]) -> type[Any]:
    """Return the type of a value that is one of these words."""
    kind: type[Any] = StrEnum("Word", [(word, word) for word in words])  # type: ignore[misc]  # known now
    return kind


def _kind(annotated: Any) -> type[Any]:
    """Return the type of a value: `str` for `str | None`, and for a list of texts."""
    kinds = [kind for kind in get_args(annotated) if kind is not NoneType]
    if kinds:
        return _kind(kinds[0])
    kind: type[Any] = annotated
    return kind


def _metavar(option: Option) -> str:
    """Return what stands for a value: the words of a closed set, `N` for a number, else the name."""
    if issubclass(option.kind, Enum):
        return "|".join(str(member.value) for member in option.kind)
    return "N" if option.kind in {int, float} else option.name.upper()
