"""The options of `label` and `calibrate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.shared import Run
from ci_evals.domain.options import Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """The options of `label`."""

    results: Run
    output: Annotated[
        Path,
        OptionSpec(
            "Folder for the sheet (sheet.csv) and its page (sheet.html).", names=Names.OUTPUT, metavar="DIR"
        ),
    ] = Path("labels")
    items: Annotated[int, OptionSpec("Maximum number of verdicts to label.", minimum=1, maximum=10_000)] = 100
    seed: Annotated[int, OptionSpec("Seed of sample and order: the same seed, the same sheet.")] = 0
    spot_check: Annotated[
        Path | None,
        OptionSpec(
            "Draw half of the verdicts from this other run.\n\n"
            "To see whether the judge treats the answers of another agent, or of the same one on another "
            "model, as it treated those before. Name this run itself if it played the base agent too.",
            names=Names.SUBJECT,
            metavar="BASELINE",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """The options of `calibrate`."""

    labels: Annotated[
        list[Path],
        OptionSpec(
            "Filled sheets, one of each person.", names=Names.SUBJECT, metavar="LABELS", argument=True
        ),
    ]
    results: Annotated[
        Path,
        OptionSpec(
            "Run whose verdicts are checked against the labels.", names=Names.SUBJECT, metavar="RESULTS"
        ),
    ] = Path("results")
    output: Annotated[
        Path, OptionSpec("File for the result, for `run --calibration`.", names=Names.OUTPUT, metavar="FILE")
    ] = Path("calibration.json")
    seed: Annotated[int, OptionSpec("Seed of the intervals, or of the spot check's sheet.")] = 0
    spot_check: Annotated[
        Path | None,
        OptionSpec(
            "Baseline of a sheet of `label --spot-check`.\n\n"
            "Says whether the judge treats both runs alike, and the change by people's labels.",
            names=Names.SUBJECT,
            metavar="BASELINE",
        ),
    ] = None
    items: Annotated[
        int, OptionSpec("The number that the spot check's sheet was made with.", minimum=1, maximum=10_000)
    ] = 100
