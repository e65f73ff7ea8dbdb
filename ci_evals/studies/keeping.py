"""What was found out about a saved run, kept with its results and shown in its reports."""

from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Attacks, Calibration, Noise, Preference, Probe
from ci_evals.reports import report_files, results_json, sanitize
from ci_evals.reports.names import RESULTS
from ci_evals.support.redaction import Redactor

Study = Calibration | Noise | Preference | Attacks | Probe


def check_whole(results: Results, file: Path) -> None:
    """Makes sure, before anything is paid for, that what is found out can be kept with the results.

    Raises:
        UsageError: they are one suite's own, which are part of the run's.
    """
    if report_files.is_of_suite(results, file.resolve()):
        raise UsageError(f"{file}: these are the results of one suite; name the {RESULTS} of the whole run")


def keep(
    file: Path, results: Results, redactor: Redactor, context: RunContext, **studies: Study | None
) -> Results:
    """Writes the results with these studies in place of earlier ones of the kind, and every report anew.

    `file` is where the results were read from; `studies` are named as the fields of `Studies`. Gives back
    what was written.

    Raises:
        UsageError: it cannot be written.
    """
    clean = {name: study and redactor.model(study) for name, study in studies.items()}
    found = results.model_copy(update={"studies": results.studies.model_copy(update=clean)})
    place = file.parent.resolve() / file.name
    files.write(place, results_json.render(found))  # first: all else can be drawn anew from it
    files.write_all(place.parent, report_files.redraw(found, place))
    context.show(sanitize.log_line(f"Kept in {file} and its reports"))
    return found
