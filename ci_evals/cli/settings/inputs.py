"""The action's inputs. GitHub hands them over as `INPUT_*` variables; the command line takes them from here.

Only `INPUT_*` is read, since nothing but the step's `with:` sets it. What is not declared is refused: GitHub
itself merely warns of a misspelt input, and a gate that ignores `min-scor: 95` would look as if it held.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ci_evals import extension_registry
from ci_evals.cli.settings.result_commands import (
    CommentSettings,
)
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.cli.settings.successors import refuse_input
from ci_evals.cli.settings.table import options_of
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Names, Option

INPUT_PREFIX = "INPUT_"
SUITES = "suites"
RUNNERS_OWN = frozenset({"args", "entrypoint"})
"""Inputs that GitHub's runner accepts for every container action and handles itself."""

TOKEN = "github-token"  # noqa: S105  # its name
BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
"""The booleans of GitHub's own toolkit; YAML's `yes` and `on` are not among them."""


@dataclass(frozen=True)
class ActionInputs:
    """The command that the action's inputs ask for: `run`, or one of an extension."""

    arguments: tuple[str, ...]
    """Suites, or the values of the input that is named like the command."""
    options: Mapping[str, Any] = field(repr=False)
    """Values by the field of the settings. Keys among them must not be seen on a command line."""
    command: str = "run"


def input_commands() -> dict[str, dict[str, Option]]:
    """The commands of extensions that an input calls in place of `run`, and the option of each input."""
    added = extension_registry.commands().items()
    return {name: _inputs_of(command.settings(), name) for name, command in added if command.facts.is_input}


def options_by_input() -> dict[str, Option]:
    """The option behind each input of the action: of `run`, then those of other commands alone."""
    inputs = _inputs_of(RunSettings)
    for options in input_commands().values():
        inputs |= {name: option for name, option in options.items() if name not in inputs}
    return inputs


def declared() -> dict[str, str]:
    """The action's inputs and their defaults, as text; empty where there is none."""
    return {name: _default(option) for name, option in options_by_input().items()}


def not_of_run(command: str) -> frozenset[str]:
    """The inputs of a command that `run` has not."""
    return frozenset(input_commands()[command].keys() - _inputs_of(RunSettings).keys())


def _inputs_of(settings: type[Any], argument: str = "") -> dict[str, Option]:
    """The inputs that are options of a command, and that for its argument by the name given."""
    inputs = {}
    for option in options_of(settings):
        if not option.in_action:
            continue
        name = argument if argument and option.argument else option.kebab
        inputs[name] = option
    return inputs


def read(environ: Mapping[str, str]) -> ActionInputs:
    """Read the `INPUT_*` variables of `environ`. An empty input is one that is not set.

    Raises:
        UsageError: with every problem: an input that is not declared, a value that is not allowed, a path for
            reports that is lost with the container, no suites.
    """
    inputs = _given(environ)
    defaults = declared()
    problems = [
        _unknown(name, defaults) for name in inputs if name not in defaults and name not in RUNNERS_OWN
    ]
    by_command = input_commands()
    arguments_of = {name: tuple(_lines(inputs.pop(name, ""))) for name in (*by_command, SUITES)}
    asked = {name: lines for name, lines in arguments_of.items() if lines}
    if len(asked) > 1:
        first, second = [*asked][:2]
        problems.append(f"inputs {first!r} and {second!r} are both set. Use a step for each.")
    if not asked:
        problems.append(
            "input 'suites' is empty. Name suite files, folders or bundled suites (demo:hr), one per line."
        )
    what, arguments = next(iter(asked.items()), (SUITES, ()))
    own = by_command.get(what) or _inputs_of(RunSettings)
    options = {}
    for name, text in inputs.items():
        if name not in defaults or not text:
            continue
        if name not in own:
            if text not in {defaults[name], defaults[name].upper(), defaults[name].capitalize()}:
                problems.append(f"input {name!r} has no effect {_without(name, what, by_command)}.")
            continue
        option = own[name]
        try:
            if option.names is Names.OUTPUT:
                _check_within_workspace(text, environ)
            options[option.name] = _parse(option, text)
        except ValueError as error:
            problems.append(refuse_input(name, text) or f"input {name!r} is {text!r}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return ActionInputs(arguments, options, "run" if what == SUITES else what)


def _without(name: str, what: str, by_command: Mapping[str, Mapping[str, Option]]) -> str:
    """Return which input takes the effect from another, or would give it one."""
    if what != SUITES:
        return f"with {what!r}"
    return f"without {next(command for command, options in by_command.items() if name in options)!r}"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def check_unused(environ: Mapping[str, str]) -> None:
    """Makes sure that no input is lost where the step has `args`, which are then all that counts.

    Raises:
        UsageError: with every input that says something. GitHub hands over defaults and empty ones by itself,
            and the token is taken from there.
    """
    inputs, defaults = options_by_input(), declared()
    elsewhere = _inputs_elsewhere()
    problems = []
    for name, value in _given(environ).items():
        is_default = value == defaults.get(name) or (
            value in BOOLEANS and value.lower() == defaults.get(name)
        )
        if not value or is_default or name in RUNNERS_OWN or name == TOKEN:
            continue
        if name not in defaults and name not in elsewhere:
            problems.append(_unknown(name, defaults))
            continue
        if name in {SUITES, *input_commands()}:
            instead = "name them there"
        elif name in inputs and inputs[name].kind is bool:
            instead = f"write --{name} there"
        else:
            instead = f"write --{name}=... there"
        problems.append(f"input {name!r} has no effect with 'args': {instead}.")
    if problems:
        raise UsageError("\n".join(problems))


def _inputs_elsewhere() -> set[str]:
    """Return the options of other commands, as inputs."""
    added = [command.settings() for command in extension_registry.commands().values()]
    names: set[str] = set()
    for settings in (CommentSettings, *added):
        names |= _inputs_of(settings).keys()
    return names


def _parse(option: Option, text: str) -> Any:
    """Return the value of an input.

    Raises:
        ValueError: it is not allowed. The command line would refuse the same, in other words.
    """
    if option.many:
        return _lines(text)
    if option.kind is bool:
        if text not in BOOLEANS:
            raise ValueError("it must be true or false.")
        return text.lower() == "true"
    try:
        value: Any = TypeAdapter(option.kind).validate_python(text)
    except ValidationError:
        raise ValueError(f"it must be {_allowed(option)}.") from None
    # Negated, since NaN is below no limit.
    below = option.minimum is not None and not value >= option.minimum
    above = option.maximum is not None and not value <= option.maximum
    if below or above:
        raise ValueError(f"it must be {_allowed(option)}.")
    return value


def _allowed(option: Option) -> str:
    if issubclass(option.kind, Enum):
        return f"one of {', '.join(str(word) for word in option.kind)}"
    number = "a whole number" if option.kind is int else "a number"
    if option.maximum is None:
        return f"{number}, {option.minimum} or more"
    return f"{number} from {option.minimum} to {option.maximum}"


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(INPUT_PREFIX).lower(): value.strip()
        for name, value in environ.items()
        if name.startswith(INPUT_PREFIX)
    }


def _check_within_workspace(path: str, environ: Mapping[str, str]) -> None:
    workspace = os.path.realpath(environ.get("GITHUB_WORKSPACE") or Path.cwd())
    if not Path(os.path.realpath(path)).is_relative_to(workspace):
        raise ValueError(
            "it is outside the workspace and would be lost with the container. Use a path in the workspace."
        )


def _default(option: Option) -> str:
    if option.input_default is not None:
        return option.input_default
    if option.default is None:
        return ""
    return str(option.default).lower() if option.kind is bool else str(option.default)


def _unknown(name: str, defaults: Iterable[str]) -> str:
    if sentence := refuse_input(name):
        return sentence
    nearest = difflib.get_close_matches(name, defaults, n=1, cutoff=0)
    return f"unknown input {name!r}: did you mean {nearest[0]!r}? docs/reference/options.md lists all inputs."
