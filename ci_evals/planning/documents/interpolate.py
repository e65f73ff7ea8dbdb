"""`${NAME}` in a suite's strings, replaced from the environment."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from ci_evals.domain.errors import Problem
from ci_evals.planning.documents.document import Document, Path
from ci_evals.support.redaction import MASK, MIN_LENGTH

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)\}")
_INSIDE = re.compile(r"(?P<plain>env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Reading:
    """All that the meaning of a suite's text depends on besides the text."""

    environ: Mapping[str, str] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()
    """Adapters that plug-ins add to the built-in ones."""
    replaced: frozenset[str] = frozenset()
    """Keys of a suite that options replace: their texts are not read."""
    may_lack: frozenset[str] = frozenset()
    """Keys of a suite whose variables may be unset, as in a pull request without secrets."""
    masked: bool = False
    """Read secrets and unset variables as `***`, as in a recording."""
    read_beside: Callable[[str], str] | None = None
    """Reads a file by its path from the suite's folder, or raises `UsageError` with a clause on the path."""
    folder: str | None = None
    """The suite's folder, in which its `start` runs; None if it has none, for the current one."""
    today: date | None = None
    """The day on which quarantines are checked; None where none is checked."""
    distrusted: str | None = None
    """The event in which suites may neither name endpoints nor read the environment (`in the event …`)."""


@dataclass
class Interpolated:
    """A document's data with every reference replaced."""

    value: Any = None
    secrets: set[str] = field(default_factory=set)
    """Values that came from the environment."""
    written: dict[Path, str] = field(default_factory=dict)
    """The strings with secrets as they are written, with the names of the variables, by their places."""
    unresolved: set[str] = field(default_factory=set)
    """References that stayed, since they are problems. A variable's name is no secret."""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


_NAMES = frozenset({"name", "category", "difficulty", "tags", "aui_logic"})
"""Keys whose values name things in every report: two redacted names look the same."""


def interpolate(document: Document, reading: Reading) -> Interpolated:
    """Replace `${NAME}`, `${NAME:-default}` and `${env:NAME}` (not secret) in all string values.

    `$${` stands for a literal `${`. A default is used if the name is unset or empty.
    """
    interpolation = _Interpolation(document, reading)
    interpolation.result.value = interpolation.value(document.value, ())
    return interpolation.result


def not_secret(document: Document) -> frozenset[str]:
    """Return the variables that a document reads as not secret (`${env:NAME}`)."""
    references = _REFERENCE.findall(json.dumps(document.value))
    parts = (_INSIDE.fullmatch(inside) for inside in references if inside)
    return frozenset(match["name"] for match in parts if match and match["plain"])


@dataclass
class _Interpolation:
    document: Document
    reading: Reading
    result: Interpolated = field(default_factory=Interpolated)

    def value(self, value: Any, path: Path) -> Any:
        match value:
            case str() if len(path) == 1 and path[0] in self.reading.replaced:
                return None
            case str() if "${" in value:
                return _REFERENCE.sub(lambda match: self._reference(match, path), value)
            case dict():
                return {key: self.value(item, (*path, key)) for key, item in value.items()}
            case list():
                return [self.value(item, (*path, i)) for i, item in enumerate(value)]
        return value

    def _reference(self, match: re.Match[str], path: Path) -> str:
        if match["inside"] is None:
            return "${"
        parts = _INSIDE.fullmatch(match["inside"])
        if parts is None:
            return self._problem(match[0], path, "is not a variable's name; write $${ for a literal ${")
        name, default = parts["name"], parts["default"]
        if self.reading.distrusted:
            message = f"a suite may not read the environment {self.reading.distrusted}"
            return self._problem(self._unresolved(parts), path, message)
        may_lack = len(path) == 1 and path[0] in self.reading.may_lack
        value = self.reading.environ.get(name, "" if may_lack else None)
        if default is not None and not value:
            return default
        if value is None and not self.reading.masked:
            hint = "set it"
            if path[-1:] != ("apiKey",):
                hint += f", or write a default: ${{{parts['plain'] or ''}{name}:-…}}"
            message = f"the environment variable {name} is not set; {hint}"
            return self._problem(self._unresolved(parts), path, message)
        secret = parts["plain"] is None
        if secret and (value or self.reading.masked):
            self.result.written[path] = match.string
        if secret and value:
            self._keep_secret(name, value, path)
        return self._shown(value or "", path, secret=secret)

    def _shown(self, value: str, path: Path, *, secret: bool) -> str:
        """Return the value, or the mask that a recording has in its place, escaped within a pattern."""
        kept = bool(value.strip()) and not (secret and len(value.strip()) >= MIN_LENGTH)
        if kept or not self.reading.masked:
            return value
        return re.escape(MASK) if path[-1:] == ("pattern",) else MASK

    def _keep_secret(self, name: str, value: str, path: Path) -> None:
        self.result.secrets.add(value)
        if "userInfo" not in path and not _NAMES.isdisjoint(path) and len(value.strip()) >= MIN_LENGTH:
            self._warn(
                path,
                f"the value of {name} is a secret and will show as ***; write ${{env:{name}}} if it is none",
            )
        if len(value.strip()) < MIN_LENGTH and path[-1:] != ("apiKey",):
            self._warn(
                path,
                f"the value of {name} has fewer than {MIN_LENGTH} characters and is not redacted; "
                f"write ${{env:{name}}} if it is no secret",
            )

    def _warn(self, path: Path, message: str) -> None:
        self.result.warnings.append(self.document.problem(path, message))

    def _unresolved(self, parts: re.Match[str]) -> str:
        """Return the reference by its name alone: its default may be a key."""
        reference = "${" + (parts["plain"] or "") + parts["name"] + "}"
        self.result.unresolved.add(reference)
        return reference

    def _problem(self, reference: str, path: Path, message: str) -> str:
        self.result.problems.append(self.document.problem(path, f"{reference}: {message}"))
        return reference
