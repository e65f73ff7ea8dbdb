"""The gate that options set, and all options in force."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from ci_evals.cli.settings.gate_rules import GateSettings, odds_options
from ci_evals.cli.settings.shared import BASELINE_WORDS, REQUIRED, BaselineSettings
from ci_evals.cli.settings.table import options_of
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.gate.policy import Policy


def read_policy(
    settings: GateSettings, spell: Callable[[str], str], *, baseline_named: bool = False
) -> Policy:
    """Read the gate from the options. `spell` names settings in its warnings as their reader sets them.

    `baseline_named` is true if an option of the command's own names the baseline.

    Raises:
        UsageError: a threshold or a drop has no known form.
    """
    baseline = settings.baseline if isinstance(settings, BaselineSettings) else None
    policy = Policy.from_options(
        vars(settings),
        baseline_required=(baseline or "").lower() == REQUIRED,
        baseline_named=baseline_named or _names_baseline(baseline),
        enforced=not settings.no_gate,
    )
    return policy.spelled(spell)


def _names_baseline(baseline: str | None) -> bool:
    """Return whether the option says with what the run is compared, other than that it is to be found."""
    if not baseline:
        return False
    return baseline.lower() not in BASELINE_WORDS


def unknown_names(policy: Policy, suites: Sequence[SuiteResult]) -> tuple[str, ...]:
    """Return what a threshold or a drop names that the results lack, if it may be in trials they lack.

    Raises:
        UsageError: the results lack no trial: categories and rules are known from their verdicts.
    """
    try:
        policy.check_names(suites)
    except UsageError as error:
        tests = [test for suite in suites for test in suite.tests]
        if all(test.trials and all(trial.findings for trial in test.trials) for test in tests):
            raise
        return (str(error),)
    return ()


def recorded_options(settings: GateSettings) -> dict[str, str | int | float | bool | None]:
    """Return every option in force except arguments, the secret ones, and those declared so.

    A list has a line for each of its texts.
    """
    recorded: dict[str, str | int | float | bool | None] = {}
    for option in options_of(type(settings)):
        if option.secret or option.argument or not option.recorded:
            continue
        value = getattr(settings, option.name)
        if isinstance(value, list):
            value = "\n".join(map(str, value))
        recorded[to_camel(option.name)] = value if isinstance(value, int | float | None) else str(value)
    return recorded


def recorded_limits(config: Mapping[str, Any]) -> dict[str, object]:
    """Return the gate of a saved run, as far as verdicts decide it.

    Only what an option could say is believed.
    """
    recorded = {}
    for option in odds_options():
        value = config.get(to_camel(option.name))
        if option.accepts(value):
            recorded[option.name] = value
    return recorded


def limits_in(settings: object) -> dict[str, object]:
    """Return the limits that the options of `odds_options` change."""
    values = {option.name: getattr(settings, option.name) for option in odds_options()}
    return {name: value for name, value in values.items() if value is not None}
