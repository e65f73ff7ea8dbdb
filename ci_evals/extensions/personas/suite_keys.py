"""The keys `personas` and `personaMatrix`: each test also with each of its personas."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import Suite, Test
from ci_evals.extensions.personas.traits import TRAITS, in_language, instructions
from ci_evals.planning.documents.document import Path, short
from ci_evals.planning.suite_keys import Expansion, WrittenSuite
from ci_evals.planning.validation import nearest

PERSONA_TAG = "persona:"
"""The beginning of the tag of a persona's tests."""
LANGUAGE_TAG = "language:"
"""The same of a persona with a language."""
_LONGEST_NAME = 40
_NOT_IN_NAMES = frozenset("(),\n\r\t")


def _is_trait(name: str) -> str:
    if name not in TRAITS:
        raise ValueError(f"is not a trait{nearest(name, [*TRAITS])}")
    return name


TraitName = Annotated[str, AfterValidator(_is_trait), WithJsonSchema({"enum": [*TRAITS]})]


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


class Persona(Model):
    """A user who makes a test harder."""

    traits: tuple[TraitName, ...] = Field(
        default=(), description=f"How this user acts: {', '.join(f'`{name}`' for name in TRAITS)}."
    )
    language: LanguageCode | None = Field(
        default=None,
        description="The language in which this user writes, such as `de` or `pt-BR`. Only for tests without "
        "fixed lines.",
    )
    note: NonBlank | None = Field(
        default=None, description="More about this user, in your own words, for the simulated user."
    )

    @property
    def harder_by(self) -> tuple[str, ...]:
        """The traits and the language, by which two personas can be compared."""
        language = (f"language {self.language}",) if self.language else ()
        return (*self.traits, *language)


class SUITE_KEYS(Model):  # noqa: N801  # the name of a part of an extension
    """Keys of a suite."""

    personas: dict[str, Persona] = Field(
        default_factory=dict, description="Users who make tests harder, by name, for `personas` of tests."
    )
    persona_matrix: bool = Field(
        default=False, description="Whether each test is also played with each persona of the suite."
    )


class TEST_KEYS(Model):  # noqa: N801  # likewise
    """Keys of a test."""

    personas: tuple[NonBlank, ...] = Field(
        default=(),
        description="Personas of the suite with which the test is played too, each as a separate test: "
        "`Refund (impatient)`.",
    )


def expand(written: WrittenSuite) -> Expansion:
    """Return each test as it is written, and after it the same test with each of its personas."""
    expander = _Expander(written)
    tests = tuple(expander.tests())
    return Expansion(tests, tuple(expander.problems), tuple(expander.warnings), expander.users)


@dataclass
class _Expander:
    written: WrittenSuite
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    users: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def tests(self) -> Iterator[tuple[int, Test]]:
        suite, personas = self.written.suite, self.written.keys.personas
        self._check_personas()
        places = {test.name: index for index, test in enumerate(suite.tests)}
        for index, test in enumerate(suite.tests):
            names = self._personas_of(index, test)
            if not names:
                yield index, test
                continue
            cluster = test.cluster or f"{suite.name}: {test.name}"
            yield index, test.copy_with(cluster=cluster)
            for name in names:
                variant = _with_persona(test, name, personas[name], cluster)
                if variant.name in places:
                    message = (
                        f"{short(variant.name)!r} is the name of {short(test.name)!r} with the persona "
                        f"{short(name)!r}; rename the test or the persona"
                    )
                    self._problem(("tests", places[variant.name], "name"), message)
                self.users[variant.name] = personas[name].harder_by
                yield index, variant

    def _check_personas(self) -> None:
        keys = self.written.keys
        if keys.persona_matrix and not keys.personas:
            self._problem(("personaMatrix",), "needs 'personas', which this suite does not have")
        named = {name for test in self.written.test_keys for name in test.personas}
        for name, persona in keys.personas.items():
            path: Path = ("personas", name)
            if not name.strip() or len(name) > _LONGEST_NAME or not _NOT_IN_NAMES.isdisjoint(name):
                rule = f"use up to {_LONGEST_NAME} characters, without parentheses, commas and line breaks"
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
        message = f"has fixed lines, which {short(name)!r} would not say in the language {language}"
        if name in own:
            path: Path = ("tests", index, "personas", own.index(name))
            self._problem(path, f"{message}; write a test with its lines, or make them 'auto'")
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


def _user_speaks(suite: Suite, test: Test) -> bool:
    """Return whether the simulated user may write a message of the test."""
    return any(turn.auto for turn in suite.turns_of(test))


def _with_persona(test: Test, name: str, persona: Persona, cluster: str) -> Test:
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
        cluster=cluster,
        audit_user=test.audit_user or audited,
    )
