"""Reads the file of gates that are compared: names, and options as the command line spells them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import read_text
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.cli.settings.table import options_of
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Option
from ci_evals.extensions.backtest.gates import HISTORY, MOST_HISTORY, Gate, as_kind, backtest_options
from ci_evals.gate.policy import Policy
from ci_evals.planning.documents.reader import read as read_document

MOST_GATES = 50
_FORM = "It names each gate and its options, such as  strict: {min-score: 90, max-drop: 2}"


def read_gates(path: Path) -> dict[str, Gate]:
    """Return the gates of a file by their names.

    Raises:
        UsageError: it cannot be read, or a gate has an option that stored runs cannot be decided by.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: the name of a file of gates ends in {', '.join(ENDINGS)}.")
    document = read_document(read_text(path, str(path)), str(path))
    if document.problems:
        raise UsageError("\n".join(map(str, document.problems)))
    gates = document.value
    if not isinstance(gates, dict) or not gates or not all(isinstance(one, dict) for one in gates.values()):
        raise UsageError(f"{path}: names no gates. {_FORM}")
    if len(gates) > MOST_GATES:
        raise UsageError(f"{path}: {len(gates):,} gates; name at most {MOST_GATES}.")
    return {str(name): _gate(options, f"{path}: {name!r}") for name, options in gates.items()}


def _gate(options: Mapping[str, Any], where: str) -> Gate:
    known = {option.kebab: option for option in backtest_options()}
    values: dict[str, object] = {}
    history: int | None = None
    for name, value in options.items():
        if name == HISTORY:
            history = _history(value, where)
        elif name in known:
            values[known[name].name] = _value(known[name], value, where)
        else:
            raise UsageError(f"{where}: {_refusal(str(name), known)}")
    try:
        Policy.from_options(values)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return Gate(values, history)


def _history(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_HISTORY:
        raise UsageError(f"{where}: {HISTORY}: {value!r} is no number from 0 to {MOST_HISTORY}.")
    return value


def _value(option: Option, value: Any, where: str) -> Any:
    if option.kind is str and isinstance(value, list):
        value = "\n".join(map(str, value))
    if option.kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    # YAML reads a bare `off` as false.
    if value is False and option.name == "regression":
        value = "off"
    if not option.accepts(value):
        raise UsageError(f"{where}: {option.kebab}: {value!r} is none of its values.{_values(option)}")
    return as_kind(option, value)


def _values(option: Option) -> str:
    members = getattr(option.kind, "__members__", None)
    if members:
        return f" Values: {', '.join(str(member.value) for member in members.values())}."
    if option.minimum is not None and option.maximum is not None:
        return f" It is a number from {option.minimum:g} to {option.maximum:g}."
    return " It is a number." if option.kind in {int, float} else ""


def _refusal(name: str, known: Iterable[str]) -> str:
    """Return why a gate cannot have an option."""
    names = [*known, HISTORY]
    plain = name.lstrip("-")
    if plain in names:
        return f"{name}: write {plain}, without dashes in front."
    if plain in {option.kebab for option in options_of(RunSettings)}:
        return (
            f"{plain}: stored runs cannot show what it changes, since it needs new conversations or is no "
            f"part of the gate. Options of a gate: {', '.join(names)}."
        )
    close = get_close_matches(plain.replace("_", "-"), names, n=1)
    did_you_mean = f" Did you mean {close[0]}?" if close else ""
    return f"unknown option {name!r}.{did_you_mean} Options of a gate: {', '.join(names)}."
