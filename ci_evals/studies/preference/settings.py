"""The options of `prefer`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.studies.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class PreferSettings(JudgeSettings):
    """The options of `prefer`."""

    head: Annotated[Path, typer.Argument(metavar="A", help="The run to look at.", show_default=False)]
    base: Annotated[Path, typer.Argument(metavar="B", help="The run that it is held against.")]
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many pairs of conversations to compare, at most.")
    ] = 100
