"""The action's inputs. GitHub hands them over as `INPUT_*` variables; the command line takes them from here.

Only `INPUT_*` is read, since nothing but the step's `with:` sets it. What is not declared is refused: GitHub
itself merely warns of a misspelt input, and a gate that ignores `min-scor: 95` would look as if it held.
"""

import dataclasses
import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typer.models import OptionInfo

from ci_evals.cli.settings.options import INPUT_DEFAULT
from ci_evals.cli.settings.result_commands import (
    CommentSettings,
    CompareSettings,
    GateFilesSettings,
    MergeSettings,
    RejudgeSettings,
    ReportSettings,
)
from ci_evals.cli.settings.successors import refuse_input
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.errors import UsageError

INPUT_PREFIX = "INPUT_"
SUITES = "suites"
GATE = "gate"
"""The input for the arguments of `gate`, instead of suites."""
_FILES = "files"
"""The field of `GateFilesSettings` that the input `gate` is."""
RUNNERS_OWN = frozenset({"args", "entrypoint"})
"""Inputs that GitHub's runner accepts for every container action and handles itself."""

TOKEN = "github-token"  # noqa: S105  # its name
WRITTEN_TO = frozenset({"output-dir", "junit"})
"""Inputs that name a path for reports."""

_OF_OTHER_COMMANDS = (MergeSettings, RejudgeSettings, ReportSettings, CompareSettings, CommentSettings)

BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
"""The booleans of GitHub's own toolkit; YAML's `yes` and `on` are not among them."""


@dataclass(frozen=True)
class ActionInputs:
    """The command that the action's inputs ask for: `run`, or `gate` with other tools' results."""

    suites: tuple[str, ...]
    """What it is given: suites, or with `gate` files."""
    options: Mapping[str, Any] = dataclasses.field(repr=False)
    """Values by the field of the settings. Keys among them must not be seen on a command line."""
    command: Literal["run", "gate"] = "run"


def declared() -> dict[str, str]:
    """The action's inputs and their defaults, as text; empty where there is none."""
    return {
        GATE if item.name == _FILES else item.name.replace("_", "-"): item.metadata.get(INPUT_DEFAULT)
        or _as_text(item.default)
        for settings in (GateFilesSettings, RunSettings)
        for item in dataclasses.fields(settings)
    }


def of_gate_alone() -> frozenset[str]:
    """The inputs that only `gate` takes."""
    return frozenset(_names(GateFilesSettings) - _names(RunSettings))


def _names(settings: type[Any]) -> set[str]:
    names = {item.name.replace("_", "-") for item in dataclasses.fields(settings)}
    return {GATE if name == _FILES else name for name in names}


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
    files, suites = _lines(inputs.pop(GATE, "")), _lines(inputs.pop(SUITES, ""))
    if files and suites:
        problems.append("inputs 'gate' and 'suites' are both set. Use a step for each.")
    if not suites and not files:
        problems.append(
            "input 'suites' is empty. Name suite files, folders or bundled suites (demo:hr), one per line."
        )
    own = _names(GateFilesSettings if files else RunSettings)
    types = _types()
    options = {}
    for name, text in inputs.items():
        if name not in defaults or not text:
            continue
        if name not in own:
            if text not in {defaults[name], defaults[name].upper(), defaults[name].capitalize()}:
                without = "with 'gate'" if files else "without 'gate'"
                problems.append(f"input {name!r} has no effect {without}.")
            continue
        try:
            if name in WRITTEN_TO:
                _check_within_workspace(text, environ)
            options[name.replace("-", "_")] = types[name].parse(text)
        except ValueError as error:
            problems.append(refuse_input(name, text) or f"input {name!r} is {text!r}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return ActionInputs(tuple(files or suites), options, "gate" if files else "run")


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def check_unused(environ: Mapping[str, str]) -> None:
    """Makes sure that no input is lost where the step has `args`, which are then all that counts.

    Raises:
        UsageError: with every input that says something. GitHub hands over defaults and empty ones by itself,
            and the token is taken from there.
    """
    defaults, switches = declared(), _switches()
    elsewhere = set[str]().union(*map(_names, _OF_OTHER_COMMANDS))
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
        if name in {SUITES, GATE}:
            instead = "name them there"
        else:
            instead = f"write --{name}{'' if name in switches else '=...'} there"
        problems.append(f"input {name!r} has no effect with 'args': {instead}.")
    if problems:
        raise UsageError("\n".join(problems))


@dataclass(frozen=True)
class _InputType:
    """The type of an input, and the limits of a number."""

    kind: type
    minimum: float | None
    maximum: float | None

    def parse(self, text: str) -> Any:
        """Return the value of an input.

        Raises:
            ValueError: it is not allowed. The command line would refuse the same, in other words.
        """
        if self.kind is bool:
            if text not in BOOLEANS:
                raise ValueError("it must be true or false.")
            return text.lower() == "true"
        try:
            value: Any = TypeAdapter(self.kind).validate_python(text)
        except ValidationError:
            raise ValueError(f"it must be {self._allowed}.") from None
        # Negated, since NaN is below no limit.
        below = self.minimum is not None and not value >= self.minimum
        above = self.maximum is not None and not value <= self.maximum
        if below or above:
            raise ValueError(f"it must be {self._allowed}.")
        return value

    @property
    def _allowed(self) -> str:
        if issubclass(self.kind, Enum):
            return f"one of {', '.join(str(word) for word in self.kind)}"
        number = "a whole number" if self.kind is int else "a number"
        return (
            f"{number}, {self.minimum} or more"
            if self.maximum is None
            else f"{number} from {self.minimum} to {self.maximum}"
        )


def _types() -> dict[str, _InputType]:
    """The type of each input except `suites` and `gate`."""
    types = {}
    hints = [get_type_hints(kind, include_extras=True) for kind in (GateFilesSettings, RunSettings)]
    for name, hint in (pair for of_each in hints for pair in of_each.items()):
        annotated, *metadata = get_args(hint)
        for info in (one for one in metadata if isinstance(one, OptionInfo)):
            kinds = [kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType]
            types[name.replace("_", "-")] = _InputType(kinds[0], info.min, info.max)
    return types


def _switches() -> set[str]:
    settings = (RunSettings, GateFilesSettings)
    fields = [item for kind in settings for item in dataclasses.fields(kind)]
    return {item.name.replace("_", "-") for item in fields if item.default is False}


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


def _as_text(default: object) -> str:
    if default is None or default is dataclasses.MISSING:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _unknown(name: str, defaults: Iterable[str]) -> str:
    if sentence := refuse_input(name):
        return sentence
    nearest = difflib.get_close_matches(name, defaults, n=1, cutoff=0)
    return f"unknown input {name!r}: did you mean {nearest[0]!r}? docs/reference/options.md lists all inputs."
