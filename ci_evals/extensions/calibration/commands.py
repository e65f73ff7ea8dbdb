"""The commands `label` and `calibrate`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.calibration.settings import CalibrateSettings, LabelSettings


@takes("ci_evals.extensions.calibration.settings", "LabelSettings")
def label(settings: "LabelSettings", context: RunContext) -> None:
    """Write a sheet on which people label verdicts of the run.

    It comes with a page to fill it in, which works without network. The judge's verdicts are not on it. Give
    each person a copy, and check the judge against the filled ones with `ci-evals calibrate`.

    \b
    ci-evals label results/ --items=60
    """
    from ci_evals.extensions.calibration.sheet import write_sheet, write_spot_check

    if settings.spot_check:
        write_spot_check(settings, settings.spot_check, context)
    else:
        write_sheet(settings.results, settings.output, settings.items, settings.seed, context)


@takes("ci_evals.extensions.calibration.settings", "CalibrateSettings")
def calibrate(settings: "CalibrateSettings", context: RunContext) -> None:
    """Check the judge against people's labels: may it gate?

    Accuracy, sensitivity, specificity, Cohen's kappa and Krippendorff's alpha with intervals, by criterion
    and category, and the pass rate corrected for the judge's errors. Commit the file that it writes and give
    it to `run --calibration`: reports show it as long as prompt and model are the same.

    \b
    ci-evals calibrate labels/one.csv labels/other.csv --results=results/
    """
    from ci_evals.extensions.calibration.spot_check_runs import SpotCheckRuns, check_spot
    from ci_evals.extensions.calibration.study import check_judge

    if base := settings.spot_check:
        each = settings.items // 2
        runs = SpotCheckRuns.read(settings.results, base, each, settings.seed, context.hide())
        check_spot(settings.labels, runs, context)
        return
    check_judge(settings.labels, settings.results, settings.output, settings.seed, context)


COMMANDS = (label, calibrate)
