"""Plain data, with the position of each part in its file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci_evals.domain.errors import Problem, SuiteError

Path = tuple[str | int, ...]
"""The path to a value: `("tests", 2, "name")`."""

Position = tuple[int, int]
"""Line and column, both counted from 1."""

MAX_DEPTH = 60


_LONGEST_NAME = 60
TOO_LONG = "a number with thousands of digits"


def show(path: Path) -> str:
    """Return the path as people write it: `tests[2].evaluations[0].strict`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if text else short(step)
    return text


def short(name: str) -> str:
    """Return a key or name for a message; a hostile one can have millions of characters."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


@dataclass
class Document:
    """Plain data, and the positions of its values and keys."""

    file: str
    value: Any = None
    line: int | None = None
    """The only line, of a document that is one of many in its file."""
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    test_places: tuple[int, ...] | None = None
    """The place in the file of each test that is played; None if these are the tests of the file."""
    locate: Callable[["Document"], object] = lambda _: None
    """Finds the positions that a problem wants and nothing else does."""

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at `path`, or at the nearest parent that the file has."""
        self.locate(self)
        if self.test_places is not None and path[:1] == ("tests",) and len(path) > 1:
            path = ("tests", self.test_places[int(path[1])], *path[2:])
        positions: Mapping[Path, Position] = self.keys if at_key else self.values
        near = path
        while near and near not in positions:
            near, positions = near[:-1], self.values
        line, column = positions.get(near, (1, 1))
        return Problem(self.file, self.line or line, column, show(path), message)

    def note_key(self, path: Path, position: Position) -> None:
        """Remember the position of a key; a second one of the same path is a problem."""
        if path in self.keys:
            message = f"key given twice (first in line {self.keys[path][0]})"
            self.problems.append(Problem(self.file, *position, show(path), message))
        else:
            self.keys[path] = position


def refuse(document: Document, line: int, column: int, message: str) -> SuiteError:
    """Return the error for a text that cannot be read beyond this position."""
    return SuiteError([Problem(document.file, line, column, "", message)])
