"""The commands `label` and `calibrate`, and their options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.cli.settings.shared import Run


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """The options of `label`."""

    results: Run
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the sheet (sheet.csv) and its page (sheet.html).")
    ] = Path("labels")
    items: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of verdicts to label.")] = 100
    seed: Annotated[int, typer.Option(help="Seed of sample and order: the same seed, the same sheet.")] = 0


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """The options of `calibrate`."""

    labels: Annotated[
        list[Path],
        typer.Argument(metavar="LABELS", help="Filled sheets, one of each person."),
    ]
    results: Annotated[
        Path,
        typer.Option(metavar="RESULTS", help="Run whose verdicts are checked against the labels."),
    ] = Path("results")
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="File for the result, for `run --calibration`.")
    ] = Path("calibration.json")
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 0


@takes(LabelSettings)
def label(settings: LabelSettings, context: RunContext) -> None:
    """Write a sheet on which people label verdicts of the run.

    It comes with a page to fill it in, which works without network. The judge's verdicts are not on it. Give
    each person a copy, and check the judge against the filled ones with `ci-evals calibrate`.

    \b
    ci-evals label results/ --items=60
    """
    from ci_evals.studies.calibration.sheet import write_sheet

    write_sheet(settings.results, settings.output, settings.items, settings.seed, context)


@takes(CalibrateSettings)
def calibrate(settings: CalibrateSettings, context: RunContext) -> None:
    """Check the judge against people's labels: may it gate?

    Accuracy, sensitivity, specificity, Cohen's kappa and Krippendorff's alpha with intervals, by criterion
    and category, and the pass rate corrected for the judge's errors. Commit the file that it writes and give
    it to `run --calibration`: reports show it as long as prompt and model are the same.

    \b
    ci-evals calibrate labels/one.csv labels/other.csv --results=results/
    """
    from ci_evals.studies.calibration.study import check_judge

    check_judge(settings.labels, settings.results, settings.output, settings.seed, context)


COMMANDS = (label, calibrate)
