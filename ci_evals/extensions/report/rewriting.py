"""Writes the reports of a saved run again, with other runs next to it."""

import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.suites import read_text
from ci_evals.cli.files.saved_run import SavedRun, without_trials
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study
from ci_evals.extension_registry import findings_files
from ci_evals.extensions.report.settings import ReportSettings
from ci_evals.reports import report_files, sanitize
from ci_evals.reports.names import PAGE, RESULTS, Format, formats_of_extensions
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import whole

_NO_CONVERSATIONS = (
    f"{PAGE} lacks the baseline's conversations. Name that run with `baseline=PATH`, or use `baseline=none`."
)
_NAMED = 3
"""The most files that are named; of more the number is printed."""


def report(settings: ReportSettings, context: RunContext) -> None:
    """Write the reports of a results file again, next to it.

    Raises:
        UsageError: an option or a file cannot be read, or they do not go together; nothing is written then.
    """
    formats = _formats(settings.format)
    if settings.open and Format.HTML not in formats:
        raise UsageError(f"`open=`: only {PAGE} can be opened. Omit `format=`, or add html to it.")
    runs = _read(settings.results, context.hide())
    results, named = runs.shown.results, runs.shown.file
    file = named.parent.resolve() / named.name  # beside a link, not beside what it leads to
    results = results.with_studies(*_findings_of(file.parent, results, context.redactor))
    baseline = _baseline(settings.baseline, runs, context.redactor)
    if report_files.is_of_suite(results, file):
        _check_alone(settings, formats, named)
    comparison_runs = ComparisonRuns(baseline, tuple(run for _, run in runs.others.values()))
    written = report_files.redraw(results, file, formats, comparison_runs)
    files.write_all(file.parent, written)
    context.show(sanitize.log_line(_summary(list(written), runs)))
    if PAGE in written and results.comparison and not baseline and settings.baseline != "none":
        context.console.say(_NO_CONVERSATIONS)
    if settings.open:
        _open(file.parent / PAGE, context)


def _findings_of(folder: Path, results: Results, redactor: Redactor) -> Iterator[Study]:
    """Yield what extensions have found out about a run and keep in files of their own.

    Raises:
        UsageError: such a file cannot be read.
    """
    for extension in findings_files():
        path = folder / extension.FILE
        if files.is_there(path):
            study = extension.read(read_text(path, str(path)), results)
            if study is not None:
                yield redactor.model(study)


def _formats(option: str | None) -> Sequence[str]:
    """Return the formats that the option names.

    Raises:
        UsageError: one of them is none.
    """
    named = [name.strip() for name in (option or "").split(",") if name.strip()]
    known = [*Format, *formats_of_extensions()]
    wrong = [name for name in named if name not in known]
    if wrong:
        raise UsageError(f"`format=`: unknown format {wrong[0]!r}. Formats: {', '.join(known)}.")
    return named or report_files.OF_EVERY_RUN


@dataclass(frozen=True)
class _Runs:
    """The run to show, and the others by their ids, with their files."""

    shown: SavedRun
    others: Mapping[str, tuple[Path, ComparisonRun]]
    of_folder: int
    """The number of runs that the path of the shown one stood for: of several it is the newest."""


def _read(paths: Sequence[Path], redactor: Redactor) -> _Runs:
    """Read the runs that the paths stand for; of a hundred no more than two are in memory at a time.

    Raises:
        UsageError: a path stands for none, or a file cannot be read; with all of them.
    """
    shown: SavedRun | None = None
    of_folder = 0
    others: dict[str, tuple[Path, ComparisonRun]] = {}
    for saved in SavedRun.open_each(
        paths, None, earlier_version=True
    ):  # conversations of most are not needed
        aside: SavedRun | None = saved
        if saved.path == paths[0]:
            of_folder += 1
            if shown is None or saved.results.run.started_at > shown.results.run.started_at:
                shown, aside = saved, shown
        if aside:
            label = whole(redactor.text(_label(aside.file)))
            other = ComparisonRun.of(redactor.model(without_trials(aside.results)), label)
            others.setdefault(other.id, (aside.file, other))
        del saved, aside  # the next is as large
    if shown is None:  # `open_each` has said why
        raise UsageError("there are no results to report")
    others.pop(shown.results.run.id, None)
    return _Runs(replace(shown, results=redactor.model(shown.results)), others, of_folder)


def _label(file: Path) -> str:
    """Return the shortest name of the folder or file that a run was read from."""
    if file.name != RESULTS:
        return str(file)
    return str(file.parent) if file.parent.name else file.resolve().parent.name


def _earlier(path: Path, redactor: Redactor) -> Results:
    return SavedRun.open(path, redactor, earlier_version=True).results


def _baseline(option: str | None, runs: _Runs, redactor: Redactor) -> Results | None:
    """Return the run whose conversations are shown beside those of the shown one.

    Raises:
        UsageError: it cannot be read, or is not the one that the shown run was compared with.
    """
    shown, file = runs.shown.results, runs.shown.file
    compared = shown.comparison.baseline if shown.comparison else None
    if option == "none":
        return None
    if option in {None, "", "auto"}:
        recorded = runs.others.get(compared.run_id) if compared else None
        return _earlier(recorded[0], redactor) if recorded else None
    try:
        baseline = _earlier(Path(option), redactor)
    except UsageError as error:
        raise UsageError(f"`baseline=`: {error}") from error
    if baseline.run.id == shown.run.id:
        raise UsageError(f"`baseline={option}`: this is the run to show. Name an earlier one.")
    if compared and baseline.run.id != compared.run_id:
        raise UsageError(
            f"`baseline={option}`: this run began at {_when(baseline.run.started_at)}, and {file} was "
            f"compared with one of {_when(compared.at)}. Name that one, or compare these two with "
            "`ci-evals compare`."
        )
    return baseline


def _when(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _check_alone(settings: ReportSettings, formats: Sequence[str], file: Path) -> None:
    """Refuse options that the results of a single suite do not support.

    Raises:
        UsageError: another format is asked for, or another run.
    """
    others = len(settings.results) > 1 or settings.baseline not in {None, "", "auto", "none"}
    if others or settings.open or (settings.format and set(formats) != {Format.MARKDOWN}):
        raise UsageError(
            f"{file}: the results of one suite have only Markdown reports. For {PAGE} and the other "
            f"formats name the {RESULTS} of the whole run."
        )


def _summary(written: Sequence[str], runs: _Runs) -> str:
    """Describe what was written, in one line."""
    if 0 < len(written) <= _NAMED:
        *most, last = written
        what = f"{', '.join(most)} and {last}" if most else last
    else:
        what = numbers.count(len(written), "report")
    newest = f", the newest of {runs.of_folder} runs" if runs.of_folder > 1 else ""
    other = len(runs.others) if PAGE in written else 0
    more = f"; {numbers.count(other, 'other run')} next to it" if other else ""
    return f"{what} written to {runs.shown.file.parent}{newest}{more}"


def _open(page: Path, context: RunContext) -> None:
    """Open the page in the browser; in CI, and without a browser, print its path."""
    if context.environ.get("CI") or not webbrowser.open(page.as_uri()):
        context.show(sanitize.log_line(f"Open in a browser: {page}"))
