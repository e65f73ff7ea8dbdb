"""The fixed lines of tests, which are translated once for each language that a test is played in."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import LOCK_ENDING
from ci_evals.domain.suite import AUTO, GivenReply, Test
from ci_evals.planning.documents.document import Document, Path
from ci_evals.support.text import bare, is_blank

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language as BCP 47 names it."""


def _is_language(code: str) -> str:
    if not _LANGUAGE.fullmatch(code):
        raise ValueError("is not the code of a language, such as de or pt-BR")
    return code


LanguageCode = Annotated[
    str,
    AfterValidator(_is_language),
    WithJsonSchema({"type": "string", "pattern": f"^{_LANGUAGE.pattern}$"}),
]

_VARIABLE = re.compile(r"\$\$\{|\$\{[^}]*\}")
"""A variable of the environment, as `planning.documents.interpolate` reads it."""
_NAME = re.compile(r"\{\{[^{}]*\}\}")


def placeholders(text: str) -> list[str]:
    """Return all `${NAME}` and `{{name}}` in a text, sorted: a translation has the same."""
    return sorted([*_VARIABLE.findall(text), *_NAME.findall(text)])


def words_of(text: str) -> list[str]:
    """Return the words with letters in a text, without its placeholders."""
    plain = _NAME.sub(" ", _VARIABLE.sub(" ", text))
    return [word for word in bare(plain).split() if any(map(str.isalpha, word))]


def no_message(text: str) -> str | None:
    """Return why a text cannot be a message of its own; None if it can."""
    if is_blank(text):
        return "has no visible character"
    if text.strip() == AUTO:
        return f"would be a message of the simulated user ({AUTO})"
    return None


_LEAST_WORDS = 3
"""Words from which a line is never the same in another language."""


def is_untranslated(line: str, text: str) -> bool:
    """Return whether the translation of a line with several words has the same ones."""
    before, after = ([word.casefold() for word in words_of(each)] for each in (line, text))
    return len(before) >= _LEAST_WORDS and before == after


@dataclass(frozen=True)
class FixedLine:
    """A text of `turns` that is sent, or stands in the history, as it is written."""

    text: str
    """As it stands in the file: variables of the environment by their names."""
    turn: int
    """Its index in `turns`."""
    key: str
    """`user`, or `assistant` for a reply that the agent finds in its history."""

    @property
    def has_words(self) -> bool:
        """True if there is something to translate: not only numbers, signs and placeholders."""
        return bool(words_of(self.text))


@dataclass(frozen=True)
class TestLines:
    """The fixed lines of a test, and the languages that they are needed in."""

    __test__ = False
    name: str
    index: int
    """Its place among the tests that the suite writes."""
    lines: tuple[FixedLine, ...]
    languages: Sequence[str]

    def to_translate(self) -> Iterator[tuple[Path, FixedLine]]:
        """Yield the lines that have words, with their paths among the tests of the suite."""
        for line in self.lines:
            if line.has_words:
                yield ("tests", self.index, "turns", line.turn, line.key), line


def fixed_lines(test: Test, written: Mapping[str, Any]) -> tuple[FixedLine, ...]:
    """Return the fixed lines of a test, whose text in the file is `written`."""
    lines = []
    for number, turn in enumerate(test.turns):
        key = "assistant" if isinstance(turn, GivenReply) else "user"
        if isinstance(turn, GivenReply) or not turn.auto:
            lines.append(FixedLine(str(written["turns"][number][key]), number, key))
    return tuple(lines)


def test_as_written(document: Document, index: int) -> Mapping[str, Any]:
    """Return a test of a valid suite as it stands in the file, with variables by their names."""
    place = index if document.test_places is None else document.test_places[index]
    test: Mapping[str, Any] = document.value["tests"][place]
    return test


def has_file(document: Document) -> bool:
    """Return whether a suite was read from a file, whose ending says in which format."""
    return PurePath(document.file).suffix.lower() in ENDINGS


def lock_name(file: str) -> str:
    """Return the name of the lock file of a suite, which lies beside it."""
    return PurePath(file).with_suffix(LOCK_ENDING).name


def lock_path(file: str) -> str:
    """Return the same with the folder, for messages."""
    return PurePath(file).with_suffix(LOCK_ENDING).as_posix()


def how_to_translate(file: str) -> str:
    """Return the command that translates the lines of a suite, as an instruction."""
    return f"run `ci-evals personas translate {shlex.quote(file)}`"


@dataclass
class LinesToTranslate:
    """Stands for `read_beside` where a suite is read to be translated.

    No translation is missing then: the suite is read without the tests that would need one, and their lines
    are noted here.
    """

    read: Callable[[str], str]
    tests: list[TestLines] = field(default_factory=list)

    def __call__(self, name: str) -> str:
        """Read another file beside the suite."""
        return self.read(name)
