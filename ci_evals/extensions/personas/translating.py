"""`personas translate`: translates what lock files lack, and writes each that is complete."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import LOCK_ENDING, MAX_LOCK, SuiteSource, read_beside, sources
from ci_evals.agents import plugins
from ci_evals.cli import environment_secrets
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, SuiteError, UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.extensions.personas.asking_model import NOTHING, ask_model
from ci_evals.extensions.personas.fixed_lines import LinesToTranslate, TestLines, lock_name, lock_path
from ci_evals.extensions.personas.lock_file import LockFile, Translation, lock_text, read_lock
from ci_evals.extensions.personas.settings import PersonasSettings
from ci_evals.extensions.personas.translations import count_unneeded, needed_by_language
from ci_evals.extensions.personas.translator import Question
from ci_evals.planning.documents.document import short
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.reports import sanitize
from ci_evals.support.redaction import Redactor

_LONGEST_SHOWN = 100
_MOST_EXPECTED = 5_000_000
"""Size of a lock file, if translations were as long as their lines, up to which a model is asked: in some
languages they have three times the bytes."""
_REST_OF_ENTRY = 75
"""Bytes of an entry of a lock file besides its line and text: its keys, the model and the day."""


@dataclass(frozen=True)
class SuiteLines:
    """A suite with languages, its fixed lines, and the translations that there are."""

    file: str
    path: Path
    """Its lock file."""
    tests: Sequence[TestLines]
    lock: LockFile

    def questions(self) -> Iterator[Question]:
        """Yield what to translate: each line once in each language, in the first test that has it."""
        asked: dict[str, set[str]] = {}
        for test in self.tests:
            for language in test.languages:
                known = asked.setdefault(language, {*self.lock.by_line(language)})
                new = [line.text for _, line in test.to_translate() if line.text not in known]
                known.update(new)
                if new:
                    yield Question(test.name, language, test.lines, tuple(dict.fromkeys(new)))


def translate_suites(settings: PersonasSettings, context: RunContext) -> None:
    """Bring the lock files of the suites up to date, say what changed, and exit.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    redactor = context.hide((settings.llm_key,), environment_secrets.values_in(context.environ))
    suites = _suites(settings, context)
    _check_secrets(suites, redactor)
    questions = [(index, question) for index, suite in enumerate(suites) for question in suite.questions()]
    translated = ask_model(questions, settings, context) if questions else NOTHING
    today = datetime.now(UTC).date()
    for index, suite in enumerate(suites):
        if index not in translated.incomplete:
            new = {language: texts for (at, language), texts in translated.texts.items() if at == index}
            _write(suite, new, translated.model, today, context)
    for fault in translated.faults:
        context.console.say(sanitize.log(fault))
    if translated.incomplete:
        names = [lock_path(suites[index].file) for index in sorted(translated.incomplete)]
        context.console.say(f"Not written, since translations are missing: {numbers.listed(names, 5)}")
        sys.exit(Exit.INVALID)


def _suites(settings: PersonasSettings, context: RunContext) -> list[SuiteLines]:
    """Return the suites that have languages.

    Raises:
        UsageError: a suite or its lock file cannot be used, or none has languages.
    """
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    read = [source for name in settings.suites for source in sources(name)]
    unique = {source.path: source for source in read}
    suites = [_lines_in(source, trust, context) for source in unique.values()]
    found = [suite for suite in suites if any(test.languages for test in suite.tests)]
    if not found:
        names = numbers.listed([source.file for source in unique.values()], 5)
        raise UsageError(f"{names}: nothing to translate. Add `languages: [de]` to a suite.")
    for suite in found:
        _check_alone(suite)
        _check_size(suite)
    return found


def _lines_in(source: SuiteSource, trust: FileTrust, context: RunContext) -> SuiteLines:
    folder = source.path.parent
    noted = LinesToTranslate(partial(read_beside, folder))
    bundled = is_bundled(source.file)
    reading = Reading(
        environ=context.environ,
        plugins=plugins.names(),
        masked=True,  # nothing is played, so no variable needs a value
        read_beside=noted,
        distrusted=None if bundled else trust.suite_distrusted(Path(source.file)),
    )
    load(source.text, source.file, reading)
    path = folder / lock_name(source.file)
    has_languages = any(test.languages for test in noted.tests)
    lock = _lock_at(path, source.file) if has_languages else LockFile()
    return SuiteLines(source.file, path, noted.tests, lock)


def _lock_at(path: Path, suite: str) -> LockFile:
    """Read the lock file of a suite, which may have none yet."""
    if not files.is_there(path):
        return LockFile()
    name = lock_path(suite)
    try:
        text = read_beside(path.parent, path.name)
    except UsageError as error:
        raise UsageError(f"{name} {error}") from None
    return read_lock(text, name).lock


def _check_alone(suite: SuiteLines) -> None:
    """Refuse two suites that would share a lock file."""
    stem = suite.path.name.removesuffix(LOCK_ENDING)
    names = [f"{stem}{ending}" for ending in ENDINGS]
    others = [name for name in names if files.is_there(suite.path.with_name(name))]
    if len(others) > 1:
        raise UsageError(
            f"{suite.file}: {numbers.listed(others, 5)} would share the lock file {suite.path.name}. "
            "Rename one of them."
        )


def _check_size(suite: SuiteLines) -> None:
    """Refuse a suite whose translations may be more than a lock file can hold."""
    needed = needed_by_language(suite.tests)
    size = sum(2 * len(line.encode()) + _REST_OF_ENTRY for lines in needed.values() for line in lines)
    if size > _MOST_EXPECTED:
        raise UsageError(
            f"{suite.file}: its translations would need some {size / 1_000_000:.1f} MB, and a lock file "
            f"should have at most {_MOST_EXPECTED / 1_000_000:.0f} MB. "
            "Split the suite, or leave languages out."
        )


def _check_secrets(suites: Sequence[SuiteLines], redactor: Redactor) -> None:
    """Refuse a line that holds a secret, which a model would be sent and the lock file would keep."""
    for suite in suites:
        for test in suite.tests:
            if any(redactor.text(line.text) != line.text for line in test.lines):
                raise UsageError(
                    f"{suite.file}: a line of the test {test.name!r} holds a secret of the environment. "
                    "Write ${NAME} instead."
                )


def _write(
    suite: SuiteLines,
    new: Mapping[str, Mapping[str, str]],
    model: str,
    today: date,
    context: RunContext,
) -> None:
    """Write the lock file of a suite if anything in it changes, and say what."""
    try:
        lock = _lock_at(suite.path, suite.file)  # a correction may have been saved while the model was asked
        translations = {
            language: _entries(lines, lock.by_line(language), new.get(language, {}), model, today)
            for language, lines in needed_by_language(suite.tests).items()
            if lines
        }
    except (SuiteError, UsageError):
        _show(new, context)
        raise
    name = lock_path(suite.file)
    known = sum(map(len, lock.translations.values()))
    removed = count_unneeded(suite.tests, lock)
    kept = known - removed
    added = sum(map(len, translations.values())) - kept
    if not added and not removed:
        context.show(f"{name}: nothing to translate")
        return
    text = lock_text(translations, suite.file)
    if len(text.encode()) > MAX_LOCK:
        raise UsageError(f"{name}: would be larger than {MAX_LOCK / 1_000_000:.0f} MB. Split the suite.")
    files.write(suite.path, text)
    context.show(f"{name}: {numbers.count(added, 'line')} translated, {kept:,} kept, {removed:,} removed")
    _show(new, context)


def _show(new: Mapping[str, Mapping[str, str]], context: RunContext) -> None:
    for language, texts in new.items():
        for line, text in texts.items():
            before, after = (sanitize.log_line(each, _LONGEST_SHOWN) for each in (line, text))
            context.show(f"  {language}: {before} → {after}")


def _entries(
    lines: Sequence[str],
    known: Mapping[str, Translation],
    new: Mapping[str, str],
    model: str,
    today: date,
) -> list[Translation]:
    entries = []
    for line in lines:
        if line in known:
            entries.append(known[line])
        elif line in new:
            entries.append(Translation(line=line, text=new[line], model=model, made=today))
        else:
            raise UsageError(
                f"{short(line)!r} lost its translation while the model was asked, so its lock file was not "
                "written. Run the command again."
            )
    return entries
