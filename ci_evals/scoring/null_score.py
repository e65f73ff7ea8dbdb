"""The scores of agents that do nothing, by the strict checks of suites. No agent is asked.

A floor that such an agent reaches guards nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Self

from ci_evals.domain import numbers
from ci_evals.domain.base import Percent
from ci_evals.domain.canaries import draw
from ci_evals.domain.checks.evaluation import is_offline
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.null_agents import REFUSAL
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.trial import passed_share, points
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores


def null_score(tests: Iterable[Test], words: str = REFUSAL) -> Percent | None:
    """Return the score of an agent that says only these words and calls nothing, 0 to 100.

    It is the mean over the tests that decide, by their strict checks. Criteria that need a model, the suite's
    own code or a probe are left out. None if nothing is left.
    """
    return points(scores.mean(_scores(tests, words)))


def mean(of_tests: Iterable[Percent | None]) -> Percent | None:
    """Return the mean of the scores that there are; None without any."""
    return points(scores.mean([Fraction(score) for score in of_tests if score is not None]))


def in_words(score: Percent) -> str:
    """Return what a null score says, in a clause."""
    return f"an agent that refuses everything would score {numbers.score(score)} by strict checks"


@dataclass(frozen=True)
class NullScores:
    """The scores of an agent that refuses everything, in a run and in each of its suites."""

    run: Percent | None
    suites: tuple[Percent | None, ...]
    """In the order of the plan."""
    tests: tuple[tuple[Percent | None, ...], ...]
    """By suite, in the order of the plan."""

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the scores in the suites of the first agent."""
        suites = plan.arm(0).suites
        tests = tuple(tuple(points(_score(test, REFUSAL)) for test in suite.tests) for suite in suites)
        deciding = [
            [score for test, score in zip(suite.tests, own, strict=True) if not test.quarantine]
            for suite, own in zip(suites, tests, strict=True)
        ]
        return cls(mean(chain.from_iterable(deciding)), tuple(map(mean, deciding)), tests)

    def reached_floors(self, plan: Plan, min_score: float) -> Iterator[str]:
        """Yield a warning for each minimum score, of the run or of a suite, that such an agent reaches."""
        yield from reached_floor(f"a minimum score of {min_score:g}", min_score, self.run)
        for planned, score in zip(plan.arm(0).suites, self.suites, strict=True):
            floor = planned.suite.min_score or 0
            yield from reached_floor(f"minScore {floor:g} of {planned.suite.name!r}", floor, score)


def reached_floor(name: str, floor: float, score: Percent | None) -> Iterator[str]:
    """Yield a warning if an agent that does nothing reaches a floor, by its score."""
    if score is not None and 0 < floor <= score:
        cure = "Raise it, or add checks of what the agent must do"
        yield f"{name} guards nothing: {in_words(score)}. {cure}"


def _scores(tests: Iterable[Test], words: str) -> list[Fraction]:
    shares = []
    for test in tests:
        share = None if test.quarantine else _score(test, words)
        if share is not None:
            shares.append(share)
    return shares


def _score(test: Test, words: str) -> Fraction | None:
    values = draw(test.canaries)
    transcript = Transcript(turns=_turns(test, words), status=EndState.COMPLETED, canaries=values)
    findings = []
    for evaluation in test.evaluations:
        if isinstance(evaluation, StrictCheck) and is_offline(evaluation):
            finding = Finding.of(evaluation, evaluation.decide(transcript))
            if finding.outcome is not Outcome.UNDECIDED:
                findings.append(finding)
    return passed_share(findings)


def _turns(test: Test, words: str) -> tuple[Turn, ...]:
    """Return the turns of an agent that reports everything, and did nothing."""
    return tuple(
        Turn(
            index=number,
            user=planned.user,
            user_source=UserSource.AUTO if planned.auto else UserSource.FIXED,
            agent=words,
            latency_seconds=0,
            handed_over=False,
            workflows=(),
            tool_calls=(),
            params={},
            rules=(),
            integrations=(),
            error_response=False,
        )
        for number, planned in enumerate(test.planned_turns, start=1)
    )
