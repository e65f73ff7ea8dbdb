"""`critical`: tests of which suite files ask that every trial passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ci_evals.domain import numbers
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import TestResult
from ci_evals.gate.gate_input import GatedRun, Scope
from ci_evals.gate.rule import NOT_JUDGED, Nature, Rule, test_of
from ci_evals.gate.selectors import SelectorKind
from ci_evals.scoring import scores
from ci_evals.scoring.scores import ScoreRule

if TYPE_CHECKING:
    from ci_evals.gate.noise import TrialNoise


@dataclass(frozen=True)
class Critical(Rule):
    """The tests that suite files call critical: all of their trials must pass."""

    kind: ClassVar[CheckKind] = CheckKind.CRITICAL
    nature: ClassVar[Nature] = Nature.TEST
    noise_can_fail: ClassVar[bool] = True

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield a check for each critical test."""
        for one in run.tests:
            if one.test.critical:
                yield self._check(run, one.scope, one.test)

    def _check(self, run: GatedRun, scope: Scope, test: TestResult) -> GateCheck:
        given = run.given
        name = f"{self.kind}:{scope.label.removeprefix(f'{SelectorKind.TEST}:')}"
        uncounted = scores.uncounted_trials(test)
        if run.only_judged([test], scores.all_findings) and not uncounted:
            return scope.check(self.kind, name, 100, note=NOT_JUDGED)
        rule = ScoreRule(given.offline)
        passed = sum(trial.counts and scores.all_passed(trial, rule) for trial in test.trials)
        if given.assumed_score:
            passed += uncounted - scores.failed_uncounted(test)
        planned = len(test.trials) + test.not_run
        if given.assumed_score is None:  # excluded trials count too where a score is assumed
            planned -= sum(trial.excluded for trial in test.trials)
        return scope.check(
            self.kind,
            name,
            100,
            # A file may have a test without any trial: of that one nothing is known.
            seen=100 * passed / planned if planned else None,
            passed=0 < planned == passed,
            note=f"{passed} of {planned} passed",
        )

    @classmethod
    def failure(cls, check: GateCheck) -> str:
        """The test that failed."""
        return f"the critical test {test_of(check)} failed"

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """Return the same, whatever the share of its trials that passed."""
        del value, limit
        return cls.failure(check)

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`all trials pass`."""
        del limit
        return "all trials pass"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The share of trials that passed, in percent."""
        if check.seen is None:
            return "" if check.required is None else numbers.NONE
        return numbers.score(check.seen, check.required)

    @classmethod
    def fails_by_noise(cls, check: GateCheck, noise: "TrialNoise") -> list[bool] | None:
        """Return in which simulated runs some trial of the test does not pass."""
        return noise.misses(noise.about(check))
