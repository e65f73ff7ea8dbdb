"""`import`: makes a suite of another tool's file, and reports what could not be converted."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ci_evals.adapters import files, input_files
from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal.console import Console
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.conversations.importing import draft_suite, write_run
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import ImportedSuite, suite_text
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.settings import ImportSettings

MOST_NOTES = 20
MOST_NAMES = 10
_PRINTED = "suite.yaml"


def import_suite(settings: ImportSettings, context: RunContext) -> None:
    """Read the file, write or print the suite, and report what needs editing.

    Raises:
        UsageError: the file cannot be read as what it should be, or the suite cannot be written.
    """
    output = settings.output
    if output and output.suffix.lower() not in ENDINGS:
        raise UsageError(f"`output=`: {str(output)!r} is not a suite's name. End it in {', '.join(ENDINGS)}.")
    if output and os.path.lexists(output):
        raise UsageError(
            f"`output=`: {str(output)!r} exists already and is not overwritten. Name a new file."
        )
    if settings.format in CONVERSATION_FORMATS:
        if settings.as_run:
            _refuse_output(settings)
            write_run(settings, context)
            return
        imported = draft_suite(settings, context)
    else:
        imported = _imported(settings)
    source = settings.file.as_posix()
    text = suite_text(imported, settings.format, source, str(output or _PRINTED))
    if output:
        files.write_new(output.parent, {output.name: text})
    else:
        context.show(text.rstrip("\n"), exact=True)
    _report(imported, source, output, context.console)


def _refuse_output(settings: ImportSettings) -> None:
    if settings.output:
        raise UsageError("`as_run=`: writes a run to `output_dir=`, and no suite. Omit `output=`.")


def _imported(settings: ImportSettings) -> ImportedSuite:
    """Read a file with another tool's tests.

    Raises:
        UsageError: there is no such format, an option is not for it, or the file is not of it.
    """
    importer = IMPORTERS.get(settings.format)
    if importer is None:
        known = ", ".join([*IMPORTERS, *CONVERSATION_FORMATS])
        raise UsageError(f"FORMAT: {settings.format!r} is not one of {known}.")
    for option, given in (
        ("`as_run=`", settings.as_run),
        ("`keep_personal_data=`", settings.keep_personal_data),
    ):
        if given:
            conversations = ", ".join(CONVERSATION_FORMATS)
            raise UsageError(f"{option}: has no effect with {settings.format}; it is for {conversations}.")
    return importer.read(_text(settings.file), settings.file.as_posix(), OtherFiles(settings.file))


def _report(imported: ImportedSuite, source: str, output: Path | None, console: Console) -> None:
    where = f", written to {output}" if output else ""
    left_out = f"; {len(imported.left_out)} left out" if imported.left_out else ""
    console.say(f"{numbers.count(len(imported.tests), 'test')} from {source}{where}{left_out}")
    _say_notes(imported.left_out, " that are left out", console)
    if unchecked := imported.unchecked():
        named = ", ".join(map(repr, unchecked[:MOST_NAMES]))
        more = len(unchecked) - MOST_NAMES
        names = f"{named} and {more} more" if more > 0 else named
        verb = "checks" if len(unchecked) == 1 else "check"
        console.say(f"  {numbers.count(len(unchecked), 'test')} {verb} only that the agent answers: {names}")
    _say_notes(
        imported.other_notes(), "; the parts without a counterpart are in each test under x-unmapped", console
    )
    if output:
        console.say(f"Check it:  ci-evals validate --strict {output}")


def _say_notes(notes: Sequence[str], of_more: str, console: Console) -> None:
    for note in notes[:MOST_NOTES]:
        console.say(f"  {note}")
    if (more := len(notes) - MOST_NOTES) > 0:
        console.say(f"  and {more} more{of_more}")


def _text(path: Path) -> str:
    try:
        data = input_files.read(path)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise UsageError(f"{path}: {error.strerror}. Split the file.") from error
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8. Save the file as UTF-8.") from error
