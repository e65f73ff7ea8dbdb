"""The options of `attack`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ci_evals.cli.settings.shared import Run
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class AttackSettings(JudgeSettings):
    """The options of `attack`."""

    results: Run
    verdicts: Annotated[
        int,
        typer.Option(min=1, max=1_000, help="Maximum failed verdicts to attack, for each attack."),
    ] = 10
