"""The keys `personas`, `personaMatrix` and `languages`: each test also with its personas and languages."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.canaries import referred
from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import GivenReply, Line, Suite, Test
from ci_evals.extensions.personas.fixed_lines import (
    LanguageCode,
    TestLines,
    fixed_lines,
    lock_path,
    no_message,
    test_as_written,
)
from ci_evals.extensions.personas.traits import TRAITS, in_language, instructions
from ci_evals.extensions.personas.translations import Translations, translations_of
from ci_evals.extensions.personas.word_checks import word_checks
from ci_evals.planning.documents.document import Path, short
from ci_evals.planning.suite_keys import Expansion, WrittenSuite
from ci_evals.planning.validation import nearest

if TYPE_CHECKING:
    from ci_evals.domain.results.suite import TestResult

PERSONA_TAG = "persona:"
"""The beginning of the tag of a persona's tests."""
LANGUAGE_TAG = "language:"
"""The same of the tests in a language."""
_LONGEST_NAME = 40
_NOT_IN_NAMES = frozenset("(),")
_MOST = 100
"""Personas and languages that a suite or a test may have."""


def _is_trait(name: str) -> str:
    if name not in TRAITS:
        raise ValueError(f"is not a trait{nearest(name, [*TRAITS])}")
    return name


TraitName = Annotated[str, AfterValidator(_is_trait), WithJsonSchema({"enum": [*TRAITS]})]


class Persona(Model):
    """A user who makes a test harder."""

    traits: tuple[TraitName, ...] = Field(
        default=(),
        max_length=len(TRAITS),
        description=f"How this user acts: {', '.join(f'`{name}`' for name in TRAITS)}.",
    )
    language: LanguageCode | None = Field(
        default=None,
        description="The language in which this user writes, such as `de` or `pt-BR`. For tests without "
        "fixed lines, or if `languages` has it too.",
    )
    note: NonBlank | None = Field(
        default=None, description="More about this user, in your own words, for the simulated user."
    )

    @property
    def harder_by(self) -> tuple[str, ...]:
        """The traits and the language, by which two personas can be compared."""
        return (*self.traits, *(_harder_by(self.language) if self.language else ()))


class SUITE_KEYS(Model):  # noqa: N801  # the name of a part of an extension
    """Keys of a suite."""

    personas: dict[str, Persona] = Field(
        default_factory=dict,
        max_length=_MOST,
        description="Users who make tests harder, by name, for `personas` of tests.",
    )
    persona_matrix: bool = Field(
        default=False, description="Whether each test is also played with each persona of the suite."
    )
    languages: tuple[LanguageCode, ...] = Field(
        default=(),
        max_length=_MOST,
        description="Languages in which each test is played too, each as a separate test: `Refund (de)`. The "
        "translations of its fixed lines stand in the suite's lock file.",
    )


class TEST_KEYS(Model):  # noqa: N801  # likewise
    """Keys of a test."""

    personas: tuple[NonBlank, ...] = Field(
        default=(),
        max_length=_MOST,
        description="Personas of the suite with which the test is played too, each as a separate test: "
        "`Refund (impatient)`.",
    )
    languages: tuple[LanguageCode, ...] | None = Field(
        default=None,
        max_length=_MOST,
        description="The languages of this test, instead of the suite's; `[]` for none.",
    )


def expand(written: WrittenSuite) -> Expansion:
    """Return each test as it is written, and after it the same with each of its personas and languages."""
    lines = [*_lines_of(written)]
    translations = translations_of(lines, written.document, written.reading)
    expander = _Expander(written, lines, translations)
    tests = tuple(expander.tests())
    return Expansion(
        tests,
        (*expander.problems, *translations.problems),
        (*expander.warnings, *translations.warnings),
        expander.users,
        expander.written_lines,
    )


def _lines_of(written: WrittenSuite) -> Iterator[TestLines]:
    """Yield the fixed lines of each test, with its languages."""
    for index, test in enumerate(written.suite.tests):
        own = written.test_keys[index].languages
        languages = written.keys.languages if own is None else own
        lines = fixed_lines(test, test_as_written(written.document, index)) if languages else ()
        yield TestLines(test.name, index, lines, tuple(dict.fromkeys(languages)))


@dataclass(frozen=True)
class _Variant:
    """A test with another user than it is written for."""

    test: Test
    kind: str
    """The key that adds it, in the singular."""
    name: str
    harder_by: tuple[str, ...]


@dataclass
class _Expander:
    written: WrittenSuite
    lines: Sequence[TestLines]
    translations: Translations
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    users: dict[str, tuple[str, ...]] = field(default_factory=dict)
    written_lines: dict[str, dict[Path, str]] = field(default_factory=dict)
    """The translated lines with secrets as they are written, by the name of a test and their places in it."""

    def tests(self) -> Iterator[tuple[int, Test]]:
        suite = self.written.suite
        self._check_personas()
        self._check_languages()
        owners = {test.name: index for index, test in enumerate(suite.tests)}
        for index, test in enumerate(suite.tests):
            self._check_tags(index, test)
            cluster = test.cluster or f"{suite.name}: {test.name}"
            variants = [*self._variants(index, test.copy_with(cluster=cluster))]
            if not variants:
                yield index, test
                continue
            yield index, test.copy_with(cluster=cluster)
            for variant in variants:
                self._check_name(variant, test, owners)
                owners.setdefault(variant.test.name, index)
                self.users[variant.test.name] = variant.harder_by
                yield index, variant.test

    def _variants(self, index: int, test: Test) -> Iterator[_Variant]:
        """Yield the test with each of its personas, and in each of its languages."""
        languages: dict[str, None] = {}
        for name in self._personas_of(index, test):
            persona = self.written.keys.personas[name]
            self._check_canaries(name, persona, test)
            variant = _with_persona(test, name, persona)
            if persona.language:
                languages[persona.language] = None
                variant = self._translated(index, variant, persona.language)
            yield _Variant(variant, "persona", name, persona.harder_by)
        for code in self._languages_of(index, test):
            languages[code] = None
            speaks = _user_speaks(self.written.suite, test)
            variant = self._translated(index, _with_language(test, code, user_speaks=speaks), code)
            yield _Variant(variant, "language", code, _harder_by(code))
        self._warn_of_words(index, test, languages)

    def _languages_of(self, index: int, test: Test) -> Iterator[str]:
        """Yield the languages that change the test."""
        if self.translations.texts is None:
            return
        speaks = _user_speaks(self.written.suite, test)
        for code in self.lines[index].languages:
            if speaks or self.translations.change(self.lines[index].lines, code):
                yield code
            else:
                message = f"has the same messages in {code}. It is not played in this language."
                self._warn(("tests", index), message)

    def _translated(self, index: int, variant: Test, language: str) -> Test:
        """Return a variant of a test with its fixed lines in one of the test's languages."""
        if language not in self.lines[index].languages:
            return variant
        turns = [*variant.turns]
        lines = self.lines[index].lines
        for line, translated in self.translations.lines(lines, language, self.written.reading):
            place: Path = ("turns", line.turn, line.key)
            if fault := no_message(translated.text):
                cure = f"correct it in {lock_path(self.written.document.file)}"
                message = f"its translation into {language} {fault}; {cure}"
                self._problem(("tests", index, *place), message)
                continue
            turns[line.turn] = _with_text(turns[line.turn], translated.text)
            if translated.written is not None:
                self.written_lines.setdefault(variant.name, {})[place] = translated.written
        return variant.copy_with(turns=tuple(turns))

    def _check_name(self, variant: _Variant, test: Test, owners: dict[str, int]) -> None:
        """Refuse a pair that has the name of another test."""
        name = variant.test.name
        if name not in owners:
            return
        message = (
            f"{short(name)!r} is the name of {short(test.name)!r} with the {variant.kind} "
            f"{short(variant.name)!r}; rename the test or the persona"
        )
        self._problem(("tests", owners[name], "name"), message)

    def _check_tags(self, index: int, test: Test) -> None:
        """Refuse tags by which scores and floors would take the test for one of a persona or a language."""
        for number, tag in enumerate(test.tags):
            if tag.startswith((PERSONA_TAG, LANGUAGE_TAG)):
                message = f"{short(tag)!r} is a tag of tests with personas or languages; use another"
                self._problem(("tests", index, "tags", number), message)

    def _check_canaries(self, name: str, persona: Persona, test: Test) -> None:
        """Refuse a note that refers to a canary which the test lacks."""
        for canary in referred(persona.note):
            if canary not in test.canaries:
                message = f"refers to the canary {short(canary)!r}, which {short(test.name)!r} does not have"
                self._problem(("personas", name, "note"), message)

    def _check_languages(self) -> None:
        """Refuse a language that is given twice."""
        given: list[tuple[Path, Sequence[str]]] = [(("languages",), self.written.keys.languages)]
        for index, keys in enumerate(self.written.test_keys):
            given.append((("tests", index, "languages"), keys.languages or ()))
        for path, codes in given:
            for number, code in enumerate(codes):
                if code in codes[:number]:
                    self._problem((*path, number), f"{code!r} is given twice; remove one")

    def _warn_of_words(self, index: int, test: Test, languages: Collection[str]) -> None:
        """Warn of checks whose words a reply in another language may not have."""
        for number, fault in word_checks(test.evaluations):
            if languages:
                into = ", ".join(languages)
                path: Path = ("tests", index, "evaluations", number)
                cure = "use a criterion for the judge, or 'languages: []' in this test"
                self._warn(path, fault.format(languages=into) + f"; {cure}")

    def _check_personas(self) -> None:
        keys = self.written.keys
        if keys.persona_matrix and not keys.personas:
            self._problem(("personaMatrix",), "needs 'personas', which this suite does not have")
        named = {name for test in self.written.test_keys for name in test.personas}
        for name, persona in keys.personas.items():
            path: Path = ("personas", name)
            if not _may_be_name(name):
                rule = (
                    f"use up to {_LONGEST_NAME} characters, without parentheses, commas, invisible signs and "
                    "blanks around them"
                )
                self._problem(path, f"{short(name)!r} cannot be a persona's name: {rule}")
            if not persona.traits and not persona.note and not persona.language:
                message = "has no 'traits', no 'language' and no 'note', so it would change nothing"
                self._problem(path, message)
            if not keys.persona_matrix and name not in named:
                message = "no test is played with this persona; name it in 'personas' of a test"
                self._warn(path, message)

    def _personas_of(self, index: int, test: Test) -> Sequence[str]:
        """Return the names of the test's personas that the suite has."""
        keys, own = self.written.keys, self.written.test_keys[index].personas
        for number, name in enumerate(own):
            if name not in keys.personas:
                hint = "; add it to 'personas' of the suite"
                if keys.personas:
                    hint = nearest(name, [*keys.personas])
                path: Path = ("tests", index, "personas", number)
                self._problem(path, f"{short(name)!r} is not a persona of this suite{hint}")
        names = [name for name in own if name in keys.personas]
        if keys.persona_matrix:
            names += keys.personas
        if names and not _user_speaks(self.written.suite, test):
            self._refuse_silent_user(index, own)
            return ()
        return [name for name in dict.fromkeys(names) if self._may_speak(name, index, own)]

    def _may_speak(self, name: str, index: int, own: Sequence[str]) -> bool:
        """Return whether the test has no fixed line that would be in another language."""
        language = self.written.keys.personas[name].language
        fixed = any(not turn.auto for turn in self.written.suite.tests[index].planned_turns)
        if language is None or not fixed:
            return True
        if language in self.lines[index].languages:
            return self.translations.texts is not None
        message = f"has fixed lines, which {short(name)!r} would not say in the language {language}"
        if name in own:
            path: Path = ("tests", index, "personas", own.index(name))
            cure = f"add {language} to 'languages' of the suite, or make the lines 'auto'"
            self._problem(path, f"{message}; {cure}")
        else:
            self._warn(("tests", index), f"{message}. It is played without this persona.")
        return False

    def _refuse_silent_user(self, index: int, own: Sequence[str]) -> None:
        message = (
            "all messages of this test are fixed, so a persona would change nothing; add a turn 'auto' "
            "or raise 'maxTurns'"
        )
        if own:
            self._problem(("tests", index, "personas"), message)
        else:
            path: Path = ("tests", index)
            self._warn(path, f"{message}. It is played without personas.")

    def _warn(self, path: Path, message: str) -> None:
        self.warnings.append(self.written.document.problem(path, message))

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(self.written.document.problem(path, message))


def has_other_user(test: "TestResult") -> bool:
    """Return whether a persona or a language of a suite made the test."""
    return test.cluster is not None and any(tag.startswith((PERSONA_TAG, LANGUAGE_TAG)) for tag in test.tags)


def _may_be_name(name: str) -> bool:
    """Return whether a persona's name can stand in names of tests and in options."""
    is_clean = name.isprintable() and name == name.strip() and _NOT_IN_NAMES.isdisjoint(name)
    return is_clean and 0 < len(name) <= _LONGEST_NAME


def _user_speaks(suite: Suite, test: Test) -> bool:
    """Return whether the simulated user may write a message of the test."""
    return any(turn.auto for turn in suite.turns_of(test))


def _with_text(turn: Line, text: str) -> Line:
    return turn.copy_with(assistant=text) if isinstance(turn, GivenReply) else turn.copy_with(user=text)


def _with_persona(test: Test, name: str, persona: Persona) -> Test:
    parts = [test.guidelines]
    if persona.traits:
        parts.append(instructions(persona.traits))
    tags = [*test.tags, f"{PERSONA_TAG}{name}"]
    if persona.language:
        parts.append(in_language(persona.language))
        tags.append(f"{LANGUAGE_TAG}{persona.language}")
    if persona.note:
        parts.append(persona.note)
    audited = any(TRAITS[trait].audited for trait in persona.traits)
    return test.copy_with(
        name=f"{test.name} ({name})",
        guidelines="\n\n".join(parts),
        tags=tuple(tags),
        audit_user=test.audit_user or audited,
    )


def _with_language(test: Test, code: str, *, user_speaks: bool) -> Test:
    guidelines = f"{test.guidelines}\n\n{in_language(code)}" if user_speaks else test.guidelines
    return test.copy_with(
        name=f"{test.name} ({code})", guidelines=guidelines, tags=(*test.tags, f"{LANGUAGE_TAG}{code}")
    )


def _harder_by(language: str) -> tuple[str, ...]:
    """Return how results name what a language adds to a user."""
    return (f"language {language}",)
