"""The options of the gate's rules, as each rule declares them, and the settings that have them.

Only commands that decide a gate import this: the rules bring scoring and results along.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, make_dataclass, replace
from typing import Annotated, Any

from ci_evals.domain.options import Group, Option, OptionSpec
from ci_evals.gate.rule import Nature
from ci_evals.gate.rules import RULES


def gate_options() -> tuple[Option, ...]:
    """Return the options of all rules."""
    return tuple(option for rule in RULES for option in rule.options)


def change_options() -> tuple[Option, ...]:
    """Return the options of the rules that need a baseline."""
    natures = {Nature.CHANGE, Nature.REQUIREMENTS}
    return tuple(option for rule in RULES if rule.nature in natures for option in rule.options)


def odds_options() -> tuple[Option, ...]:
    """Return the options of the rules that noise can fail, without defaults: the saved run's are used."""
    options = (option for rule in RULES if rule.noise_can_fail for option in rule.options)
    return tuple(replace(option, default=None) for option in options)


def settings_class(name: str, options: Iterable[Option]) -> Any:
    """Return a dataclass with a field for each option."""
    fields = [
        (option.name, Annotated[option.kind | None, option], field(default=option.default))
        for option in options
    ]
    return make_dataclass(name, fields, frozen=True, namespace={"__doc__": "Options of the gate's rules."})


_ChangeOptions = settings_class("_ChangeOptions", change_options())
_GateOptions = settings_class("_GateOptions", gate_options())


@dataclass(frozen=True)
class ChangeSettings(_ChangeOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
    """The gate on changes since the baseline."""


@dataclass(frozen=True)
class GateSettings(_GateOptions):  # type: ignore[misc, valid-type]  # as above
    """The gate."""

    no_gate: Annotated[bool, OptionSpec("Report only: exit 0 even if checks fail.", group=Group.GATE)] = False
