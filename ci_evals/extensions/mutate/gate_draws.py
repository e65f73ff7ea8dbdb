"""The gate's decision on runs in which some of the conversations have a fault."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.extensions.mutate.planting import Planting, SavedTrial, TestKey
from ci_evals.gate.checks import checks_of, compares
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scorecard import recounted
from ci_evals.scoring.scores import ScoreRule

DRAWS = 200
NEEDED = 0.8
"""The share of draws in which the gate must fail."""

_TrialKey = tuple[TestKey, int]


@dataclass(frozen=True)
class PlantedGate:
    """A gate, and the run whose conversations get faults.

    An undecided criterion counts as before the fault: it is no sign that the gate notices anything.
    """

    run: Results
    """The run, with the findings of the suites as they are now."""
    policy: Policy

    @cached_property
    def fails_without_faults(self) -> bool:
        """True if the gate fails the run as it is. Then nothing can be said about faults."""
        return self._fails(self.run)

    def needed_share(self, plantings: Sequence[Planting], shares: Sequence[float]) -> float | None:
        """Return the smallest of these shares of conversations with a fault that fails the gate.

        It fails in at least 80 % of 200 draws then. None if no share does.
        """
        noticed = [planting for planting in plantings if planting.noticed]
        if self.fails_without_faults or not noticed:
            return None
        if not self._fails(self._with(noticed)):
            return None  # a worse verdict never opens the gate, so with fewer faults it passes too
        for share in sorted(shares):
            if self._fails_often(plantings, share):
                return share
        return None

    def failing_share(self, plantings: Sequence[Planting], share: float) -> float:
        """Return in which share of the draws the gate fails, if this share of conversations has the fault."""
        return sum(self._draws(plantings, share)) / DRAWS

    def _fails_often(self, plantings: Sequence[Planting], share: float) -> bool:
        wanted = round(NEEDED * DRAWS)
        failed = passed = 0
        for fails in self._draws(plantings, share):
            failed += fails
            passed += not fails
            if failed >= wanted or passed > DRAWS - wanted:
                break
        return failed >= wanted

    def _draws(self, plantings: Sequence[Planting], share: float) -> Iterator[bool]:
        (kind,) = {planting.kind for planting in plantings}
        rng = random.Random(f"{self.run.run.id} {kind} {share}")  # noqa: S311  # a simulation
        for _ in range(DRAWS):
            drawn = [planting for planting in plantings if rng.random() < share]
            noticed = [planting for planting in drawn if planting.noticed]
            yield bool(noticed) and self._fails(self._with(noticed))

    def _with(self, plantings: Sequence[Planting]) -> Results:
        by_test: dict[TestKey, dict[int, frozenset[int]]] = {}
        for planting in plantings:
            by_test.setdefault(planting.trial.key, {})[planting.trial.index] = planting.noticed
        suites = list(self.run.suites)
        for number in {key.suite for key in by_test}:
            tests = list(suites[number].tests)
            for key, noticed in by_test.items():
                if key.suite == number:
                    tests[key.test] = _failing(tests[key.test], noticed)
            suites[number] = replace(suites[number], tests=tuple(tests))
        return replace(self.run, suites=tuple(suites))

    @cached_property
    def _compares(self) -> bool:
        checks = checks_of(GateInput(self.run), self.policy)
        return any(compares(check) for check in checks)

    def _fails(self, run: Results) -> bool:
        """Return whether the gate fails, with the run as it was for a baseline."""
        comparer = RunComparer(run, self.run) if self._compares else None
        checks = checks_of(GateInput(run, comparer), self.policy)
        return any(check.passed is False for check in checks)


def graded_again(results: Results, trials: Sequence[SavedTrial]) -> Results:
    """Return the run with the findings of its suites as they are now, and with what follows from them."""
    findings = {(trial.key, trial.index): trial.findings for trial in trials}
    rule = ScoreRule(offline=True)
    suites = []
    for number, suite in enumerate(results.suites):
        tests = []
        for place, test in enumerate(suite.tests):
            tests.append(_with_findings(test, TestKey(number, place), findings))
        suites.append(recounted(replace(suite, tests=tuple(tests)), rule))
    return replace(results, suites=tuple(suites))


def _with_findings(
    test: TestResult, key: TestKey, findings: Mapping[_TrialKey, tuple[Finding, ...]]
) -> TestResult:
    trials = []
    for index, trial in enumerate(test.trials):
        own = findings.get((key, index), trial.findings)
        trials.append(replace(trial, findings=own))
    return replace(test, trials=tuple(trials))


def _failing(test: TestResult, noticed: Mapping[int, frozenset[int]]) -> TestResult:
    """Return the test with some criteria failed in some of its trials."""
    trials = []
    for index, trial in enumerate(test.trials):
        trials.append(_failing_trial(trial, noticed[index]) if index in noticed else trial)
    return replace(test, trials=tuple(trials), passed=False, outcome=TestOutcome.FAILED)


def _failing_trial(trial: TrialResult, noticed: frozenset[int]) -> TrialResult:
    findings = list(trial.findings)
    for place in noticed:
        findings[place] = replace(findings[place], outcome=Outcome.FAILED, cause=None)
    return replace(trial, findings=tuple(findings))
