"""The suite that is made of a foreign file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.suite import MOST_TURNS
from ci_evals.extension_support.drafting.draft import ANSWERS, short_name
from ci_evals.extension_support.suite_writing import literal, write
from ci_evals.planning.documents.document import Path
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.support.json_text import JsonObject


@dataclass
class ImportedSuite:
    """Tests out of a foreign file, and notes on what was left out."""

    name: str
    tests: list[JsonObject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Fields that were left out or need a hand, a line each."""
    fields: JsonObject = field(default_factory=dict)
    """More of the suite."""
    comment: str = ""
    """More of the comment at the beginning of the suite."""

    left_out: list[str] = field(default_factory=list)
    """Those notes that name a test which is not imported."""
    _left: set[str] = field(default_factory=set, repr=False)

    def leave(self, location: str, name: str, reason: str = "it has no counterpart") -> None:
        """Note that a field of the file is not imported: once for each name, with its first position."""
        if name not in self._left:
            self._left.add(name)
            self.notes.append(f"{location}: {name}: {reason}")

    def note(self, problem: Problem) -> None:
        """Note a problem of the file that leaves no test out; once, if many tests have it."""
        note = str(problem)
        if note not in self._left:
            self._left.add(note)
            self.notes.append(note)

    def leave_out(self, problem: Problem) -> None:
        """Note a test that is not imported, and why."""
        self.notes.append(f"{problem} (left out)")
        self.left_out.append(self.notes[-1])

    def other_notes(self) -> list[str]:
        """Return the notes on tests that are imported, and on the file."""
        left_out = set(self.left_out)
        return [note for note in self.notes if note not in left_out]

    @contextmanager
    def leaving_out(self) -> Iterator[None]:
        """Leave out the test that is made in the block if it is not valid."""
        try:
            yield
        except SuiteError as error:
            for problem in error.problems:
                self.leave_out(problem)

    def add(
        self, name: str, test: JsonObject, place: Problem, notes: Mapping[Path, str] | None = None
    ) -> None:
        """Add the test at a place of the file; a name that is taken or empty is changed.

        `notes` are for people, by their path within the test.
        """
        name = short_name(name) or f"Test {len(self.tests) + 1}"
        unique = name
        while unique in self._numbers:
            self._numbers[name] += 1
            unique = f"{name} ({self._numbers[name]})"
        self._numbers[unique] = 1
        self.tests.append({"name": unique} | test)
        self._places.append(place)
        self._notes.append(notes or {})

    def test_notes(self) -> dict[Path, str]:
        """Return the notes on the tests, by their path in the suite."""
        return {
            ("tests", index, *path): text
            for index, notes in enumerate(self._notes)
            for path, text in notes.items()
        }

    _numbers: dict[str, int] = field(default_factory=dict, repr=False)
    """The number of the last test of each name that was taken."""
    _places: list[Problem] = field(default_factory=list, repr=False)
    """The place of each test in the file."""
    _notes: list[Mapping[Path, str]] = field(default_factory=list, repr=False)

    def unchecked(self) -> list[str]:
        """Return the names of the tests that check nothing but that the agent answers."""
        return [test["name"] for test in self.tests if test["evaluations"] == [ANSWERS]]

    def reject(self, problems: Sequence[Problem]) -> bool:
        """Leave out the tests in which the suite's own reader found these problems; return whether any is."""
        reasons: dict[int, Problem] = {}
        for problem in problems:
            if found := _TEST.match(problem.path):
                reasons.setdefault(int(found[1]), replace(problem, path=problem.path[found.end() :]))
        for index, problem in sorted(reasons.items()):
            key = f"{problem.path}: " if problem.path else ""
            message = f"the test {self.tests[index]['name']!r} is not valid: {key}{problem.message}"
            self.leave_out(replace(self._places[index], message=message))
        self.tests = [test for index, test in enumerate(self.tests) if index not in reasons]
        self._places = [place for index, place in enumerate(self._places) if index not in reasons]
        self._notes = [notes for index, notes in enumerate(self._notes) if index not in reasons]
        return bool(reasons)


_TEST = re.compile(r"tests\[(\d+)\]\.?")
_MOST_ROUNDS = 10
"""The most readings of a suite: each leaves out the tests with problems that the one before it found."""
_MOST_REASONS = 20
"""The most reasons in the refusal of a file of which nothing is left."""


def suite_text(
    imported: ImportedSuite,
    kind: str,
    source: str,
    output: str,
    plugins: frozenset[str] = frozenset(),
) -> str:
    """The suite as a file called `output` holds it; our own reader has read it.

    Tests that this reader refuses are left out of `imported`. `plugins` are names of adapters that it knows
    besides the built-in ones.

    Raises:
        UsageError: nothing is left, with the reasons; or the rest of the suite is not valid.
    """
    if not imported.tests:
        raise UsageError(f"{source}: contains nothing that can become a test{_reasons(imported)}")
    problems: Sequence[Problem] = ()
    for _ in range(_MOST_ROUNDS):
        text = _written(imported, kind, source, output)
        try:
            load(text, output, Reading(plugins=plugins))
        except SuiteError as error:
            problems = error.problems
        else:
            return text
        if not imported.reject(problems) or not imported.tests:
            break
    listed = "\n".join(f"{problem.path}: {problem.message}" for problem in problems[:5])
    reasons = f"\n{listed}" if imported.tests else _reasons(imported)
    raise UsageError(f"{source}: its content is not a valid suite{reasons}")


def _reasons(imported: ImportedSuite) -> str:
    """Return the notes on what was left out, and the others after them, for a message."""
    notes = [*imported.left_out, *imported.other_notes()]
    more = [f"and {len(notes) - _MOST_REASONS} more"] if len(notes) > _MOST_REASONS else []
    lines = "".join(f"\n  {note}" for note in [*notes[:_MOST_REASONS], *more])
    return f":{lines}" if lines else ""


def _written(imported: ImportedSuite, kind: str, source: str, output: str) -> str:
    origin = {"format": kind, "file": PurePath(source).name}
    head: JsonObject = {"name": imported.name.strip() or PurePath(source).stem, "x-imported-from": origin}
    suite = literal(head | imported.fields | {"tests": imported.tests})
    comment = (
        "Imported by ci-evals. The agent is not part of it: name it here (adapter, agentId, baseUrl)\n"
        "or by options (--adapter, --agent-id, --base-url). Then: ci-evals validate --strict\n"
        f"{imported.comment}"
    )
    return write(suite, output, comment=comment, notes=imported.test_notes())


def turns_at_most(turns: int) -> int:
    """The number of turns, as far as a suite may have so many."""
    return max(1, min(turns, MOST_TURNS))
