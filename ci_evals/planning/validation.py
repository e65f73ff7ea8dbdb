"""Validation errors of pydantic as problems in a suite author's words, with the nearest right name."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ci_evals.domain.checks.evaluation import (
    CLAIMS,
    GRADED,
    JUDGED,
    STRICT_KINDS,
    ClaimsBacked,
    Graded,
    Judged,
)
from ci_evals.domain.checks.evaluation import STRICT as STRICT_TAG
from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import GIVEN_REPLY, PLANNED_TURN, GivenReply, PlannedTurn, Suite, Test
from ci_evals.extension_registry import suite_bases, suite_keys
from ci_evals.planning.documents.document import Document, Path, short
from ci_evals.support.redaction import MASK, Redactor

_LINES: Mapping[str, type[BaseModel]] = {PLANNED_TURN: PlannedTurn, GIVEN_REPLY: GivenReply}

KINDS: Mapping[str, type[BaseModel]] = {JUDGED: Judged, GRADED: Graded, CLAIMS: ClaimsBacked, **STRICT_KINDS}
"""Every kind of evaluation."""

_WITHOUT_STRICT = {
    Judged: "a criterion without 'strict'",
    Graded: "a criterion with a rubric",
    ClaimsBacked: "a criterion with 'claims'",
}


def problems_in(
    document: Document,
    value: Any,
    error: ValidationError,
    *,
    redactor: Redactor,
    root: type[BaseModel] = Suite,
    under: Path = (),
) -> Iterator[Problem]:
    """Yield every error that pydantic found in `value`, with its position in the document.

    `redactor` redacts quoted values, since they are truncated and half a secret might stay. `root` is the
    model of `value`, and `under` its path in the document.
    """
    seen: set[Path] = set()
    for detail in error.errors(include_url=False):
        path, model = _locate(value, detail["loc"], root)
        value_found = detail["input"]
        if path in seen or (detail["type"] == "too_short" and isinstance(value_found, list) and value_found):
            continue  # unions report one error twice; a list with a faulty item is reported as too short too
        if detail["type"] in {"union_tag_invalid", "union_tag_not_found"}:
            path = (*path, "strict")
        seen.add(path)
        detail["input"] = redactor.json(value_found)
        at_key = detail["type"] == "extra_forbidden"
        yield document.problem((*under, *path), _message(detail, path, model), at_key=at_key)


def _locate(value: Any, loc: Sequence[int | str], root: type[BaseModel]) -> tuple[Path, type[BaseModel]]:
    """Return the path in the data that pydantic means (it also names a union's members), and its model."""
    path: list[str | int] = []
    model = root
    here = value
    for i, step in enumerate(loc):
        inside = isinstance(here, dict) and step in here
        if inside or (isinstance(here, list) and isinstance(step, int) and step < len(here)):
            here = here[step]
        elif i < len(loc) - 1 or not isinstance(here, dict) or step in {*KINDS, STRICT_TAG}:
            model = KINDS.get(str(step)) or _LINES.get(str(step), model)
            continue  # a member of a union, not a key
        path.append(step)
        if inside and isinstance(step, str) and isinstance(here, dict | list):
            model = _inner(model, step) or model
    return tuple(path), model


def _inner(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the model of the value under `key`, or of its items; None if there is none, or several."""
    annotations = [info.annotation for name, info in model.model_fields.items() if key in {name, info.alias}]
    models: list[type[BaseModel]] = []
    while annotations:
        kind = annotations.pop()
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            models.append(kind)
        annotations += get_args(kind)
    return models[0] if len(models) == 1 else None


def _message(detail: ErrorDetails, path: Path, model: type[BaseModel]) -> str:
    value: Any = MASK if path[-1:] == ("apiKey",) else detail["input"]
    context = detail.get("ctx", {})
    if path[-1:] == ("turn",) and path[-3:-2] == ("evaluations",):
        return f"must be a reply's number (from 1), 'last' or 'any', found {_shown(value)}"
    if detail["type"] in _WANTED:
        key = _TEXT_OF.get(str(path[-2])) if len(path) > 1 and isinstance(value, str) else None
        hint = f"; write {{ {key}: … }}" if key else ""
        return f"must be {_WANTED[detail['type']]}, found {_shown(value)}{hint}"
    match detail["type"]:
        case "extra_forbidden":
            message = _unknown_key(str(path[-1]), model)
        case "missing":
            message = f"is missing; {_name_of(model)} needs it" if model in KINDS.values() else "is missing"
        case "literal_error" if path[-2:-1] == ("dimensions",):
            built_in = re.findall(r"'([^']*)'", str(context.get("expected")))
            message = (
                f"{short(str(value))!r} is not a built-in dimension{nearest(value, built_in)}; "
                "your own dimension is an object with 'name' and 'rubric'"
            )
        case "union_tag_invalid":
            kind = value["strict"]
            named = f"{kind!r} is not a strict type{nearest(kind, [*STRICT_KINDS])}"
            message = named if isinstance(kind, str) else "must be the name of a strict type"
        case "literal_error":
            wanted = re.findall(r"'([^']*)'", str(context.get("expected")))
            message = f"{short(str(value))!r} is not one of {', '.join(wanted)}"
        case "value_error":
            message = f"{short(str(value))!r} {context.get('error')}"
        case "greater_than" | "greater_than_equal" | "less_than_equal":
            message = f"{value!r} is not {detail['msg'].removeprefix('Input should be ')}"
        case kind:
            known = _MESSAGES.get(kind)
            message = known.format_map(context) if known else detail["msg"]
    return message


_TEXT_OF = {"turns": "user", "evaluations": "criterion"}
"""Lists of objects, and the key under which people have their text in mind."""

_DAY = "a day such as 2026-12-31"

_MESSAGES = {
    "string_pattern_mismatch": "must not be empty",
    "string_too_short": "must not be empty",
    "too_long": "may have at most {max_length} items",
    "too_short": "needs at least one item",
}

_WANTED = {
    "string_type": "a string",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
    "finite_number": "a number",
    "date_type": _DAY,
    "date_parsing": _DAY,
    "date_from_datetime_parsing": _DAY,
    "date_from_datetime_inexact": _DAY,
}


def _shown(value: Any) -> str:
    text = json.dumps(_without_keys(value), ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _without_keys(value: Any) -> Any:
    """Return the value without the content of any `apiKey`, however deep it was put by mistake."""
    match value:
        case dict():
            return {k: MASK if k == "apiKey" else _without_keys(item) for k, item in value.items()}
        case list():
            return [_without_keys(item) for item in value]
    return value


def _name_of(model: type[BaseModel]) -> str:
    if model in _WITHOUT_STRICT:
        return _WITHOUT_STRICT[model]
    return next((name for name, kind in KINDS.items() if kind is model), model.__name__.lower())


def _keys_of(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _added_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys that extensions add to suites, or to tests."""
    attribute = {Suite: "SUITE_KEYS", Test: "TEST_KEYS"}.get(model)
    if attribute is None:
        return []
    keys = [key for module in suite_keys() for key in _keys_of(getattr(module, attribute))]
    if model is Suite:
        keys += [key for base in suite_bases() for key in _keys_of(base.SUITE_KEYS)]
    return keys


def _unknown_key(key: str, model: type[BaseModel]) -> str:
    owners = [_name_of(kind) for kind in KINDS.values() if key in _keys_of(kind)]
    if model in KINDS.values() and owners:
        return f"{_name_of(model)} has no such key; it belongs to {', '.join(owners[:3])}"
    # A criterion without its rubric or its misspelled `strict` looks like a plain one.
    known = [*_keys_of(Graded), "claims", "strict"] if model is Judged else _keys_of(model)
    added = _added_keys(model)
    if key in added:
        return "no suite to extend is named; `ci-evals list-suites` has them"
    known += added
    return f"unknown key{nearest(key, known)}"


def nearest(value: Any, known: Sequence[str]) -> str:
    """Return a hint at the right name, or at all of them if they are few."""
    folded = {name.replace("_", "").lower(): name for name in known}
    close = difflib.get_close_matches(
        str(value).replace("_", "").replace("-", "").lower(), folded, n=1, cutoff=0.6
    )
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    return f"; known: {', '.join(known)}" if len(known) <= 20 else ""
