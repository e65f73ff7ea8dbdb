"""The results of one suite of a run, as the files in its folder hold them."""

from ci_evals.domain.results.comparison import Change, Comparison, SuiteComparison
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.scoring import coverage
from ci_evals.scoring.agreement.votes import vote_agreement
from ci_evals.scoring.simulated_users import user_checks


def of_suite(results: Results, suite: SuiteResult, compared: SuiteComparison | None) -> Results:
    """The results with this suite alone, its score, and its comparison.

    Gate, usage and studies stay the run's. In a run of several suites nobody knows which suite requires what
    to fire, nor what fired in the baseline: coverage is then of what fired here alone.
    """
    comparison = results.comparison
    alone = len(results.suites) == 1
    return results.model_copy(
        update={
            "suites": (suite,),
            "score": suite.score,
            "interval": suite.interval,
            "pass_at_k": suite.pass_at_k,
            "pass_hat_k": suite.pass_hat_k,
            "counts": suite.counts,
            "process": results.process if alone else suite.process,
            **({} if alone else _judge_and_user(results, suite)),
            "coverage": results.coverage if alone else coverage.of_suite(suite, results.coverage),
            "comparison": _comparison_of(comparison, compared) if comparison and compared else comparison,
        }
    )


def _judge_and_user(results: Results, suite: SuiteResult) -> dict[str, object]:
    """The facts about one suite's judge and simulated user, of those known about the run's."""
    return {
        "vote_agreement": vote_agreement((suite,)) if results.vote_agreement else None,
        "user_checks": user_checks(suite.tests) if results.user_checks else None,
    }


def _comparison_of(comparison: Comparison, suite: SuiteComparison) -> Comparison:
    lists = ("regressed", "fixed", "suspects", "new", "removed", "changed")
    return comparison.model_copy(
        update={
            **{name: getattr(suite, name) for name in Change.model_fields},
            **{
                name: tuple(test for test in getattr(comparison, name) if test.suite == suite.name)
                for name in lists
            },
            "comparable": suite.comparable,
            "reasons": suite.reasons,
            # The changes of a run do not name their suite.
            "deltas": comparison.deltas if len(comparison.suites) == 1 else (),
            "suites": (suite,),
        }
    )
