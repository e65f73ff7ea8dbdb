"""Successors of options that are gone: each is refused with a sentence that names what to use instead.

Ignored, an option that made a gate stricter would leave one that only looks so.
"""

import re

_SUCCESSORS = {
    "confirm": "Use --rounds=auto",
}
"""What to use instead of an option, by the name of its field, as on a command line."""

_SUCCESSORS_OF_VALUES = {
    "both_sides": {"worst-quarter": "Use --rounds=auto", "never": "Leave --against out"},
}
"""The same for values of options that stay."""

_OPTION = re.compile(r"--([a-z-]+)(?:=(\S+))?")


def refuse_option(option: str) -> str | None:
    """Return the sentence for an option such as `--confirm` if it is gone."""
    successor = _SUCCESSORS.get(_field_of(option))
    return f"{option} is gone. {successor} instead." if successor else None


def refuse_value(option: str, value: str) -> str | None:
    """Return the sentence for a value of an option if it is gone."""
    successor = _SUCCESSORS_OF_VALUES.get(_field_of(option), {}).get(value)
    return f"{option}={value} is gone. {successor} instead." if successor else None


def refuse_input(name: str, value: str = "") -> str | None:
    """Return the sentence for an input of the action, or for its value, if it is gone."""
    if successor := _SUCCESSORS.get(_field_of(name)):
        return f"input {name!r} is gone. {_as_inputs(successor)} instead."
    if successor := _SUCCESSORS_OF_VALUES.get(_field_of(name), {}).get(value):
        return f"input {name!r} is {value!r}, which is gone. {_as_inputs(successor)} instead."
    return None


def refuse_variable(name: str, prefix: str) -> str | None:
    """Return the sentence for an environment variable if its option is gone."""
    successor = _SUCCESSORS.get(_field_of(name.removeprefix(prefix)))
    return f"{name} is gone. {successor} instead." if successor else None


def _field_of(name: str) -> str:
    return name.removeprefix("--").replace("-", "_").lower()


def _as_inputs(text: str) -> str:
    """The text with inputs as in a workflow: `rounds: auto` for `--rounds=auto`."""
    return _OPTION.sub(lambda option: ": ".join(filter(None, option.groups())), text)
