"""The results of one suite of a run, as the files in its folder hold them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ci_evals.domain.results.comparison import Comparison, SuiteComparison, TestName
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.scoring import coverage, numbers
from ci_evals.scoring.agreement.votes import vote_agreement
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.simulated_users import user_checks

T = TypeVar("T", bound=TestName)


def of_suite(results: Results, suite: SuiteResult, compared: SuiteComparison | None) -> Results:
    """The results with this suite alone, its score, and its comparison.

    Gate, usage and studies stay the run's. In a run of several suites nobody knows which suite requires what
    to fire, nor what fired in the baseline: coverage is then of what fired here alone.
    """
    alone = len(results.suites) == 1
    of_one = replace(
        results,
        suites=(suite,),
        score=suite.score,
        interval=suite.interval,
        pass_at_k=suite.pass_at_k,
        pass_hat_k=suite.pass_hat_k,
        counts=suite.counts,
    )
    if results.comparison and compared:
        of_one = replace(of_one, comparison=_comparison_of(results.comparison, compared))
    if alone:
        return of_one
    return replace(
        of_one,
        process=suite.process,
        vote_agreement=vote_agreement((suite,)) if results.vote_agreement else None,
        user_checks=user_checks(suite.tests) if results.user_checks else None,
        coverage=coverage.of_suite(suite, results.coverage),
    )


def joined(parts: Sequence[Results]) -> Results:
    """The run of which these are the results of all suites, with its score and counts: undoes `of_suite`.

    Its comparison and all else that is the run's own are those of the first.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    suites = tuple(suite for part in parts for suite in part.suites)
    tests = tuple(test for suite in suites for test in suite.tests)
    whole = numbers.of_run(tests, ScoreRule(offline=first.run.offline))
    return replace(
        first,
        suites=suites,
        score=whole.score,
        interval=whole.interval,
        pass_at_k=whole.pass_at_k,
        pass_hat_k=whole.pass_hat_k,
        counts=whole.counts,
    )


def _comparison_of(comparison: Comparison, suite: SuiteComparison) -> Comparison:
    def own(tests: Iterable[T]) -> tuple[T, ...]:
        return tuple(test for test in tests if test.suite == suite.name)

    return replace(
        comparison.with_change(suite),
        regressed=own(comparison.regressed),
        fixed=own(comparison.fixed),
        suspects=own(comparison.suspects),
        new=own(comparison.new),
        removed=own(comparison.removed),
        changed=own(comparison.changed),
        comparable=suite.comparable,
        reasons=suite.reasons,
        # The changes of a run do not name their suite.
        deltas=comparison.deltas if len(comparison.suites) == 1 else (),
        suites=(suite,),
    )
