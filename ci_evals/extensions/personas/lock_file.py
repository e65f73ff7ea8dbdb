"""The lock file of a suite: the translations of its fixed lines, which people review and may correct.

```yaml
translations:
  de:
    - line: I want the money for order 4812 back.
      text: Ich möchte das Geld für Bestellung 4812 zurück.
      model: gpt-6.1-terra
      made: "2026-11-29"
```
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import PurePath
from typing import NamedTuple

from pydantic import Field, ValidationError

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.extension_support.suite_writing import write
from ci_evals.extensions.personas.fixed_lines import (
    LanguageCode,
    is_untranslated,
    no_message,
    placeholders,
)
from ci_evals.planning.documents.document import Document, Path, short
from ci_evals.planning.documents.reader import read
from ci_evals.planning.validation import problems_in
from ci_evals.support.redaction import Redactor

_MOST_PROBLEMS = 10
"""Problems of one lock file that are shown."""


class Translation(Model):
    """A line in another language."""

    line: NonBlank
    """As it stands in the suite."""
    text: NonBlank
    model: NonBlank | None = None
    """The model that translated it; None if a person did."""
    made: date | None = None


class LockFile(Model):
    """All translations of a suite, by language."""

    translations: dict[LanguageCode, tuple[Translation, ...]] = Field(default_factory=dict)

    def by_line(self, language: str) -> Mapping[str, Translation]:
        """Return the translations into a language by their lines."""
        return {entry.line: entry for entry in self.translations.get(language, ())}


class LockContent(NamedTuple):
    """A lock file, and what is doubtful in it."""

    lock: LockFile
    warnings: tuple[Problem, ...]


def read_lock(text: str, file: str) -> LockContent:
    """Read a lock file.

    Raises:
        SuiteError: it is none, or a translation in it cannot be used.
    """
    document = read(text, file)
    problems: list[Problem] = [*document.problems]
    try:
        lock = LockFile.model_validate_json(
            json.dumps(document.value), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        problems += problems_in(document, document.value, error, redactor=Redactor(), root=LockFile)
    else:
        problems += islice(_unusable(lock, document), _MOST_PROBLEMS)
    if problems:
        raise SuiteError(problems[:_MOST_PROBLEMS])
    return LockContent(lock, tuple(islice(_untranslated(lock, document), _MOST_PROBLEMS)))


def fault_in(line: str, text: str) -> str | None:
    """Return why a text cannot stand for a line; None if it can."""
    if fault := no_message(text):
        return fault
    wanted, found = placeholders(line), placeholders(text)
    for name in wanted:
        if found.count(name) < wanted.count(name):
            return f"has lost {short(name)!r}"
    for name in found:
        if found.count(name) > wanted.count(name):
            return f"has {short(name)!r}, which the line does not have"
    return None


def _unusable(lock: LockFile, document: Document) -> Iterator[Problem]:
    for language, entries in lock.translations.items():
        seen: set[str] = set()
        for number, entry in enumerate(entries):
            path: Path = ("translations", language, number)
            if entry.line in seen:
                yield document.problem((*path, "line"), f"{short(entry.line)!r} has two translations")
            seen.add(entry.line)
            if fault := fault_in(entry.line, entry.text):
                yield document.problem(
                    (*path, "text"), f"the translation of {short(entry.line)!r} {fault}; correct it"
                )


def _untranslated(lock: LockFile, document: Document) -> Iterator[Problem]:
    for language, entries in lock.translations.items():
        for number, entry in enumerate(entries):
            if is_untranslated(entry.line, entry.text):
                message = f"the translation of {short(entry.line)!r} has the same words; correct it"
                yield document.problem(("translations", language, number, "text"), message)


def lock_text(translations: Mapping[str, Sequence[Translation]], suite: str) -> str:
    """Return the text of the lock file of a suite."""
    comment = (
        f"Translations of the fixed lines of {PurePath(suite).name}, made by `ci-evals personas translate`.\n"
        "Review them, and correct them here: a correction stays until its line changes."
    )
    by_language = {
        language: [entry.model_dump(mode="json", by_alias=True, exclude_none=True) for entry in entries]
        for language, entries in translations.items()
    }
    return write({"translations": by_language}, "lock.yaml", comment=comment)
