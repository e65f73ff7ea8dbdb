"""The agent's knowledge at one moment, by name: conditions are checked with it, and texts filled."""

import operator
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.extensions.demo.playbook import PLACEHOLDER, Condition, Expected, Scalar, ValueCheck

Knowledge = Mapping[str, JsonValue]

_LIMITS = {"over": operator.gt, "under": operator.lt, "at_least": operator.ge, "at_most": operator.le}
_OPERATIONS = {
    "over": "gt",
    "under": "lt",
    "at_least": "gte",
    "at_most": "lte",
    "none_of": "neq",
}
"""The comparisons of a `ValueCheck` with a value, as traces name them."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s.-]+")


def from_variables(variables: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return variables in snake_case: `orderNumber` or `{"order": {"number": 5}}` as `order_number`."""
    renamed: dict[str, JsonValue] = {}
    for key, value in variables.items():
        name = _CAMEL.sub("_", key).lower()
        if isinstance(value, dict):
            renamed |= {f"{name}_{inner}": item for inner, item in from_variables(value).items()}
        elif value is not None:
            renamed[name] = value
    return renamed


def holds(condition: Condition, known: Knowledge) -> bool:
    """Return whether every part of the condition holds."""
    return all(part_holds(name, expected, known) for name, expected in condition.items())


def part_holds(name: str, expected: Expected, known: Knowledge) -> bool:
    """Return whether the value under `name` is as wanted; text is compared without case, numbers as such."""
    value = known.get(name)
    match expected:
        case ValueCheck():
            return _compares(value, expected, known)
        case tuple():
            return any(_same(value, item, known) for item in expected)
        case _:
            return _same(value, expected, known)


class ConditionPart(NamedTuple):
    """One comparison of a condition, in the words of a trace, and whether it holds."""

    name: str
    operation: str
    value: JsonValue
    """What it is compared with; None if it is with nothing."""
    holds: bool


def parts(name: str, expected: Expected, known: Knowledge) -> Iterator[ConditionPart]:
    """Yield the comparisons that make up one part of a condition."""
    match expected:
        case ValueCheck():
            for kind, bound in expected.model_dump(exclude_none=True).items():
                holds = _compares(known.get(name), ValueCheck(**{kind: bound}), known)
                if kind == "given":
                    yield ConditionPart(name, "exist" if bound else "not_exist", None, holds)
                else:
                    yield ConditionPart(name, _OPERATIONS[kind], _filled(bound, known), holds)
        case _:
            operation = "any_has_value" if isinstance(expected, tuple) else "eq"
            yield ConditionPart(name, operation, _filled(expected, known), part_holds(name, expected, known))


def _filled(value: Scalar | tuple[Scalar, ...], known: Knowledge) -> JsonValue:
    if isinstance(value, tuple):
        return [_filled(item, known) for item in value]
    return fill(value, known) if isinstance(value, str) else value


def fill(text: str, known: Knowledge) -> str:
    """Return `text` with every `{name}` replaced by its value."""
    return PLACEHOLDER.sub(lambda match: _spoken(known.get(match[1])), text)


def compute(left: str, operation: str, right: str, known: Knowledge) -> JsonValue:
    """Return two values added, subtracted or multiplied; None if one of them is no number.

    Exact, so that 84.00 less 5.00 stays 79.00; a whole result without decimals is an integer.
    """
    a, b = _number(known.get(left)), _number(known.get(right))
    if a is None or b is None:
        return None
    result = {"plus": a + b, "minus": a - b, "times": a * b}[operation]
    return int(result) if result.as_tuple().exponent == 0 else str(result)


def _compares(value: JsonValue, expected: ValueCheck, known: Knowledge) -> bool:
    checks = []
    if expected.given is not None:
        checks.append(expected.given == bool(_text(value)))
    if expected.none_of is not None:
        checks.append(not any(_same(value, item, known) for item in expected.none_of))
    number = _number(value)
    for kind, compares in _LIMITS.items():
        if (bound := getattr(expected, kind)) is not None:
            limit = _number(fill(str(bound), known))
            checks.append(number is not None and limit is not None and compares(number, limit))
    return all(checks)


def _same(value: JsonValue, expected: Scalar, known: Knowledge) -> bool:
    left, right = _text(value), fill(_text(expected), known)
    if left.casefold() == right.casefold():
        return True
    a, b = _number(left), _number(right)
    return a is not None and a == b


def _spoken(value: JsonValue) -> str:
    """Return the text of a value; 59.5 becomes 59.50, as a number with decimals is an amount of money."""
    return f"{value:.2f}" if isinstance(value, float) else _text(value)


def _text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(map(_text, value))
        case _:
            return str(value).strip()


def _number(value: JsonValue) -> Decimal | None:
    try:
        number = Decimal(_text(value).replace(",", "").lstrip("$€£"))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
