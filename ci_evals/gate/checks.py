"""The checks of the gate: what each rule requires of a run, and what was seen."""

from ci_evals.domain.results.gate import CheckId, GateCheck
from ci_evals.gate.gate_input import GatedRun, GateInput
from ci_evals.gate.policy import Policy
from ci_evals.gate.rule import Nature
from ci_evals.gate.rules import rule_of

_AGAINST_BASELINE = frozenset({Nature.CHANGE, Nature.REQUIREMENTS})


def checks_of(given: GateInput, policy: Policy) -> tuple[GateCheck, ...]:
    """Return every check of the gate."""
    run = GatedRun(given)
    return tuple(check for rule in policy.rules for check in rule.checks(run))


def changes_of(given: GateInput, policy: Policy) -> tuple[GateCheck, ...]:
    """Return the checks that need the baseline."""
    run = GatedRun(given)
    rules = (rule for rule in policy.rules if rule.nature in _AGAINST_BASELINE)
    return tuple(check for rule in rules for check in rule.checks(run))


def requirements_of(given: GateInput, policy: Policy) -> tuple[GateCheck, ...]:
    """Return the checks of what suites and gate require, which need no trial."""
    run = GatedRun(given)
    rules = (rule for rule in policy.rules if rule.nature is Nature.REQUIREMENTS)
    return tuple(check for rule in rules for check in rule.checks(run))


def needs_baseline(check: CheckId) -> bool:
    """Return whether a check cannot be made without a baseline."""
    return rule_of(check).nature in _AGAINST_BASELINE


def compares(check: CheckId) -> bool:
    """Return whether a check compares the scores of the run with those of its baseline."""
    return rule_of(check).nature is Nature.CHANGE


def is_floor(check: CheckId) -> bool:
    """Return whether a check asks for a minimum score."""
    return rule_of(check).nature is Nature.FLOOR
