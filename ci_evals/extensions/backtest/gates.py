"""Gates on stored runs: each run's own, changed by options, and the decision with them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import fmean
from typing import Any

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.cli.settings.gate_rules import gate_options
from ci_evals.cli.settings.shared import REQUIRED
from ci_evals.domain.choices import Regression
from ci_evals.domain.options import Option
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.domain.run_ending import RunEnding
from ci_evals.extensions.backtest.pairing import Compared
from ci_evals.gate.checks import checks_of
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.noise import TrialNoise
from ci_evals.gate.odds import MOST_TESTS
from ci_evals.gate.policy import Policy
from ci_evals.gate.rule import Nature
from ci_evals.gate.rules import RULES, rule_of
from ci_evals.gate.rules.regression import NoRegression
from ci_evals.scoring.statistics import ALPHA

HISTORY = "history"
_DEFAULT_HISTORY = 10
MOST_HISTORY = 100


def backtest_options() -> tuple[Option, ...]:
    """Return the options of the gate that stored trials decide, without defaults: the runs' own are used.

    What suites require is compared by `weakened`, on which no trial has a bearing.
    """
    left_out = {
        option.name for rule in RULES if rule.nature is Nature.REQUIREMENTS for option in rule.options
    }
    return tuple(replace(one, default=None) for one in gate_options() if one.name not in left_out)


@dataclass(frozen=True)
class Gate:
    """The options that stand instead of a run's own."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """By their names in snake_case."""
    history: int | None = None
    """The number of earlier runs to compare with; None for the run's own."""

    def changed(self, other: "Gate") -> "Gate":
        """Return this gate with the options of another one."""
        history = self.history if other.history is None else other.history
        return Gate({**self.options, **other.options}, history)

    def policy(self, run: Results) -> Policy:
        """Return the requirements on a run.

        Raises:
            UsageError: an option has no known form.
        """
        config = run.run.config
        values = {}
        for option in backtest_options():
            value = config.get(to_camel(option.name))
            if option.accepts(value):
                values[option.name] = as_kind(option, value)
        required = str(config.get("baseline") or "").lower() == REQUIRED
        return Policy.from_options(values | dict(self.options), baseline_required=required)

    def history_of(self, run: Results) -> int:
        """Return how many earlier runs a run is compared with."""
        if self.history is not None:
            return self.history
        recorded = str(run.run.config.get(HISTORY) or "")
        if recorded.isascii() and recorded.isdecimal():
            return min(int(recorded), MOST_HISTORY)
        return _DEFAULT_HISTORY

    def as_json(self) -> dict[str, JsonValue]:
        """Return the options as the command line names them, without dashes in front."""
        options: dict[str, JsonValue] = {}
        for name, value in self.options.items():
            options[name.replace("_", "-")] = value if isinstance(value, int | float) else str(value)
        if self.history is not None:
            options[HISTORY] = self.history
        return options


def as_kind(option: Option, value: Any) -> Any:
    """Return a value that the option accepts as a value of its type."""
    return option.kind(value) if issubclass(option.kind, Enum) else value


@dataclass(frozen=True)
class Verdict:
    """The decision of a gate on a run."""

    failed: bool | None
    """None without a verdict."""
    checks: tuple[str, ...] = ()
    """The names of the checks that failed."""
    kinds: frozenset[CheckKind] = frozenset()
    """Their kinds."""


def verdict_of(compared: Compared, gate: Gate) -> Verdict:
    """Decide as if the run had just ended."""
    run = compared.head
    earlier = compared.earlier_runs(gate.history_of(run)) if compared.comparer else None
    given = GateInput(run, compared.comparer, earlier=earlier)
    decision = decide(given, gate.policy(run), RunEnding(judge_checks=run.judge_checks))
    if decision.reasons:
        return Verdict(None)
    failed = [check for check in decision.checks if check.passed is False]
    return Verdict(
        bool(failed), tuple(check.name for check in failed), frozenset(check.kind for check in failed)
    )


@dataclass(frozen=True)
class Prediction:
    """The shares of runs that fail by noise alone, as `odds` estimates them from one run."""

    share: float
    at_most: float
    """With the level of a check that `odds` leaves out."""
    kinds: Mapping[CheckKind, float]


@dataclass
class Predictor:
    """Estimates how often noise fails gates, as `odds` does; each run's noise is drawn once."""

    _noise: dict[str, TrialNoise] = field(default_factory=dict)
    _predicted: dict[tuple[str, str], Prediction | None] = field(default_factory=dict)

    def prediction(self, run: Results, policy: Policy) -> Prediction | None:
        """Return the prediction for the run after this one; None if there is no noise to estimate from."""
        key = (run.run.id, json.dumps(policy.recorded(), sort_keys=True))
        if key not in self._predicted:
            self._predicted[key] = self._predict(run, policy)
        return self._predicted[key]

    def _predict(self, run: Results, policy: Policy) -> Prediction | None:
        if run.score is None or len(run.tests) > MOST_TESTS:
            return None
        noise = self._noise.setdefault(run.run.id, TrialNoise(run))
        kinds: dict[CheckKind, list[bool]] = {}
        for check in checks_of(GateInput(run), policy):
            fails = rule_of(check).fails_by_noise(check, noise)
            if fails is not None:
                kinds[check.kind] = _either(kinds.get(check.kind), fails)
        whole: list[bool] | None = None
        for fails in kinds.values():
            whole = _either(whole, fails)
        share = fmean(whole) if whole else 0.0
        significant = policy.rule(NoRegression).regression is Regression.SIGNIFICANT
        at_most = min(1.0, share + ALPHA) if significant else share
        return Prediction(share, at_most, {kind: fmean(fails) for kind, fails in kinds.items()})


def _either(some: list[bool] | None, others: list[bool]) -> list[bool]:
    """Return in which drawn runs one of two checks fails."""
    if some is None:
        return others
    return [one or other for one, other in zip(some, others, strict=True)]


def mean_of(shares: Iterable[float]) -> float | None:
    """Return the mean of shares; None without any."""
    values = list(shares)
    return fmean(values) if values else None
