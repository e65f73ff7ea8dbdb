"""A suite's data written as text that `reader` reads back as the same."""

import json
import re
from pathlib import PurePath
from typing import Any

import yaml

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.reader import read
from ci_evals.planning.documents.yaml_document import Loader


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


def write(value: dict[str, Any], file: str, *, comment: str = "") -> str:
    """Return `value` as text in the format of `file`: YAML for `.yaml` and `.yml`, else JSON.

    `comment` goes first if the format has comments.
    """
    if PurePath(file).suffix.lower() not in {".yaml", ".yml"}:
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    text = head + _yaml(value, _Dumper, _WIDTH)
    # Blocks of lines are for people. A text that does not read back from one, or would be a command to
    # GitHub's runner in a log, is written in quotes on one line.
    if _COMMAND.search(text) or not _reads_back(text, file, value):
        return head + _yaml(value, _Quoting, _ENDLESS)
    return text


def _reads_back(text: str, file: str, value: dict[str, Any]) -> bool:
    try:
        return bool(read(text, file).value == value)
    except SuiteError:
        return False


_WIDTH, _ENDLESS = 110, 10**9
_COMMAND = re.compile(r"^[^\S\n]*(?:::|##\[)", re.MULTILINE)


def _yaml(value: dict[str, Any], dumper: type[yaml.SafeDumper], width: int) -> str:
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
