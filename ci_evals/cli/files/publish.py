"""Writes results: files, the action's outputs and step summary, the console."""

import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.github import outputs
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal.console import PLEASE_REPORT, Console, colored
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.reports import console as report
from ci_evals.reports import report_files, sanitize
from ci_evals.reports.names import JUNIT, PAGE, RESULTS, SUMMARY
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.story import story_of

_NOWHERE = (
    "There is no room for the reports in the working folder or the temporary folder either. Apart from "
    "the journal, this is all that is left of the run. Free some space, then resume with `resume=`."
)
_NO_PAGE = f"{PAGE} is missing; all other reports are there. {PLEASE_REPORT}"

EarlierRuns = Callable[[], tuple[ComparisonRun, ...]]
"""Reads the runs before this one, for the page."""


def publish(
    results: Results,
    paths: OutputPaths,
    context: RunContext,
    baseline: Results | None = None,
    *,
    earlier: EarlierRuns = tuple,
    verbose: bool = False,
) -> int:
    """Write every report and output, show the result, and return the exit code.

    What others wait for comes first, then the page, and the suites' own files last: a cancelled job may be
    killed meanwhile. A bug in the page costs the page, not the other reports. The baseline's conversations
    stand on it, without the secrets that the console knows.
    """
    code, console = results.gate.exit_code, context.console
    folder: Path | None = paths.folder
    reported = False
    try:
        _write_run(results, paths)
        complete = _write_outputs(results, code, paths, context)
        reported = True
        code = max(code, _write_page(results, baseline, earlier, paths.folder, console))
        if complete:
            _write_outputs(results, code, paths, context, again=True)
        files.write_each(paths.folder, report_files.of_suites(results))
    except UsageError as error:
        # The run is paid for: it must not be lost with the disk.
        folder = _rescue(results, baseline, console)
        instead = f"The reports are in {folder} instead." if folder else _NOWHERE
        code = max(code, Exit.INVALID)
        console.say(f"error: {error}\n{instead} The exit code is {code} whatever the verdict.")
        _write_outputs(results, code, OutputPaths(folder or paths.folder), context, again=reported)
    color = colored(sys.stdout, context.environ)
    context.show(report.render(story_of(results), width=context.width, color=color, verbose=verbose))
    if folder:
        first = PAGE if (folder / PAGE).is_file() else SUMMARY
        context.show(sanitize.log_line(f"Reports: {folder / first}"))
    outputs.annotate(results, context)
    if context.prints_json:
        context.show_json(report_files.of_run(results)[RESULTS])
    return code


def load(results: Results) -> None:
    """Import all that `publish` needs, with the templates, by making reports of any results for nobody."""
    for text in report_files.files(results).values():
        "".join(text)
    report.render(story_of(results), color=False, verbose=True)


def _write_run(results: Results, paths: OutputPaths) -> None:
    """Write the files of the run as a whole, except the page."""
    written = report_files.of_run(results)
    del written[PAGE]
    if paths.junit:
        files.write(paths.junit, written.pop(JUNIT))
    files.write_all(paths.folder, written)


def _write_page(
    results: Results, baseline: Results | None, earlier: EarlierRuns, folder: Path, console: Console
) -> int:
    """Write the page, and return the exit code for that. A bug costs the page alone."""
    try:
        redacted = console.redactor.model(baseline) if baseline else None
        comparison_runs = ComparisonRuns(redacted, earlier())
        files.write_all(folder, {PAGE: report_files.of_run(results, comparison_runs)[PAGE]})
    except UsageError:
        raise
    except Exception:  # noqa: BLE001  # a bug of ours, told as such; what the run came to stands without it
        with suppress(OSError):
            (folder / PAGE).unlink(missing_ok=True)  # an earlier run's would be taken for this one's
        console.say(f"{traceback.format_exc()}\n{_NO_PAGE}")
        return Exit.BUG
    return Exit.PASSED


def _write_outputs(
    results: Results, code: int, paths: OutputPaths, context: RunContext, *, again: bool = False
) -> bool:
    """Write outputs and step summary in GitHub Actions; of outputs the last ones count.

    Returns:
        Whether they could be written.
    """
    try:
        outputs.write(results, code, paths.folder, paths.junit or paths.folder / JUNIT, context)
        if not again:
            outputs.write_summary(results, context)
    except UsageError as error:
        context.console.say(f"warning: the action's outputs or step summary are incomplete: {error}")
        return False
    return True


def _rescue(results: Results, baseline: Results | None, console: Console) -> Path | None:
    """Write the reports to a new folder in the working folder, or the temporary files, or not at all."""
    for parent in (Path.cwd(), None):
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="ci-evals-", dir=parent))
            written = report_files.files(results)
            del written[PAGE]
            try:
                files.write_all(folder, written)
                _write_page(results, baseline, tuple, folder, console)
            except UsageError:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                return folder
    return None
