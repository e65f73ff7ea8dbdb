"""`report`: the reports of a saved run, written anew."""

from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.console import show
from ci_evals.cli.saved import read_clean
from ci_evals.library import results_file
from ci_evals.reports import layout, numbers


def report(path: Path) -> None:
    """Writes every report of a results file anew, beside it."""
    results, file = read_clean(path), results_file(path)
    written = layout.redraw(results, file.resolve())
    files.write_all(file.resolve().parent, written)
    show(f"{numbers.count(len(written), 'report')} written to {file.parent}")
