"""`regression`: tests that passed in the baseline and fail now, or a drop beyond chance."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ci_evals.domain import numbers
from ci_evals.domain.choices import Regression
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.weakened import Weakening
from ci_evals.gate.gate_input import GatedRun, why_not_compared
from ci_evals.gate.rule import (
    IF_UNDECIDED_FAILED,
    TIE,
    Nature,
    Rule,
    joined,
    loosened_option,
    rests_on,
)
from ci_evals.gate.rules.changes import CLOSE, NOT_COMPARABLE
from ci_evals.scoring import scores
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule

if TYPE_CHECKING:
    from ci_evals.gate.noise import TrialNoise

_NAMED = 3
"""Tests that a note names."""


@dataclass(frozen=True)
class NoRegression(Rule):
    """Fails for tests that passed in the baseline and fail now, or for a drop beyond chance."""

    regression: Regression = Regression.OFF

    kind: ClassVar[CheckKind] = CheckKind.REGRESSION
    nature: ClassVar[Nature] = Nature.CHANGE
    noise_can_fail: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="regression",
            kind=Regression,
            group=Group.GATE,
            help="Regressions that fail the run.\n\n"
            "`any`: a test that passed in the baseline fails now. `significant`: the score drops by more "
            "than noise explains (p at most 0.05).",
            default=Regression.OFF,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check, unless it is off."""
        if self.regression is Regression.OFF:
            return
        required = run.given.alpha if self.regression is Regression.SIGNIFICANT else 0
        comparer, why = run.given.comparer, why_not_compared(run.given)
        if comparer is None or why:
            yield run.whole.check(self.kind, self.kind, required, note=why)
        elif self.regression is Regression.ANY:
            yield self._newly_failing(run, comparer)
        else:
            yield self._beyond_chance(run, comparer)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield the option if it is off now. Neither of the others is stricter than the other."""
        if self.regression is Regression.OFF and before.regression is not Regression.OFF:
            yield loosened_option(self.kind, before.regression, self.regression)

    def _newly_failing(self, run: GatedRun, comparer: RunComparer) -> GateCheck:
        failing = comparer.newly_failing(run.given.assumed_score)
        note = None
        if failing:
            names = ", ".join(pair.head.name for pair in failing[:_NAMED])
            more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
            note = f"passed in the baseline, not now: {names}{more}"
        tests = len(scores.deciding(run.results.tests))
        note = joined(note, rests_on(len(comparer.pairs), tests))
        return run.whole.check(self.kind, self.kind, 0, seen=len(failing), passed=not failing, note=note)

    def _beyond_chance(self, run: GatedRun, comparer: RunComparer) -> GateCheck:
        given = run.given
        alpha, look, earlier = given.alpha, given.look, given.earlier
        change = comparer.overall_change(undecided_fails=True, assumed=given.assumed_score)
        if earlier and earlier.decide:
            rule = ScoreRule(given.offline)
            change = earlier.change(replace(rule, undecided_fails=True, assumed=given.assumed_score))
        if change.delta is None or change.p is None:
            return run.whole.check(self.kind, self.kind, alpha, note=NOT_COMPARABLE)
        passed: bool | None = True
        if change.delta >= -TIE:
            note = "the score did not fall"
        elif change.p <= alpha:
            passed, note = False, "the score fell, and chance does not explain it"
        elif (change.smallest_p or 0) > alpha and (look is None or look.is_last):
            passed, note = None, "the score fell, but there are too few trials to tell a drop from chance"
        else:
            note = "the drop may be chance"
        if change.delta < -TIE <= (comparer.overall_change().delta or 0):
            note = f"{IF_UNDECIDED_FAILED}: {note}"
        tests = len(scores.deciding(run.results.tests))
        return run.whole.check(
            self.kind,
            self.kind,
            alpha,
            seen=change.p,
            passed=passed,
            note=joined(note, rests_on(change.tests, tests)),
            settled=not look or look.decision(change.p) != "continue",
        )

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`2 tests passed in the baseline and no longer`."""
        del value, limit
        if not is_chance(check):
            return f"{numbers.count(int(check.seen or 0), 'test')} passed in the baseline and no longer"
        undecided = f" {IF_UNDECIDED_FAILED}" if IF_UNDECIDED_FAILED in (check.note or "") else ""
        return f"the score fell by more than chance explains{undecided}"

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`no significant drop (p above 0.05)`, or `no newly failing test`."""
        if limit:
            return f"no significant drop (p above {numbers.plain(limit)})"
        return "no newly failing test"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The p of the drop, or the number of tests."""
        if check.seen is not None and is_chance(check):
            return numbers.p_value(check.seen)
        return super().seen(check)

    @classmethod
    def beyond_odds(cls, check: GateCheck) -> str:
        """Its own level adds to the odds that are shown."""
        if not is_chance(check):
            return ""
        return f"regression (up to {numbers.odds(check.required)} more by its own level)"

    @classmethod
    def fails_by_noise(cls, check: GateCheck, noise: "TrialNoise") -> list[bool] | None:
        """Return in which simulated runs a test fails that passed; None for a drop beyond chance."""
        if check.required != 0:
            return None
        return noise.misses([index for index, (_, test) in enumerate(noise.tests) if test.passed])

    @classmethod
    def is_near(cls, check: GateCheck) -> bool:
        """Return whether the p is low, if it is one and not a number of tests."""
        if is_chance(check):
            return check.seen is not None and check.seen <= CLOSE
        return super().is_near(check)

    @classmethod
    def nearness(cls, check: GateCheck) -> str:
        """The p of the drop."""
        if is_chance(check):
            return f"regression: chance alone shows such a drop with {numbers.p_value(check.seen)}"
        return super().nearness(check)


def is_chance(check: GateCheck) -> bool:
    """Return whether the check compares a p with its limit: `regression`, unless it counts failing tests."""
    return check.kind is CheckKind.REGRESSION and bool(check.required)
