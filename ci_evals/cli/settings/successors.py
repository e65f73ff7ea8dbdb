"""Successors of options that are gone: each is refused with a sentence that names what to use instead.

Ignored, an option that made a gate stricter would leave one that only looks so.
"""

import re

_SUCCESSORS = {
    "confirm": "use --rounds=auto",
    "agent_key_header": "set adapterOptions.keyHeader in the suite",
    "agent_id_in": "set adapterOptions.agentIdIn in the suite",
    "task_origin_type": "set adapterOptions.taskOriginType in the suite",
    "start_timeout": "set startTimeout in the suite",
    "audit_model": "set auditModel in the suite",
    "max_failures_in_row": "omit it, since ten broken trials in a row always end a run",
}
"""What to use instead of an option, by the name of its field, as on a command line."""

_SUCCESSORS_OF_VALUES = {
    "both_sides": {"worst-quarter": "use --rounds=auto", "never": "leave --against out"},
}
"""The same for values of options that stay."""

_OPTION = re.compile(r"--([a-z-]+)(?:=(\S+))?")


def refuse_option(option: str) -> str | None:
    """Return the sentence for an option such as `--confirm` if it is gone."""
    successor = _SUCCESSORS.get(_field_of(option))
    return _sentence(option, successor) if successor else None


def refuse_value(option: str, value: str) -> str | None:
    """Return the sentence for a value of an option if it is gone."""
    successor = _SUCCESSORS_OF_VALUES.get(_field_of(option), {}).get(value)
    return _sentence(f"{option}={value}", successor) if successor else None


def refuse_input(name: str, value: str = "") -> str | None:
    """Return the sentence for an input of the action, or for its value, if it is gone."""
    if successor := _SUCCESSORS.get(_field_of(name)):
        return _sentence(f"input {name!r}", _as_inputs(successor))
    if successor := _SUCCESSORS_OF_VALUES.get(_field_of(name), {}).get(value):
        return _sentence(f"the value {value!r} of the input {name!r}", _as_inputs(successor))
    return None


def refuse_variable(name: str, prefix: str) -> str | None:
    """Return the sentence for an environment variable if its option is gone."""
    successor = _SUCCESSORS.get(_field_of(name.removeprefix(prefix)))
    return _sentence(name, successor) if successor else None


def _sentence(subject: str, successor: str) -> str:
    return f"{subject} is gone: {successor}."


def _field_of(name: str) -> str:
    return name.removeprefix("--").replace("-", "_").lower()


def _as_inputs(text: str) -> str:
    """The text with inputs as in a workflow: `rounds: auto` for `--rounds=auto`."""
    return _OPTION.sub(lambda option: ": ".join(filter(None, option.groups())), text)
