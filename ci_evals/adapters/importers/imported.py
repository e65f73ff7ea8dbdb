"""The tests of a foreign file, and the suite that is made of them."""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.suite import AUTO, MOST_TURNS
from ci_evals.planning.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.writing import literal, write

MOST_TESTS = 10_000
LONGEST_NAME = 80

JsonObject = dict[str, Any]
"""An object of a suite or of a foreign file."""

SAYS_ITS_LINES = "You say the planned lines and nothing else."
"""Guidelines of a test whose lines are all fixed."""

ANSWERS: JsonObject = {"criterion": "The agent answers", "strict": "regex", "pattern": r"\S"}
"""The check of a test for which the foreign file has none; it suits any agent that answers in text."""


@dataclass
class ImportedSuite:
    """Tests out of a foreign file, and notes on what was left out."""

    name: str
    tests: list[JsonObject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Fields that were left out or need a hand, a line each."""
    fields: JsonObject = field(default_factory=dict)
    """More of the suite."""

    def leave(self, location: str, name: str, reason: str = "nothing here is like it") -> None:
        """Note that a field of the file is not imported: once for each name, with its first position."""
        if name not in self._left:
            self._left.add(name)
            self.notes.append(f"{location}: {name}: {reason}")

    _left: set[str] = field(default_factory=set, repr=False)

    def add(self, name: str, test: JsonObject) -> None:
        """Add a test; a name that is taken or empty is changed."""
        name = cut(name) or f"Test {len(self.tests) + 1}"
        unique = name
        while unique in self._numbers:
            self._numbers[name] += 1
            unique = f"{name} ({self._numbers[name]})"
        self._numbers[unique] = 1
        self.tests.append({"name": unique} | test)

    _numbers: dict[str, int] = field(default_factory=dict, repr=False)
    """The number of the last test of each name that was taken."""


def suite_text(imported: ImportedSuite, kind: str, source: str, output: str) -> str:
    """The suite as a file called `output` holds it; our own reader has read it.

    Raises:
        UsageError: nothing was imported, or it would be no suite.
    """
    if not imported.tests:
        raise UsageError(f"{source}: holds nothing that can be a test")
    origin = {"format": kind, "file": PurePath(source).name}
    head: JsonObject = {"name": imported.name.strip() or PurePath(source).stem, "x-imported-from": origin}
    suite = literal(head | imported.fields | {"tests": imported.tests})
    comment = (
        "Imported by ci-evals. The agent is not part of it: name it here (adapter, agentId, baseUrl)\n"
        "or by options (--adapter, --agent-id, --base-url). Then: ci-evals validate --strict"
    )
    text = write(suite, output, comment=comment)
    try:
        load(text, output, Reading())
    except SuiteError as error:
        problems = "\n".join(f"{problem.path}: {problem.message}" for problem in error.problems[:5])
        raise UsageError(f"{source}: what it holds would be no suite:\n{problems}") from error
    return text


def cut(text: str) -> str:
    """The first words of a text, for a name."""
    text = " ".join(text.split())
    if len(text) <= LONGEST_NAME:
        return text
    return text[: LONGEST_NAME - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def fixed(line: str) -> JsonObject:
    """A turn that says this line, also where it is the word that stands for the simulated user."""
    return {"user": f"{line}." if line == AUTO else line}


def turns_at_most(turns: int) -> int:
    """The number of turns, as far as a suite may have so many."""
    return max(1, min(turns, MOST_TURNS))
