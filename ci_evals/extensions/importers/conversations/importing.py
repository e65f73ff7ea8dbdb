"""`import` of real conversations: drafts a suite of them, or makes a run of them."""

from collections.abc import Sequence
from pathlib import Path, PurePath

from ci_evals.adapters import files
from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.drafting.conversation import RecordedConversation
from ci_evals.extension_support.drafting.draft import DraftedTest, draft, joined
from ci_evals.extension_support.drafting.personal_data import StandIns, listed_for_review
from ci_evals.extensions.importers.conversations.as_run import results_of
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.conversations.recorded_file import RecordedFile
from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.settings import ImportSettings
from ci_evals.reports import report_files, sanitize
from ci_evals.reports.names import RESULTS
from ci_evals.support.json_text import written
from ci_evals.support.redaction import Redactor

TAGS = ("imported",)
_COMMENT = (
    "Drafted from real conversations. Lines with 'Decide' wait for a person: decide, then delete them.\n"
    "Arguments are checked where the user gave their value, in words or as userInfo."
)
_MOST_STAND_INS = 50
_MOST_TOOLS, _LONGEST_LIST = 10, 500


def draft_suite(settings: ImportSettings, context: RunContext) -> ImportedSuite:
    """Read real conversations, and draft a suite of them.

    Raises:
        UsageError: the file cannot be read as what it should be.
    """
    imported = _suite(settings)
    conversations = _read(settings, imported, context)
    drafts = joined(draft(one, tags=TAGS) for one in conversations)
    for one in drafts:
        fields = context.redactor.json(one.fields)
        notes = {path: context.redactor.text(text) for path, text in one.notes.items()}
        imported.add(context.redactor.text(one.title), fields, one.place, notes)
    imported.comment += _hand_over_note(drafts, context.redactor)
    if len(drafts) < len(conversations):
        count = numbers.count(len(conversations), "conversation")
        imported.notes.append(f"{count} took {numbers.count(len(drafts), 'path')}: one test for each path")
    return imported


def _hand_over_note(drafts: Sequence[DraftedTest], redactor: Redactor) -> str:
    """Return what makes hand-overs known, for the comment at the beginning of the suite."""
    tools = dict.fromkeys(tool for one in drafts for tool in one.hand_over_tools)
    if not tools:
        return ""
    names = redactor.json([*tools][:_MOST_TOOLS])
    listed = sanitize.one_line(written(names), _LONGEST_LIST)
    return (
        "\nThese tools seem to hand over to a person. Name them, unless the agent says itself that it does:\n"
        f"adapterOptions: {{ escalationTools: {listed} }}"
    )


def write_run(settings: ImportSettings, context: RunContext) -> None:
    """Write the results of a run that consists of real conversations.

    Raises:
        UsageError: the file cannot be read as what it should be, or the results cannot be written.
    """
    file = settings.output_dir / RESULTS
    OutputPaths(settings.output_dir).check({"FILE": settings.file})
    if files.is_there(file):
        raise UsageError(f"`output_dir=`: {str(file)!r} exists already and is not overwritten. Name another.")
    imported = _suite(settings)
    conversations = _read(settings, imported, context)
    if not conversations:
        left_out = "".join(f"\n  {note}" for note in imported.left_out[:_MOST_STAND_INS])
        raise UsageError(f"{settings.file}: contains nothing that can become a test{left_out}")
    drafts = [draft(one, tags=TAGS) for one in conversations]
    redactor = context.redactor
    results = context.wait(results_of(conversations, drafts, imported, settings.format, redactor))
    files.write_new(settings.output_dir, {RESULTS: "".join(report_files.of_run(results)[RESULTS])})
    say = context.console.say
    say(f"{numbers.count(len(imported.tests), 'conversation')} from {settings.file}, written to {file}")
    for note in imported.notes[:_MOST_STAND_INS]:
        say(f"  {note}")
    for warning in results.run.warnings:
        say(f"warning: {warning}")
    say(f"Look at it:  ci-evals show {settings.output_dir}")


def _suite(settings: ImportSettings) -> ImportedSuite:
    return ImportedSuite(PurePath(settings.file).stem.strip() or "Conversations", comment=_COMMENT)


def _read(
    settings: ImportSettings, imported: ImportedSuite, context: RunContext
) -> list[RecordedConversation]:
    """Return the conversations, without personal data unless it is to be kept."""
    file = RecordedFile.read(Path(settings.file))
    conversations = CONVERSATION_FORMATS[settings.format].read(file, imported)
    if settings.keep_personal_data:
        return conversations
    stand_ins = StandIns(conversations)
    replaced = [stand_ins.conversation(one) for one in conversations]
    _list_stand_ins(stand_ins, context)
    return replaced


def _list_stand_ins(stand_ins: StandIns, context: RunContext) -> None:
    lines = listed_for_review(stand_ins.review())
    if not lines:
        return
    context.console.say(f"Personal data: {numbers.count(len(lines), 'stand-in')}. Read the draft for more.")
    for line in lines[:_MOST_STAND_INS]:
        context.console.say(f"  {line}")
    if (more := len(lines) - _MOST_STAND_INS) > 0:
        context.console.say(f"  and {more} more")
