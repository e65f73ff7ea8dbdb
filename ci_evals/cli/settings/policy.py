"""The gate that options set, and all options in force."""

import dataclasses
from typing import TYPE_CHECKING

from pydantic.alias_generators import to_camel

from ci_evals.cli.settings.shared import REQUIRED, BaselineSettings, GateSettings
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.scoring.gate.policy import Policy
from ci_evals.scoring.gate.selectors import read_drops, read_thresholds

if TYPE_CHECKING:
    from ci_evals.cli.settings.result_commands import MergeSettings, RejudgeSettings


def read_policy(settings: GateSettings) -> Policy:
    """Read the gate from the options.

    Raises:
        UsageError: a threshold or a drop has no known form.
    """
    drop, drops = read_drops(settings.max_drop)
    return Policy(
        min_score=settings.min_score,
        thresholds=read_thresholds(settings.thresholds),
        max_errors=settings.max_errors,
        max_invalid_users=settings.max_invalid_users,
        max_drop=drop,
        max_drops=drops,
        regression=settings.regression,
        max_cost=settings.max_cost,
        max_p95_latency=settings.max_p95_latency,
        baseline_required=isinstance(settings, BaselineSettings)
        and (settings.baseline or "").lower() == REQUIRED,
        enforced=not settings.no_gate,
    )


_NOT_TOLD = frozenset({"resume"})
"""A run that was taken up again is the same as one that was never broken off."""


def in_force(
    settings: "RunSettings | MergeSettings | RejudgeSettings",
) -> dict[str, str | int | float | bool | None]:
    """Return every option in force except the secret ones, which a settings value does not show."""
    return {
        to_camel(item.name): value if isinstance(value, int | float | None) else str(value)
        for item in dataclasses.fields(settings)
        for value in [getattr(settings, item.name)]
        if item.repr and not isinstance(value, list) and item.name not in _NOT_TOLD
    }
