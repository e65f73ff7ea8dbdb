"""`label`: a saved run in, a sheet out on which people say what the judge should have said."""

from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.files.output_paths import check_output
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.library.runs import results_file
from ci_evals.reports import numbers, sanitize
from ci_evals.studies.calibration import items, sheet, sheet_reading
from ci_evals.studies.calibration.settings import LabelSettings


def label(settings: LabelSettings, context: RunContext) -> None:
    """Write the sheet, its page, and the guidelines.

    Raises:
        UsageError: the run cannot be read or holds nothing to label, or a sheet is there that holds labels;
            nothing is written then.
    """
    file = results_file(settings.results)
    for name in (sheet.SHEET, sheet.PAGE):
        check_output("--output", settings.output / name, {"RESULTS": file})
    results = SavedRun.open(file, context.hide()).results
    _check(settings.output / sheet.SHEET)
    found = items.items(results)
    if not found:
        raise UsageError(
            f"{file}: no judge has decided anything in it, so that there is nothing to label; play the "
            "suites with a judge (--provider)"
        )
    drawn = items.sample(found, settings.items, settings.seed)
    files.write_all(settings.output, sheet.files_of(drawn))
    context.show(sanitize.log_line(_told(settings, len(drawn), len(found))))


def _check(there: Path) -> None:
    """Make sure that no labels are overwritten.

    Raises:
        UsageError: some would be, or something else.
    """
    elsewhere = "is not written over; name another folder with --output"
    try:
        held = sheet_reading.held(there)
    except UsageError as error:
        raise UsageError(f"{there}: something else is there, and {elsewhere}: {error}") from error
    if held:
        raise UsageError(f"{there}: it holds {numbers.count(held, 'label')}, and {elsewhere}")


def _told(settings: LabelSettings, drawn: int, found: int) -> str:
    whole = (
        f"{drawn} of {numbers.count(found, 'verdict')}" if drawn < found else numbers.count(found, "verdict")
    )
    return (
        f"{whole} to label in {settings.output}: open {sheet.PAGE}, or fill in {sheet.SHEET}. Then: "
        f"ci-evals calibrate LABELS --results={settings.results}"
    )
