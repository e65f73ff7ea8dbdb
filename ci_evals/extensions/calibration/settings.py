"""The options of `label` and `calibrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.settings.shared import Run
from ci_evals.domain.options import Names


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """The options of `label`."""

    results: Run
    output: Annotated[
        Path,
        Names.OUTPUT,
        typer.Option(metavar="DIR", help="Folder for the sheet (sheet.csv) and its page (sheet.html)."),
    ] = Path("labels")
    items: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of verdicts to label.")] = 100
    seed: Annotated[int, typer.Option(help="Seed of sample and order: the same seed, the same sheet.")] = 0
    spot_check: Annotated[
        Path | None,
        Names.SUBJECT,
        typer.Option(
            metavar="BASELINE",
            help="Draw half of the verdicts from this other run.\n\n"
            "To see whether the judge treats the answers of another agent, or of the same one on another "
            "model, as it treated those before. Name this run itself if it played the base agent too.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """The options of `calibrate`."""

    labels: Annotated[
        list[Path],
        Names.SUBJECT,
        typer.Argument(metavar="LABELS", help="Filled sheets, one of each person."),
    ]
    results: Annotated[
        Path,
        Names.SUBJECT,
        typer.Option(metavar="RESULTS", help="Run whose verdicts are checked against the labels."),
    ] = Path("results")
    output: Annotated[
        Path, Names.OUTPUT, typer.Option(metavar="FILE", help="File for the result, for `run --calibration`.")
    ] = Path("calibration.json")
    seed: Annotated[int, typer.Option(help="Seed of the intervals, or of the spot check's sheet.")] = 0
    spot_check: Annotated[
        Path | None,
        Names.SUBJECT,
        typer.Option(
            metavar="BASELINE",
            help="Baseline of a sheet of `label --spot-check`.\n\n"
            "Says whether the judge treats both runs alike, and the change by people's labels.",
        ),
    ] = None
    items: Annotated[
        int, typer.Option(min=1, max=10_000, help="The number that the spot check's sheet was made with.")
    ] = 100
