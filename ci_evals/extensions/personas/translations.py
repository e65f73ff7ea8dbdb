"""The translations of a suite's fixed lines, as its lock file has them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ci_evals.domain import numbers
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.extensions.personas.fixed_lines import (
    FixedLine,
    LinesToTranslate,
    TestLines,
    has_file,
    how_to_translate,
    is_untranslated,
    lock_name,
    lock_path,
)
from ci_evals.planning.documents.document import Document, Path, short
from ci_evals.planning.documents.interpolate import Reading, interpolate

if TYPE_CHECKING:  # most suites have no lock file
    from ci_evals.extensions.personas.lock_file import LockContent, LockFile


@dataclass(frozen=True)
class TranslatedLine:
    """A fixed line in another language, as it is sent."""

    text: str
    written: str | None
    """With the names of its variables, if it holds secrets."""


@dataclass(frozen=True)
class Translations:
    """The translations of a suite, or what is wrong with them."""

    texts: Mapping[str, Mapping[str, str]] | None = None
    """By language and line; None if tests in other languages are left out of this reading of the suite."""
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = field(default=())

    def lines(
        self, lines: Sequence[FixedLine], language: str, reading: Reading
    ) -> Iterator[tuple[FixedLine, TranslatedLine]]:
        """Yield the lines with words, each with its translation into a language."""
        texts = (self.texts or {}).get(language, {})
        for line in lines:
            if line.has_words and line.text in texts:
                # Its variables are those of the line, whose problems the suite has already.
                filled = interpolate(Document("", texts[line.text]), reading)
                yield line, TranslatedLine(filled.value, filled.written.get(()))

    def change(self, lines: Sequence[FixedLine], language: str) -> bool:
        """Return whether one of the lines is another one in a language."""
        texts = (self.texts or {}).get(language, {})
        for line in lines:
            text = texts.get(line.text, line.text)
            if line.has_words and text.strip() != line.text.strip() and not is_untranslated(line.text, text):
                return True
        return False


def translations_of(tests: Sequence[TestLines], document: Document, reading: Reading) -> Translations:
    """Return the translations that the tests of a suite need."""
    if isinstance(reading.read_beside, LinesToTranslate):
        reading.read_beside.tests += tests
        return Translations()
    needed = [test for test in tests if test.languages]
    if not any(line for test in needed for line in test.to_translate()):
        return Translations(texts={})
    try:
        lock, doubts = _lock_of(document, reading)
    except SuiteError as error:
        return Translations(problems=error.problems)
    except UsageError as error:
        return Translations(problems=[document.problem(("languages",), str(error))])
    cure = how_to_translate(document.file)
    problems = [
        document.problem(
            path, f"{short(line.text)!r} has no translation into {numbers.listed(missing, 5)}; {cure}"
        )
        for path, line, missing in _missing(needed, lock)
    ]
    unneeded = count_unneeded(needed, lock)
    warnings = [*doubts]
    if unneeded:
        too_many = numbers.count(unneeded, "translation")
        message = f"{lock_path(document.file)} has {too_many} that no test needs; {cure}"
        warnings.append(document.problem(("languages",), message))
    texts = {
        language: {entry.line: entry.text for entry in entries}
        for language, entries in lock.translations.items()
    }
    return Translations(texts, problems, warnings)


def _lock_of(document: Document, reading: Reading) -> "LockContent":
    """Return the lock file of a suite.

    Raises:
        UsageError: it cannot be read, or a translation in it cannot be used.
    """
    from ci_evals.extensions.personas.lock_file import read_lock  # noqa: PLC0415  # few suites have one

    if reading.read_beside is None or not has_file(document):
        raise UsageError(
            "this suite was not read from a file, so it has no lock file with translations; save it as a file"
        )
    name = lock_name(document.file)
    try:
        text = reading.read_beside(name)
    except UsageError as error:
        cure = how_to_translate(document.file)
        raise UsageError(f"the lock file {name!r} {error}; {cure}") from None
    return read_lock(text, lock_path(document.file))


def _missing(tests: Sequence[TestLines], lock: "LockFile") -> Iterator[tuple[Path, FixedLine, list[str]]]:
    known = {language: lock.by_line(language) for test in tests for language in test.languages}
    for test in tests:
        for path, line in test.to_translate():
            missing = [language for language in test.languages if line.text not in known[language]]
            if missing:
                yield path, line, missing


def needed_by_language(tests: Sequence[TestLines]) -> dict[str, list[str]]:
    """Return the lines that are needed in each language, each once, in their order."""
    needed: dict[str, dict[str, None]] = {}
    for test in tests:
        for language in test.languages:
            lines = needed.setdefault(language, {})
            lines.update({line.text: None for _, line in test.to_translate()})
    return {language: [*lines] for language, lines in needed.items()}


def count_unneeded(tests: Sequence[TestLines], lock: "LockFile") -> int:
    """Return how many translations no test needs."""
    needed = needed_by_language(tests)
    return sum(
        entry.line not in needed.get(language, ())
        for language, entries in lock.translations.items()
        for entry in entries
    )
