"""The options of `label` and `calibrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.studies.settings import Run


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """The options of `label`."""

    results: Run
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the sheet (sheet.csv) and its page (sheet.html).")
    ] = Path("labels")
    items: Annotated[int, typer.Option(min=1, max=10_000, help="How many verdicts to label, at most.")] = 100
    seed: Annotated[
        int, typer.Option(help="What the sample and its order are drawn by: the same seed, the same sheet.")
    ] = 0


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """The options of `calibrate`."""

    labels: Annotated[
        list[Path],
        typer.Argument(metavar="LABELS", help="Filled sheets, one of each person.", show_default=False),
    ]
    results: Annotated[
        Path,
        typer.Option(metavar="RESULTS", help="The run whose verdicts they are held against."),
    ] = Path("results")
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to keep what was found, for `run --calibration`.")
    ] = Path("calibration.json")
    seed: Annotated[int, typer.Option(help="What intervals are drawn by.")] = 0
