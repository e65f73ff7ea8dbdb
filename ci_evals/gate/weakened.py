"""Where suites and gate of a run require less than those of its baseline."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.weakened import CODE_DIGITS, Approval, Weakened, Weakening
from ci_evals.gate.policy import Policy
from ci_evals.gate.rule import Rule
from ci_evals.scoring.comparison.weakened import weakenings
from ci_evals.support import dataclass_json
from ci_evals.support.digest import digest

R = TypeVar("R", bound=Rule)

_MISSING = object()


def compare(
    head: Results,
    base: Results,
    policy: Policy,
    approvals: Iterable[Approval] = (),
    *,
    saved: bool = False,
) -> Weakened:
    """Return everything that suites and gate of `head` require less than those of `base`.

    Args:
        head: The run.
        base: Its baseline.
        policy: The gate of the run; that of the baseline is recorded in its options.
        approvals: Approvals of weakened suites. One counts if it names the code of these runs.
        saved: Whether the gate of `head` too is recorded in its options, and `policy` another one.
    """
    unknown: list[str] = []
    items: list[Weakening] = []
    loosened: list[Weakening] = []
    guarded: set[str] = set()
    limits: list[JsonValue] = []
    for rule in policy.rules:
        if not rule.is_compared():
            continue
        before = _recorded_rule(rule, base.run.config)
        now = _recorded_rule(rule, head.run.config) if saved else rule
        if before and now:
            loosened += now.loosened(before)
            guarded.update(map(str, before.parts()))
            limits.append([before.recorded(), now.recorded()])
        else:
            whose = "this run" if before else "the baseline"
            unknown.append(f"{whose} does not record its {rule.options[0].kebab}")
    if base.run.definitions is None:
        unknown = ["the baseline does not record what its suites require: run it again on its branch"]
    elif head.run.definitions is None:
        unknown.append("this run does not record what its suites require")
    else:
        items += weakenings(base.run.definitions, head.run.definitions, guarded)
    items += loosened
    code = _code(base, head, limits) if items else None
    return Weakened(
        branch=base.run.git.branch,
        items=tuple(items),
        unknown="; ".join(unknown) or None,
        code=code,
        approval=next((one for one in approvals if one.code == code), None),
    )


def _code(base: Results, head: Results, limits: Sequence[JsonValue]) -> str:
    """Return the digest of all that both runs require, from which everything follows that is weaker.

    A digest of what is gone alone would not tell a criterion that is reworded from one that is deleted.
    """
    suites = [_digests(run.run.definitions or ()) for run in (base, head)]
    return digest([suites, list(limits)])[:CODE_DIGITS]


def _digests(suites: Iterable[SuiteDefinition]) -> list[str]:
    """Return the digests of suites, in an order that does not depend on theirs."""
    return sorted(digest(dataclass_json.to_value(suite)) for suite in suites)


def _recorded_rule(rule: R, config: Mapping[str, JsonValue]) -> R | None:
    """Return the rule with its recorded limits; None if they are not recorded, or cannot be read."""
    values: dict[str, object] = {}
    for option in rule.options:
        value = config.get(to_camel(option.name), _MISSING)
        if value is None and option.default is None:
            continue
        if not option.accepts(value):
            return None
        values[option.name] = option.kind(value) if issubclass(option.kind, Enum) else value
    try:
        return type(rule).from_options(values)
    except UsageError:
        return None
