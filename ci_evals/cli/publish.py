"""Results go out: files, the action's outputs and step summary, the console, the exit code."""

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli import outputs
from ci_evals.cli.console import Console, colored, show
from ci_evals.cli.places import Places
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results import Results
from ci_evals.reports import console as report
from ci_evals.reports import layout, sanitize
from ci_evals.reports.names import JUNIT, SUMMARY

_NOWHERE = (
    "There is no room for the reports in the working folder or among the temporary files either: what "
    "follows is all that is left of the run, besides its journal. Make room, and go on with --resume."
)


def publish(results: Results, places: Places, console: Console, *, verbose: bool = False) -> int:
    """Writes every report and output, shows the result, and gives the exit code.

    What others wait for comes first, and the suites' own files last: a cancelled job may be killed meanwhile.
    """
    code = results.gate.exit_code
    folder: Path | None = places.folder
    told = False
    try:
        _write_run(results, places)
        _tell(results, code, places, console)
        told = True
        files.write_each(places.folder, layout.of_suites(results))
    except UsageError as error:
        # The run is paid for: it must not be lost with the disk.
        folder = _rescue(results)
        instead = f"The reports are in {folder} instead." if folder else _NOWHERE
        console.say(f"error: {error}\n{instead}")
        code = max(code, Exit.INVALID)
        _tell(results, code, Places(folder or places.folder), console, again=told)
    show(report.render(results, color=colored(sys.stdout, os.environ), verbose=verbose))
    if folder:
        show(sanitize.log_line(f"Reports: {folder / SUMMARY}"))
    outputs.annotate(results, os.environ)
    return code


def _write_run(results: Results, places: Places) -> None:
    """Writes the files of the run as a whole."""
    written = layout.of_run(results)
    if places.junit:
        files.write(places.junit, written.pop(JUNIT))
    files.write_all(places.folder, written)


def _tell(results: Results, code: int, places: Places, console: Console, *, again: bool = False) -> None:
    """Writes outputs and step summary, where they are wanted; of outputs the last ones count."""
    try:
        outputs.write(results, code, places.folder, places.junit or places.folder / JUNIT, os.environ)
        if not again:
            outputs.write_summary(results, os.environ)
    except UsageError as error:
        console.say(f"warning: the outputs or the summary of the action are not complete: {error}")


def _rescue(results: Results) -> Path | None:
    """Writes the reports to a new folder in the working folder, or the temporary files, or not at all."""
    for place in (Path.cwd(), None):
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="ci-evals-", dir=place))
            try:
                files.write_all(folder, layout.files(results))
            except UsageError:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                return folder
    return None
