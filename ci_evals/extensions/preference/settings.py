"""The options of `prefer`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.domain.options import Names
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class PreferSettings(JudgeSettings):
    """The options of `prefer`."""

    head: Annotated[Path, Names.SUBJECT, typer.Argument(metavar="A", help="The run.")]
    base: Annotated[Path, Names.SUBJECT, typer.Argument(metavar="B", help="The run to compare it with.")]
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of pairs of conversations to compare.")
    ] = 100
