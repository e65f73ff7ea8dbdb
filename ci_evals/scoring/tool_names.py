"""Tools that a run's checks name, and that agents called by a name with a prefix."""

from collections.abc import Iterable, Iterator

from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.trial import TrialResult
from ci_evals.support.typography import names


def warnings(plan: Plan, played: Iterable[TrialResult | None]) -> tuple[str, ...]:
    """Return a warning for each tool that was called only by a name with a prefix.

    Checks take `functions.refund` for another tool: those that forbid `refund` pass.
    """
    called = tuple(dict.fromkeys(_called(played)))
    found = []
    for name in sorted(set(_named(plan))):
        others = names.prefixed(name, called)
        if others and not names.among(name, called):
            found.append(
                f"Checks name the tool {name}, the agent called {', '.join(others)}: these are different "
                "names, so a check that forbids the first passes. Write the full name if it is the same tool."
            )
    return tuple(found)


def _called(played: Iterable[TrialResult | None]) -> Iterator[str]:
    for trial in played:
        if trial and trial.fired:
            yield from trial.fired.workflows or ()
            yield from trial.fired.integrations or ()


def _named(plan: Plan) -> Iterator[str]:
    for planned in plan.suites:
        for test in planned.tests:
            for evaluation in test.evaluations:
                if isinstance(evaluation, StrictCheck):
                    yield from evaluation.tool_names()
