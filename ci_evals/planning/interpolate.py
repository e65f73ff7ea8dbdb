"""`${NAME}` in a suite's strings, replaced from the environment."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci_evals.domain.errors import Problem
from ci_evals.planning.document import Document, Path, show
from ci_evals.support.redaction import MASK, MIN_LENGTH

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)\}")
_INSIDE = re.compile(r"(?P<plain>env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


@dataclass
class Interpolated:
    """A document's data with every reference replaced."""

    value: Any = None
    secrets: set[str] = field(default_factory=set)
    """Values that came from the environment."""
    unresolved: set[str] = field(default_factory=set)
    """References that stayed as they were, since they are problems. A variable's name is no secret."""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


_NAMES = frozenset({"name", "category", "difficulty", "tags", "aui_logic"})
"""Keys whose values name things in every report: two names that are taken out look the same."""


def interpolate(
    document: Document,
    environ: Mapping[str, str],
    *,
    refused_because: str | None,
    replaced: Collection[str] = (),
    may_lack: Collection[str] = (),
    masked: bool = False,
) -> Interpolated:
    """Replaces `${NAME}`, `${NAME:-default}` and `${env:NAME}` (not secret) in all string values.

    `$${` stands for a literal `${`. A default is used where the name is unset or empty. With
    `refused_because`, every reference is a problem with that reason. Texts under the keys `replaced` are
    dropped unread: something else stands in for them. Under `may_lack` a name that is unset is an empty one.
    `masked` puts `***` in place of every secret, and of every name that is unset: as recordings have them.
    """
    interpolation = _Interpolation(document, environ, refused_because)
    interpolation.replaced |= {(key,) for key in replaced}
    interpolation.may_lack |= {(key,) for key in may_lack}
    interpolation.masked = masked
    interpolation.fill()
    return interpolation.result


def not_secret(document: Document) -> frozenset[str]:
    """The variables that a document takes as what is no secret (`${env:NAME}`)."""
    said = (_INSIDE.fullmatch(inside) for inside in _REFERENCE.findall(json.dumps(document.value)) if inside)
    return frozenset(parts["name"] for parts in said if parts and parts["plain"])


class _Interpolation:
    def __init__(self, document: Document, environ: Mapping[str, str], refused_because: str | None) -> None:
        self.document = document
        self.replaced: set[Path] = set()
        self.may_lack: set[Path] = set()
        self.masked = False
        self.environ = environ
        self.refused_because = refused_because
        self.result = Interpolated()

    def fill(self) -> None:
        self.result.value = self._value(self.document.value, ())

    def _value(self, value: Any, path: Path) -> Any:
        match value:
            case str() if path in self.replaced:
                return None
            case str() if "${" in value:
                return _REFERENCE.sub(lambda match: self._reference(match, path), value)
            case dict():
                return {key: self._value(item, (*path, key)) for key, item in value.items()}
            case list():
                return [self._value(item, (*path, i)) for i, item in enumerate(value)]
        return value

    def _reference(self, match: re.Match[str], path: Path) -> str:
        if match["inside"] is None:
            return "${"
        parts = _INSIDE.fullmatch(match["inside"])
        if parts is None:
            return self._fault(match[0], path, "is no variable's name; write $${ for a literal ${")
        name, default = parts["name"], parts["default"]
        if self.refused_because:
            return self._fault(self._unresolved(parts), path, self.refused_because)
        value = self.environ.get(name, "" if path in self.may_lack else None)
        if default is not None and not value:
            return default
        if value is None and not self.masked:
            return self._fault(self._unresolved(parts), path, f"the environment variable {name} is not set")
        secret = parts["plain"] is None
        if secret and value:
            self._keep_secret(name, value, path)
        return self._shown(value or "", path, secret=secret)

    def _shown(self, value: str, path: Path, *, secret: bool) -> str:
        """The value, or what a recording has in its place; within a pattern, what matches that."""
        known = bool(value.strip()) and not (secret and len(value.strip()) >= MIN_LENGTH)
        if known or not self.masked:
            return value
        return re.escape(MASK) if path[-1:] == ("pattern",) else MASK

    def _keep_secret(self, name: str, value: str, path: Path) -> None:
        self.result.secrets.add(value)
        if "userInfo" not in path and not _NAMES.isdisjoint(path) and len(value.strip()) >= MIN_LENGTH:
            self.result.warnings.append(
                f"{self.document.file}: {show(path)}: the value of {name} is a secret and will show as ***; "
                "write ${env:" + name + "} if it is none"
            )
        if len(value.strip()) < MIN_LENGTH and path[-1:] != ("apiKey",):
            self.result.warnings.append(
                f"{self.document.file}: {show(path)}: the value of {name} has fewer than {MIN_LENGTH} "
                "characters and is not redacted; write ${env:" + name + "} if it is no secret"
            )

    def _unresolved(self, parts: re.Match[str]) -> str:
        """The reference by its name alone: its default may be a key."""
        reference = "${" + (parts["plain"] or "") + parts["name"] + "}"
        self.result.unresolved.add(reference)
        return reference

    def _fault(self, reference: str, path: Path, message: str) -> str:
        self.result.problems.append(self.document.problem(path, f"{reference}: {message}"))
        return reference
