"""What each option names in the workspace. `cli/github/trust` has a rule for each kind."""

import dataclasses
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from ci_evals.domain.options import Names


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
