"""`show`: prints conversations of a saved run, with the findings at their turns."""

import sys
from collections.abc import Sequence

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal.console import colored
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.extensions.show import conversations
from ci_evals.extensions.show.conversations import ShownTest
from ci_evals.extensions.show.settings import ShowSettings
from ci_evals.planning.selection import Selection, name_matcher
from ci_evals.reports import sanitize
from ci_evals.scoring.scores import ScoreRule, outcome_of

_NAMED = 20
"""Tests that a message names."""


def show(settings: ShowSettings, context: RunContext) -> None:
    """Print the conversations that the options select.

    Raises:
        UsageError: the results cannot be read, or nothing is selected.
    """
    results = SavedRun.open(settings.results, context.hide()).results
    tests = _tests(results, settings)
    color = colored(sys.stdout, context.environ)
    for text in conversations.render(tests, width=context.width, color=color):
        context.show(text)


def _tests(results: Results, settings: ShowSettings) -> list[ShownTest]:
    """The tests and trials that the options select.

    Raises:
        UsageError: there are none.
    """
    named = _named(results, settings.test or ())
    if settings.failed:
        named = [shown for shown in named if shown.test.outcome is not TestOutcome.PASSED]
    if not named:
        if settings.failed:
            raise UsageError("`failed=`: every test passed. Omit it to see all.")
        raise UsageError("These results have no tests.")
    selected = [ShownTest(one.suite, one.test, _trials(results, one.test, settings)) for one in named]
    if settings.trial is not None:
        selected = [shown for shown in selected if shown.trials]
        if not selected:
            most = max(len(shown.test.trials) for shown in named)
            raise UsageError(f"`trial={settings.trial}`: there {_are(most)} at most. Trials count from 1.")
    return selected


def _are(trials: int) -> str:
    verb = "is" if trials == 1 else "are"
    return f"{verb} {numbers.count(trials, 'trial')}"


def _named(results: Results, names: Sequence[str]) -> list[ShownTest]:
    """The tests that names select: by a whole name that one alone, else all whose names have a part of it.

    Raises:
        UsageError: a name selects none.
    """
    every = [ShownTest(suite, test, test.trials) for suite in results.suites for test in suite.tests]
    if not names:
        return every
    known = [shown.test.name for shown in every]
    wanted = Selection.of(names, None).names
    for name in wanted:
        if not any(map(name_matcher([name], known), known)):
            listed = numbers.listed(known, _NAMED, "test")
            raise UsageError(sanitize.log_line(f"No test matches `test={name}`. Tests: {listed}"))
    is_named = name_matcher(wanted, known)
    return [shown for shown in every if is_named(shown.test.name)]


def _trials(results: Results, test: TestResult, settings: ShowSettings) -> tuple[TrialResult, ...]:
    if settings.trial is not None:
        return tuple(trial for trial in test.trials if trial.index == settings.trial)
    if not settings.failed:
        return test.trials
    rule = ScoreRule(offline=results.run.offline)
    return tuple(trial for trial in test.trials if outcome_of((trial,), 1, rule) is not TestOutcome.PASSED)
