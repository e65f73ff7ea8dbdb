"""What each option names in the workspace. `cli/github/trust` has a rule for each kind."""

import dataclasses
from enum import Enum, auto
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo


class Names(Enum):
    """What the value of an option names, and so who may have written it.

    Every option of text or paths has one in its annotation. Numbers, switches and closed sets of words name
    nothing. In a job with secrets, a *foreign* checkout may hold somebody else's code.
    """

    TEXT = auto()
    """Nothing in the workspace: a name, a model, a key, a pattern."""
    ADDRESS = auto()
    """An address. Whoever wrote the command chose it."""
    INPUT = auto()
    """A file or folder that decides where keys go, what may be spent, or what passes.

    It may not be in a foreign checkout.
    """
    PROGRAM = auto()
    """Code to run, which may not be in a foreign checkout. For `--adapter` only if it is code."""
    AGENTS = auto()
    """Lines with the options of a further agent. Each follows the rule of the option of its name."""
    SUITES = auto()
    """Suites. In a foreign checkout they may name no endpoint, no variable and no code."""
    EVIDENCE = auto()
    """Results to decide on. In a foreign checkout they must come from this job: git may not track them."""
    SUBJECT = auto()
    """Files that are shown, converted or judged again. They decide nothing."""
    OUTPUT = auto()
    """A file or folder to write. No link may lead elsewhere: see `cli/files/output_paths`."""
    CACHE = auto()
    """Signed answers, which may not be in a foreign checkout: see `cli/run/judge_cache`."""


def names_of(settings: type[Any]) -> dict[str, Names | None]:
    """Return what each option of text or paths names, by its field; None if that is not declared."""
    hints = get_type_hints(settings, include_extras=True)
    options = {item.name: get_args(hints[item.name]) for item in dataclasses.fields(settings)}
    return {
        field: next((one for one in metadata if isinstance(one, Names)), None)
        for field, (kind, *metadata) in options.items()
        if _is_text(kind)
    }


def label_of(settings: type[Any], field: str) -> str:
    """Return how a command line spells an option: `--base-url`, or the metavar of an argument."""
    hint = get_type_hints(settings, include_extras=True)[field]
    info = next(one for one in get_args(hint) if isinstance(one, ArgumentInfo | OptionInfo))
    if isinstance(info, ArgumentInfo):
        return info.metavar or field.upper()
    return info.param_decls[0] if info.param_decls else f"--{field.replace('_', '-')}"


def _is_text(kind: Any) -> bool:
    """Return whether values are texts or paths, or lists of them."""
    return kind in {str, Path} or any(map(_is_text, get_args(kind)))
