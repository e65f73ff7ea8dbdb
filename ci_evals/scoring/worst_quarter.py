"""The tests that looked worst, played again on both sides (`--both-sides=worst-quarter`)."""

from ci_evals.domain.results.run import Results, WorstQuarter
from ci_evals.domain.results.suite import TestResult
from ci_evals.scoring.scorecard import numbers_of_test
from ci_evals.scoring.scores import ScoreRule


def only_again(head: Results, base: Results, again: WorstQuarter) -> Results:
    """A run with those trials alone that its base agent played too: none of those that chose the tests."""
    rule = ScoreRule(offline=head.run.offline)

    def cut(here: TestResult, there: TestResult) -> TestResult:
        begun = len(here.trials) + here.not_run - again.trials
        chosen = len(there.trials) + there.not_run > 0
        trials = tuple(trial for trial in here.trials if chosen and trial.index > begun)
        planned = again.trials if chosen else 0
        update = {"trials": trials, "not_run": planned - len(trials)}
        return here.model_copy(update=update | numbers_of_test(trials, planned, rule))

    suites = tuple(
        here.model_copy(update={"tests": tuple(map(cut, here.tests, there.tests))})
        for here, there in zip(head.suites, base.suites, strict=True)
    )
    return head.model_copy(update={"suites": suites})
