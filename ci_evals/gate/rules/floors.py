"""The base of the rules about minimum scores."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from ci_evals.domain import numbers
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import points
from ci_evals.gate.gate_input import GatedRun, Scope
from ci_evals.gate.rule import (
    IF_UNDECIDED_FAILED,
    NOT_JUDGED,
    TIE,
    Nature,
    Rule,
    fails_unscored,
    part_of,
    rests_on,
    wanting,
    whole_points,
)
from ci_evals.gate.selectors import Selector
from ci_evals.scoring import scores
from ci_evals.scoring.clusters import clusters_of, interval_of_mean, merged
from ci_evals.scoring.scores import ScoreRule

if TYPE_CHECKING:
    from ci_evals.gate.noise import TrialNoise


class FloorRule(Rule):
    """A rule on a score, which must be high enough. Undecided verdicts count as failed."""

    nature: ClassVar[Nature] = Nature.FLOOR
    noise_can_fail: ClassVar[bool] = True

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`the score of the suite “Refunds” is 70, at least 80 required`."""
        return f"the score{part_of(check)} is {value}, {limit} required"

    @classmethod
    def decisive(cls, check: GateCheck) -> str:
        """The score in whole points, cut."""
        return whole_points(check, numbers.points)

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`at least 80`."""
        return f"at least {numbers.plain(limit)}"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The score that decides, with its interval."""
        if fails_unscored(check, cls.nature):
            return f"{numbers.score(check.seen_if_undecided_failed, check.required)} {IF_UNDECIDED_FAILED}"
        if check.seen is None:
            return "" if check.required is None else numbers.NONE
        interval = f" ({numbers.interval(check.interval)})" if check.interval else ""
        if wanting(check):
            score = numbers.score(check.seen_if_undecided_failed, check.required)
            return f"{score}{interval} {IF_UNDECIDED_FAILED}"
        return f"{numbers.score(check.seen, check.required)}{interval}"

    @classmethod
    def fails_by_noise(cls, check: GateCheck, noise: "TrialNoise") -> list[bool] | None:
        """Return which simulated runs score below the floor."""
        drawn = noise.scores(noise.about(check), Selector.read(check.selector or ""))
        if drawn is None or check.required is None:
            return None
        return [score < check.required - TIE for score in drawn.drawn]


def floor_check(kind: CheckKind, run: GatedRun, scope: Scope, required: float) -> GateCheck:
    """Return the check of a minimum score of a part of the run."""
    given, name = run.given, scope.label or kind
    tests = [one.test for one in run.tests_in(scope)]
    if not tests and scope.selector:
        return scope.check(kind, name, required, note=_why_no_test(run, scope.selector))
    if run.only_judged(tests, scope.finding_filter):
        return scope.check(kind, name, required, note=NOT_JUDGED)
    shown = ScoreRule(given.offline, finding_filter=scope.finding_filter)
    strict = replace(shown, undecided_fails=True, assumed=given.assumed_score)
    test_scores = scores.test_scores(tests, strict)
    decisive = scores.mean(test_scores)
    passed, settled, note = False, True, rests_on(len(test_scores), len(tests))
    if decisive is None:
        note = "nothing was scored"
    else:
        passed = decisive >= Fraction(repr(float(required)))
        distance = float(decisive) - required
        settled = (
            given.look is None
            or required <= 0  # which no score is below
            or given.look.settles_score(distance, _trial_scores(tests, strict))
        )
    return scope.check(
        kind,
        name,
        required,
        seen=points(scores.mean(scores.test_scores(tests, shown))),
        seen_if_undecided_failed=points(decisive),
        # Of one test nothing is known but its trials: they say nothing of other tests.
        interval=interval_of_mean(tests, test_scores, strict) if len(tests) > 1 else None,
        passed=passed,
        settled=settled,
        note=note,
    )


def _why_no_test(run: GatedRun, selector: Selector) -> str:
    """The reason why a selector takes no test that decides."""
    for suite in run.results.suites:
        if any(selector.takes(suite.name, test) for test in suite.tests):
            return "all of its tests are in quarantine"
    return "none of its tests was selected for this run"


def _trial_scores(tests: Sequence[TestResult], rule: ScoreRule) -> list[tuple[float, ...]]:
    """The scores of each test's trials, of those that have any, with each cluster of tests as one test."""
    scored = [(test, scores.of_trials(test, rule)) for test in tests]
    counted = [(test, trials) for test, trials in scored if trials]
    own = [[float(score) for score in trials] for _, trials in counted]
    return merged(own, clusters_of([test for test, _ in counted]))
