"""The requirements on a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pydantic import JsonValue

from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.suite import Suite
from ci_evals.gate.rule import Rule
from ci_evals.gate.rules import RULES

R = TypeVar("R", bound=Rule)


@dataclass(frozen=True, init=False)
class Policy:
    """The requirements on a run: rules with their limits.

    Limits are keyword arguments: `Policy(min_score=90, max_cost=2.5)`. The others have their defaults.

    Raises:
        UsageError: a number is none, or has no end.
        TypeError: no rule has a limit of that name.
    """

    rules: tuple[Rule, ...]
    """One of each kind, in the order of reports."""
    baseline_required: bool
    """True if a run that cannot be compared has no verdict (option `baseline`: `required`)."""
    baseline_named: bool
    """True if the options name the baseline: a check against it that cannot be made leaves no verdict."""
    enforced: bool
    """True if a failed gate fails the build (the option `no_gate` says no)."""
    spelled_warnings: tuple[str, ...] | None
    """The warnings with settings as their reader sets them; None if nobody has spelled them."""

    def __init__(
        self,
        *,
        rules: Iterable[Rule] | None = None,
        baseline_required: bool = False,
        baseline_named: bool = False,
        enforced: bool = True,
        spelled_warnings: tuple[str, ...] | None = None,
        **limits: Any,
    ) -> None:
        unchanged = (kind() for kind in RULES) if rules is None else rules
        chosen = tuple(_changed(unchanged, limits))
        values = (chosen, baseline_required, baseline_named, enforced, spelled_warnings)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], **flags: Any) -> "Policy":
        """Return the policy that options ask for, by their names in snake_case.

        Raises:
            UsageError: a value cannot be read.
        """
        return cls(rules=(rule.from_options(options) for rule in RULES), **flags)

    def rule(self, kind: type[R]) -> R:
        """Return the rule of a kind, with its limits."""
        return next(rule for rule in self.rules if isinstance(rule, kind))

    def recorded(self) -> dict[str, JsonValue]:
        """Return the limits as results record them, by the names of options in snake_case."""
        return {name: value for rule in self.rules for name, value in rule.recorded().items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about limits that are probably not meant."""
        if self.spelled_warnings is not None:
            return self.spelled_warnings
        return tuple(warning for rule in self.rules for warning in rule.warnings())

    def spelled(self, spell: Callable[[str], str]) -> "Policy":
        """Return the policy whose warnings name settings as their reader sets them."""
        return replace(self, spelled_warnings=tuple(map(spell, self.warnings)))

    def check_names(self, suites: Sequence[Suite | SuiteResult]) -> None:
        """Look whether these suites have every part of a run that a limit names.

        Raises:
            UsageError: one is missing: its limit would guard nothing.
        """
        for rule in self.rules:
            rule.check_names(suites)

    def redacted(self, redact: Callable[[str], str]) -> "Policy":
        """Return the policy with its parts named as in results, where secrets are taken out of names too."""
        return replace(self, rules=tuple(rule.redacted(redact) for rule in self.rules))


def _changed(rules: Iterable[Rule], limits: dict[str, object]) -> Iterator[Rule]:
    """Yield the rules with these limits instead of theirs."""
    for rule in rules:
        own = {field.name for field in fields(rule)} & limits.keys()
        yield replace(rule, **{name: limits.pop(name) for name in own})
    if limits:
        raise TypeError(f"Policy() has no limit {', '.join(map(repr, limits))}")
