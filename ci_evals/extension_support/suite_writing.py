"""A suite's data written as text that `reader` reads back as the same."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import yaml

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.document import Path
from ci_evals.planning.documents.reader import read
from ci_evals.planning.documents.yaml_document import Loader
from ci_evals.support.json_text import JsonObject


def literal(value: Any) -> Any:
    """Return data whose texts are taken literally: `${` in a value is written `$${`."""
    match value:
        case str():
            return value.replace("${", "$${")
        case dict():
            return {key: literal(item) for key, item in value.items()}
        case list() | tuple():
            return [literal(item) for item in value]
    return value


NOTE = "x-note"
"""The key of a note in a format without comments."""


def is_yaml(file: str) -> bool:
    """Return whether a suite of this name is written in YAML, which has comments."""
    return PurePath(file).suffix.lower() in {".yaml", ".yml"}


def write(value: JsonObject, file: str, *, comment: str = "", notes: Mapping[Path, str] | None = None) -> str:
    """Return `value` as text in the format of `file`: YAML for `.yaml` and `.yml`, else JSON.

    Args:
        value: The data.
        file: The name of the file.
        comment: Goes first, if the format has comments.
        notes: Lines for people by the path of the object in a list that they are about: comments above it,
            or in JSON its key `x-note`. They are visible text without control characters.
    """
    notes = notes or {}
    if not is_yaml(file):
        return json.dumps(with_notes(value, notes), ensure_ascii=False, indent=2) + "\n"
    head = _comment(comment)
    text = _yaml(value, _Dumper, _WIDTH)
    # Blocks of lines are for people. A text that does not read back from one, or would be a command to
    # GitHub's runner in a log, is written in quotes on one line.
    if _COMMAND.search(text) or not _reads_back(text, file, value):
        text = _yaml(value, _Quoting, _ENDLESS)
    return head + _with_comments(text, file, notes)


def _comment(text: str, indent: str = "") -> str:
    return "".join(f"{indent}# {line}".rstrip() + "\n" for line in text.splitlines())


def with_notes(value: Any, notes: Mapping[Path, str], path: Path = ()) -> Any:
    """Return a copy of the data in which the objects at these paths have their notes under `NOTE`."""
    match value:
        case dict():
            own = {NOTE: notes[path]} if path in notes else {}
            return own | {key: with_notes(item, notes, (*path, key)) for key, item in value.items()}
        case list() | tuple():
            return [with_notes(item, notes, (*path, i)) for i, item in enumerate(value)]
    return value


def _with_comments(text: str, file: str, notes: Mapping[Path, str]) -> str:
    """Return YAML of ours with each note above its object, whose first line begins with a dash."""
    if not notes:
        return text
    document = read(text, file)
    places = {path: document.problem(path, "") for path in notes}
    lines = text.splitlines(keepends=True)
    for path, place in sorted(places.items(), key=lambda item: item[1].line, reverse=True):
        dash = " " * (place.column - len("- ") - 1)
        lines.insert(place.line - 1, _comment(notes[path], dash))
    return "".join(lines)


def _reads_back(text: str, file: str, value: JsonObject) -> bool:
    try:
        return bool(read(text, file).value == value)
    except SuiteError:
        return False


_WIDTH, _ENDLESS = 110, 10**9
_COMMAND = re.compile(r"^[^\S\n]*(?:::|##\[)", re.MULTILINE)


def _yaml(value: JsonObject, dumper: type[yaml.SafeDumper], width: int) -> str:
    return yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=width)


class _Quoting(yaml.SafeDumper):
    """Writes every text so that both PyYAML and our own reader, whose numbers differ, read a text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated texts in full."""
        del data
        return True


class _Dumper(_Quoting):
    """Texts of several lines as blocks."""


for _first, _resolvers in Loader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        _Quoting.add_implicit_resolver(_tag, _pattern, [_first])
_Dumper.yaml_implicit_resolvers = _Quoting.yaml_implicit_resolvers


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(str, _block)
_Quoting.add_representer(str, _quoted)
