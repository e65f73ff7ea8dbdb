"""The commands `label` and `calibrate`."""

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.calibration.settings import CalibrateSettings, LabelSettings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(label)
    app.command()(calibrate)


@takes(LabelSettings)
def label(settings: LabelSettings, context: RunContext) -> None:
    """Write a sheet on which people say what the judge should have said, and a page to fill it in.

    The sheet does not tell what the judge said. Give each person a copy of its own, and hold the filled ones
    against the judge with `ci-evals calibrate`. The page works from the file, without network.

    \b
    ci-evals label results/ --items=60
    """
    from ci_evals.studies.calibration.label import label as work

    work(settings, context)


@takes(CalibrateSettings)
def calibrate(settings: CalibrateSettings, context: RunContext) -> None:
    """Hold the judge against what people said, and tell whether it may gate.

    Accuracy, sensitivity, specificity, Cohen's kappa and Krippendorff's alpha with intervals, by criterion
    and category, and the pass rate freed from the judge's errors. What was found is kept in a file; commit
    it, and give it to `run --calibration`: reports show it as long as prompt and model are the same.

    \b
    ci-evals calibrate labels/one.csv labels/other.csv --results=results/
    """
    from ci_evals.studies.calibration.calibrate import calibrate as work

    work(settings, context)
