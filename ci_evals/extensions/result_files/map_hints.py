"""Hints for the option `map`: a map for the columns of a row, and the keys that a row has."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_COLUMNS = 20
_MOST_DEPTH = 3
_MOST_NAME = 60
_OF_TEST = re.compile(r"id|name|test|task|case|question|scenario|prompt|title", re.IGNORECASE)
_OF_OUTCOME = re.compile(
    r"pass|correct|success|outcome|verdict|status|result|ok|score|reward|grade|rating|accuracy", re.IGNORECASE
)


def keys_of(row: object) -> str:
    """Return the keys of a row, in words."""
    if not isinstance(row, Mapping):
        return f"it is not an object but a {type(row).__name__}"
    if not row:
        return "it has no keys"
    names = [str(name)[:_MOST_NAME] for name in list(row)[:_MOST_COLUMNS]]
    more = f" and {len(row) - len(names)} more" if len(row) > len(names) else ""
    return f"its keys: {', '.join(names)}{more}"


def example(row: Mapping[str, Any], known: Mapping[str, str], rows: str | None = None) -> str:
    """Return a map for the columns of a row.

    Args:
        row: One of the rows.
        known: The columns whose names say what they hold, by field.
        rows: The path of the list of rows within a document.
    """
    columns = dict(_columns(row, "$", 1))
    paths = {field: _step("$", column) for field, column in known.items()}
    free = [path for path in columns if path not in paths.values()]
    if "test" not in paths:
        paths["test"] = _best(free, lambda path: bool(_OF_TEST.search(path)), free[:1])
    if not paths.keys() & {"passed", "score"}:
        rest = [path for path in free if path != paths["test"]]
        path = _best(rest, lambda path: bool(_OF_OUTCOME.search(path)), rest[-1:])
        paths["score" if _is_score(columns.get(path)) else "passed"] = path
    fields = ({"rows": rows} if rows else {}) | {"test": paths.pop("test")} | paths
    return "\n".join(f"  {field}: {_in_yaml(path)}" for field, path in fields.items())


def list_of_rows(document: object) -> tuple[str | None, Any]:
    """Return the path of the first list of objects in a document, and the first of these; None if none is."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return _step("$", key) + "[*]", value[0]
    return None, None


def _columns(row: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the paths of the values in a row, and the values."""
    for name, value in list(row.items())[:_MOST_COLUMNS]:
        inner = _step(path, name)
        if isinstance(value, dict) and value and depth < _MOST_DEPTH:
            yield from _columns(value, inner, depth + 1)
        else:
            yield inner, value


def _step(path: str, name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f"{path}.{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{quoted}']"


def _best(paths: list[str], fits: Callable[[str], bool], otherwise: list[str]) -> str:
    fitting = [path for path in paths if fits(path)] or otherwise
    return fitting[0] if fitting else "$.…"


def _is_score(value: object) -> bool:
    """Return whether a value is a number, in JSON or in a cell of a table, other than a truth value."""
    if isinstance(value, str):
        return re.fullmatch(r"\d*\.\d+", value.strip()) is not None
    return isinstance(value, float)


def _in_yaml(path: str) -> str:
    return path if re.fullmatch(r"[\w.$\[\]*…]+", path) else json.dumps(path, ensure_ascii=False)
