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
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from typer.models import OptionInfo

from ci_evals.cli.settings.options import ENV_PREFIX, INPUT_DEFAULT
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.errors import UsageError

INPUT_PREFIX = "INPUT_"
SUITES = "suites"
RUNNERS_OWN = frozenset({"args", "entrypoint"})
"""Inputs that GitHub's runner accepts for every container action and handles itself."""

TOKEN = "github-token"  # noqa: S105  # its name
WRITTEN_TO = frozenset({"output-dir", "junit"})
"""Inputs that name a place for reports."""

BOOLEANS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
"""The booleans of GitHub's own toolkit; YAML's `yes` and `on` are not among them."""


@dataclass(frozen=True)
class Invocation:
    """What the action's inputs ask of the command line."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str] = dataclasses.field(repr=False)
    """Environment variables, `CI_EVALS_<OPTION>`: keys among them must not be seen on a command line."""


def declared() -> dict[str, str]:
    """The action's inputs and their defaults, as text; empty where there is none."""
    return {
        item.name.replace("_", "-"): item.metadata.get(INPUT_DEFAULT) or _as_text(item.default)
        for item in dataclasses.fields(RunSettings)
    }


def read(environ: Mapping[str, str]) -> Invocation:
    """What the `INPUT_*` variables of `environ` ask for. An empty input is one that is not set.

    Raises `UsageError` with every problem: an input that is not declared, a value that is not allowed, a
    place for reports that is lost with the container, no suites.
    """
    inputs = _given(environ)
    known = declared()
    problems = [_unknown(name, known) for name in inputs if name not in known and name not in RUNNERS_OWN]
    suites = [line.strip() for line in inputs.pop(SUITES, "").splitlines() if line.strip()]
    if not suites:
        problems.append(
            "input 'suites' is empty: name suite files, folders or bundled suites (demo:hr), one a line."
        )
    switches, options = _switches(), _options()
    variables = {}
    for name, value in inputs.items():
        if name not in known or not value:
            continue
        if name in switches:
            problem = None if value in BOOLEANS else "it must be true or false."
        elif name in WRITTEN_TO:
            problem = _outside(value, environ)
        else:
            problem = options[name].problem(value)
        if problem:
            problems.append(f"input {name!r} is {value!r}: {problem}")
        text = value.lower() if name in switches else value
        variables[ENV_PREFIX + name.replace("-", "_").upper()] = text
    if problems:
        raise UsageError("\n".join(problems))
    return Invocation(("run", "--", *suites), variables)


def check_unused(environ: Mapping[str, str]) -> None:
    """Makes sure that no input is lost where the step has `args`, which are then all that counts.

    Raises:
        UsageError: with every input that says something. GitHub hands over defaults and empty ones by itself,
            and the token is taken from there.
    """
    known, switches = declared(), _switches()
    problems = []
    for name, value in _given(environ).items():
        is_default = value == known.get(name) or (value in BOOLEANS and value.lower() == known.get(name))
        if not value or is_default or name in RUNNERS_OWN or name == TOKEN:
            continue
        if name == SUITES:
            instead = "name them there"
        else:
            instead = f"write --{name}{'' if name in switches else '=...'} there"
        problems.append(f"input {name!r} has no effect beside 'args'; {instead}.")
    if problems:
        raise UsageError("\n".join(problems))


@dataclass(frozen=True)
class _Option:
    """What an option takes: its type, and for a number its limits."""

    kind: type
    least: float | None
    most: float | None

    def problem(self, text: str) -> str | None:
        """What is allowed, where `text` is not. The command line would refuse the same, in other words."""
        try:
            value: Any = TypeAdapter(self.kind).validate_python(text)
        except ValidationError:
            return f"it must be {self._allowed}."
        # Negated, since NaN is below no limit.
        below = self.least is not None and not value >= self.least
        above = self.most is not None and not value <= self.most
        return f"it must be {self._allowed}." if below or above else None

    @property
    def _allowed(self) -> str:
        if issubclass(self.kind, Enum):
            return f"one of {', '.join(str(word) for word in self.kind)}"
        number = "a whole number" if self.kind is int else "a number"
        return (
            f"{number}, {self.least} or more"
            if self.most is None
            else f"{number} from {self.least} to {self.most}"
        )


def _options() -> dict[str, _Option]:
    """What each input takes, but for `suites`."""
    found = {}
    for name, hint in get_type_hints(RunSettings, include_extras=True).items():
        annotated, info = get_args(hint)
        if isinstance(info, OptionInfo):
            kinds = [kind for kind in get_args(annotated) or (annotated,) if kind is not NoneType]
            found[name.replace("_", "-")] = _Option(kinds[0], info.min, info.max)
    return found


def _switches() -> set[str]:
    return {item.name.replace("_", "-") for item in dataclasses.fields(RunSettings) if item.default is False}


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(INPUT_PREFIX).lower(): value.strip()
        for name, value in environ.items()
        if name.startswith(INPUT_PREFIX)
    }


def _outside(path: str, environ: Mapping[str, str]) -> str | None:
    """What is wrong with a path for reports that later steps could not see; None for one in the workspace."""
    workspace = os.path.realpath(environ.get("GITHUB_WORKSPACE") or Path.cwd())
    if Path(os.path.realpath(path)).is_relative_to(workspace):
        return None
    return (
        "it is outside of the workspace, and would be lost with the container; give a path in the workspace."
    )


def _as_text(default: object) -> str:
    if default is None or default is dataclasses.MISSING:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    return f"unknown input {name!r}: did you mean {near[0]!r}? README.md lists all inputs."
