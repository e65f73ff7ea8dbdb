"""Check the numbers of a run before it ends: a wrong one is a bug of ours, and must not pass the gate."""

from dataclasses import replace

from ci_evals.domain.results.run import Results
from ci_evals.support import dataclass_json


def check(results: Results) -> None:
    """Check the numbers of a run, its suites and its tests as if they were read; trials are not looked at.

    Raises:
        ValidationError: a number is out of its range, or not finite.
    """
    arms = tuple(replace(arm, suites=()) for arm in results.arms)
    dataclass_json.check(replace(results, suites=(), arms=arms))
    suites = [*results.suites]
    for arm in results.arms:
        suites += arm.suites
    for suite in suites:
        dataclass_json.check(replace(suite, tests=()))
        for test in suite.tests:
            numbers = replace(test, trials=(), turns=(), guidelines="", user_info={}, rubrics={})
            dataclass_json.check(numbers)
