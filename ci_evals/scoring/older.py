"""Results of versions that told nothing of process, with what their conversations tell of it."""

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.scoring import process
from ci_evals.scoring.comparison.pairing import Side
from ci_evals.scoring.coverage import coverage
from ci_evals.scoring.scores import Counting


def completed(results: Results) -> Results:
    """The results with the process of every trial, test and suite and of the run, and with its coverage.

    Those that have it stay as they are. What criteria want to fire is not known of the others.
    """
    if results.process is not None:
        return results
    counting = Counting(offline=Side.of(results).offline)
    suites = tuple(_suite(suite, counting) for suite in results.suites)
    tests = [test for suite in suites for test in suite.tests]
    whole = process.of_tests(tests, counting)
    return results.model_copy(
        update={
            "process": process.of_run(whole, results.score, results.usage, results.counts.trials),
            "coverage": coverage(suites, frozenset()),
            "suites": suites,
        }
    )


def _suite(suite: SuiteResult, counting: Counting) -> SuiteResult:
    tests = [_test(test, counting) for test in suite.tests]
    return suite.model_copy(update={"process": process.of_tests(tests, counting), "tests": tuple(tests)})


def _test(test: TestResult, counting: Counting) -> TestResult:
    trials = tuple(_trial(trial, test) for trial in test.trials)
    summary = process.summary(trials, len(trials) + test.not_run, counting)
    return test.model_copy(update={"process": summary, "trials": trials})


def _trial(trial: TrialResult, test: TestResult) -> TrialResult:
    told = process.told(trial.turns.without_traces(), test.optimal_tools)
    return trial.model_copy(update={"process": told.process, "fired": told.fired})
