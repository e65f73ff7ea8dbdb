"""The action's inputs. GitHub hands them over as `INPUT_*` variables; the command line takes them from here.

Only `INPUT_*` is read, since nothing but the step's `with:` sets it. What is not declared is refused: GitHub
itself merely warns of a misspelt input, and a gate that ignores `min-scor: 95` would look as if it held.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ci_evals.cli.settings import ENV_PREFIX, INPUT_DEFAULT, RunSettings
from ci_evals.domain.errors import UsageError

INPUT_PREFIX = "INPUT_"
SUITES = "suites"
RUNNERS_OWN = frozenset({"args", "entrypoint"})
"""Inputs that GitHub's runner accepts for every container action and handles itself."""

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

    Raises `UsageError` with every problem: an input that is not declared, a boolean that is none, no suites.
    """
    inputs = {
        name.removeprefix(INPUT_PREFIX).lower(): value.strip()
        for name, value in environ.items()
        if name.startswith(INPUT_PREFIX)
    }
    known = declared()
    problems = [_unknown(name, known) for name in inputs if name not in known and name not in RUNNERS_OWN]
    suites = [line.strip() for line in inputs.pop(SUITES, "").splitlines() if line.strip()]
    if not suites:
        problems.append(
            "input 'suites' is empty: name suite files, folders or bundled suites (demo:hr), one a line."
        )
    switches = {
        item.name.replace("_", "-") for item in dataclasses.fields(RunSettings) if item.default is False
    }
    variables = {}
    for name, value in inputs.items():
        if name not in known or not value:
            continue
        if name not in switches:
            text = value
        elif value in BOOLEANS:
            text = value.lower()
        else:
            problems.append(f"input {name!r} must be 'true' or 'false', not {value!r}.")
            continue
        variables[ENV_PREFIX + name.replace("-", "_").upper()] = text
    if problems:
        raise UsageError("\n".join(problems))
    return Invocation(("run", "--", *suites), variables)


def _as_text(default: object) -> str:
    if default is None or default is dataclasses.MISSING:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)
    return f"unknown input {name!r}: did you mean {near[0]!r}? README.md lists all inputs."
