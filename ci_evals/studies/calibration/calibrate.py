"""`calibrate`: filled sheets in, out what people say of the judge, kept for later runs."""

from datetime import UTC, datetime
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.files.output_paths import check_output
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.library.runs import results_file
from ci_evals.reports import sanitize
from ci_evals.scoring.agreement.judge_used import unlike
from ci_evals.studies.calibration import sheet_reading, study, terminal
from ci_evals.studies.calibration.later_runs import read_file, with_calibration
from ci_evals.studies.calibration.result import Calibration
from ci_evals.studies.calibration.settings import CalibrateSettings
from ci_evals.studies.keeping import check_whole, keep

_JUDGED_AGAIN = (
    "These verdicts were given anew to conversations of an earlier run. If the sheet was made from that one, "
    "its labels are no fair sample of them: make a sheet from this run, and calibrate with that alone."
)


def calibrate(settings: CalibrateSettings, context: RunContext) -> None:
    """Print how the judge compares with people, and keep that in a file and with the run.

    Raises:
        UsageError: a sheet or the run cannot be read, no label is of it, or the file that is to be written
            holds something else; nothing is written then.
    """
    redactor = context.hide()
    file = results_file(settings.results)
    inputs = {f"the sheet {path}": path for path in settings.labels}
    check_output("--output", settings.output, {"--results": file, **inputs})
    labels = sheet_reading.read(settings.labels)
    run = SavedRun.open(file, redactor)
    check_whole(run)
    results = run.results
    try:
        found = study.calibrate(results, labels, datetime.now(UTC), settings.seed)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    found = redactor.model(found)
    _check(settings.output, found)
    files.write(settings.output, found.model_dump_json(by_alias=True, indent=2) + "\n")
    context.show(terminal.render(found))
    if results.run.origin and results.run.origin.how == "rejudge":
        context.show(_JUDGED_AGAIN)
    context.show(
        sanitize.log_line(f"Written to {settings.output}: commit it, and give it to run --calibration")
    )
    keep(with_calibration(results, found), file, context)


def _check(path: Path, found: Calibration) -> None:
    """Make sure that nothing but an earlier calibration of this judge is overwritten."""
    if not files.is_there(path):
        return
    try:
        before = read_file(path)
    except UsageError as error:
        raise UsageError(f"--output={path}: something else is there: {error}") from error
    if why := unlike(before.judge, found.judge):
        raise UsageError(f"--output={path}: what is there is of {why}; take it away, or name another file")
